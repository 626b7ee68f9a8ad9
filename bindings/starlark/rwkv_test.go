package starlark

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/models/kv"
)

// A small RWKV: 256 bytes, 2 blocks of 3 heads.
const (
	rwkvEmbed, rwkvHead, rwkvSize, rwkvFFN, rwkvBlocks = 24, 3, 8, 40, 2
)

// rwkvWeights is its tensors by rwkv.cpp's names, in f32, and their sizes, the fastest first.
func rwkvWeights() (data map[string][]float64, dims map[string][]int) {
	data, dims = map[string][]float64{}, map[string][]int{}
	add := func(name string, offset, scale float64, sizes ...int) {
		n := 1
		for _, size := range sizes {
			n *= size
		}
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(float32(offset + scale*float64(noise(name, i))))
		}
		data[name], dims[name] = x, sizes
	}
	const e = rwkvEmbed
	norm := func(name string) {
		add(name+".weight", 1, 0.25, e)
		add(name+".bias", 0, 0.1, e)
	}
	add("emb.weight", 0, 0.5, e, 256)
	norm("blocks.0.ln0")
	for i := range rwkvBlocks {
		b := fmt.Sprintf("blocks.%d.", i)
		norm(b + "ln1")
		norm(b + "ln2")
		norm(b + "att.ln_x")
		for _, mix := range []string{"att.time_mix_r", "att.time_mix_k", "att.time_mix_v", "att.time_mix_g",
			"ffn.time_mix_r", "ffn.time_mix_k"} {
			add(b+mix, 0.5, 0.5, e)
		}
		add(b+"att.time_decay", 0.7, 0.25, 1, rwkvSize, rwkvHead)
		add(b+"att.time_faaaa", 0, 0.5, 1, rwkvSize, rwkvHead)
		for _, name := range []string{"receptance", "key", "value", "gate", "output"} {
			add(b+"att."+name+".weight", 0, 0.35, e, e)
		}
		add(b+"ffn.key.weight", 0, 0.35, e, rwkvFFN)
		add(b+"ffn.value.weight", 0, 0.3, rwkvFFN, e)
		add(b+"ffn.receptance.weight", 0, 0.35, e, e)
	}
	norm("ln_out")
	add("head.weight", 0, 0.35, e, 256)
	return data, dims
}

// writeRWKV writes it in the container of rwkv.cpp.
func writeRWKV(t *testing.T, path string) {
	t.Helper()
	le := binary.LittleEndian
	b := []byte("fmgg")
	for _, n := range []uint32{101, 256, rwkvEmbed, rwkvBlocks, 0} {
		b = le.AppendUint32(b, n)
	}
	data, dims := rwkvWeights()
	var names []string
	for name := range data {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, n := range append([]int{len(dims[name]), len(name), 0}, dims[name]...) {
			b = le.AppendUint32(b, uint32(n))
		}
		b = append(b, name...)
		for _, x := range data[name] {
			b = le.AppendUint32(b, math.Float32bits(float32(x)))
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// normed is a layer norm.
func normed(x, weight, bias []float64) []float64 {
	mean, variance := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v-mean)/math.Sqrt(variance+1e-5)*weight[i] + bias[i]
	}
	return y
}

// rwkvScores is its scores by the formulas of the paper, in f64 and one number after the other.
func rwkvScores(ids []int) [][]float64 {
	const e = rwkvEmbed
	w, _ := rwkvWeights()
	named := func(x []float64, name string) []float64 { return normed(x, w[name+".weight"], w[name+".bias"]) }
	times := func(x []float64, name string) []float64 {
		m := w[name+".weight"]
		y := make([]float64, len(m)/len(x))
		for i := range y {
			for j, v := range x {
				y[i] += m[i*len(x)+j] * v
			}
		}
		return y
	}
	logistic := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	state := make([][rwkvHead][rwkvSize][rwkvSize]float64, rwkvBlocks)
	last := make([][2][]float64, rwkvBlocks) // the rows before
	for i := range last {
		last[i] = [2][]float64{make([]float64, e), make([]float64, e)}
	}
	var scores [][]float64
	for _, id := range ids {
		x := named(w["emb.weight"][id*e:(id+1)*e], "blocks.0.ln0")
		for i := range rwkvBlocks {
			b := fmt.Sprintf("blocks.%d.", i)
			mixed := func(y, before []float64, name string) []float64 {
				out := make([]float64, e)
				for j := range out {
					out[j] = y[j]*w[b+name][j] + before[j]*(1-w[b+name][j])
				}
				return out
			}
			y := named(x, b+"ln1")
			r := times(mixed(y, last[i][0], "att.time_mix_r"), b+"att.receptance")
			k := times(mixed(y, last[i][0], "att.time_mix_k"), b+"att.key")
			v := times(mixed(y, last[i][0], "att.time_mix_v"), b+"att.value")
			gate := times(mixed(y, last[i][0], "att.time_mix_g"), b+"att.gate")
			last[i][0] = y
			out := make([]float64, e)
			for h := range rwkvHead {
				at := h * rwkvSize
				for p := range rwkvSize {
					for q := range rwkvSize {
						s, pair := &state[i][h][p][q], k[at+p]*v[at+q]
						out[at+q] += r[at+p] * (*s + w[b+"att.time_faaaa"][at+p]*pair)
						*s = w[b+"att.time_decay"][at+p]**s + pair
					}
				}
				copy(out[at:at+rwkvSize], normed(out[at:at+rwkvSize], w[b+"att.ln_x.weight"][at:at+rwkvSize],
					w[b+"att.ln_x.bias"][at:at+rwkvSize]))
			}
			for j, g := range gate {
				out[j] *= g * logistic(g)
			}
			for j, v := range times(out, b+"att.output") {
				x[j] += v
			}
			y = named(x, b+"ln2")
			k = times(mixed(y, last[i][1], "ffn.time_mix_k"), b+"ffn.key")
			r = times(mixed(y, last[i][1], "ffn.time_mix_r"), b+"ffn.receptance")
			last[i][1] = y
			for j := range k {
				k[j] = math.Pow(max(k[j], 0), 2)
			}
			for j, v := range times(k, b+"ffn.value") {
				x[j] += logistic(r[j]) * v
			}
		}
		scores = append(scores, times(named(x, "ln_out"), "head"))
	}
	return scores
}

// An RWKV from the container of rwkv.cpp computes what the paper says, and the same bits however its tokens come and
// for any number of workers; text goes through as bytes.
func TestRWKV(t *testing.T) {
	dir := t.TempDir()
	writeRWKV(t, filepath.Join(dir, "small.bin"))
	ids := []int{34, 105, 110, 0, 255, 32, 32, 104, 101, 108, 108, 111, 10, 195, 182}
	var want []float32
	for _, threads := range []int{1, 3} {
		it := newTest(Config{Dir: dir, Stdout: io.Discard, Threads: threads})
		defer it.Close()
		evaluate(t, it, `
load("@stdlib//convert.star", "convert")
convert.rwkv("small.bin", "small.gguf")
m = load_model("small.gguf")
text = "öh, \"in\"\n"
equal(m.detokenize(m.tokenize(text)), text)
equal(len(m.tokenize(text)), 10)
equal(len("".join(list(m.generate("a", max_tokens=5, temperature=0.0)))) > 0, True)
m.save("again.gguf")
equal(read_bytes("again.gguf") == read_bytes("small.gguf"), True)
`)
		v, err := it.Eval(background, "<test>", "m")
		if err != nil {
			t.Fatal(err)
		}
		m := v.(*Model)
		checkRagged(t, it, m)
		tokens := make([]int32, len(ids))
		for i, id := range ids {
			tokens[i] = int32(id)
		}
		for _, step := range []int{len(ids), 1, 4} {
			cache := kv.New(it.env, m.layers)
			var got []float32
			for piece := range slices.Chunk(tokens, step) {
				x, err := m.forward(it, cache, piece, true)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, x.Float32s()...)
			}
			cache.Free()
			if want == nil {
				want = got
				for i, row := range rwkvScores(ids) {
					for j, x := range row {
						if d := math.Abs(float64(got[256*i+j]) - x); !(d <= 2e-5) {
							t.Fatalf("position %d, byte %d: got %g, want %g", i, j, got[256*i+j], x)
						}
					}
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("in steps of %d by %d workers the scores are others", step, threads)
			}
		}
	}
}

// The reference model of rwkv.cpp, where it is at hand: its tests allow a sum of differences of 0.001.
func TestRWKVReference(t *testing.T) {
	for _, shared := range []string{"../../../shared/data", "../../../../shared/data"} {
		shared, err := filepath.Abs(shared + "/tiny-rwkv")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(shared); err != nil {
			continue
		}
		it, _ := inFolder(t)
		evaluate(t, it, `
load("@stdlib//convert.star", "convert")
convert.main([`+fmt.Sprintf("%q", shared+"/tiny-rwkv-5v2-730K-FP32.bin")+`, "a.gguf", "--quiet"])
m = load_model("a.gguf")
scores = m.logits(m.tokenize("\"in")).at(row=-1)
text = "".join(list(m.generate("\"in", max_tokens=20, temperature=0.0)))
for recipe, most in (("q8_0", 3e-3), ("q5_1", 0.1)):
    quantize_model("a.gguf", "b.gguf", recipe)
    q = load_model("b.gguf").logits(m.tokenize("\"in")).at(row=-1).log_softmax("vocab")
    p = scores.log_softmax("vocab")
    equal(0 < (p.exp() * (p - q)).sum().item() and (p.exp() * (p - q)).sum().item() < most, True)
`)
		v, err := it.Eval(background, "<test>", "scores")
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for i, x := range floatsOf(t, shared+"/expected-logits-5v2-730K.bin") {
			sum += math.Abs(float64(v.(Tensor).Float32s()[i] - x))
		}
		t.Logf("sum of differences %.2g", sum)
		if !(sum <= 1e-3) {
			t.Errorf("the scores differ by %g in all, want at most 0.001", sum)
		}
		text, err := it.Eval(background, "<test>", "text")
		if err != nil || !strings.HasPrefix(text.String(), `"put\": \"`) {
			t.Errorf("after \"in comes %v, %v", text, err)
		}
		return
	}
	t.Skip("the reference file is not beside the repository; TestRWKV makes a model")
}

// What is no RWKV 5.2 is refused by what is wrong with it.
func TestRWKVRefuses(t *testing.T) {
	it, dir := inFolder(t)
	b := []byte("fmgg")
	for _, n := range []uint32{101, 256, 4, 1, 0, 1, 10, 0, 4} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	b = append(append(b, "emb.weight"...), make([]byte, 16)...)
	if err := os.WriteFile(filepath.Join(dir, "four.bin"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	evaluate(t, it, `
load("@stdlib//convert.star", "convert")
save_gguf("a.gguf", {"w": zeros(a=1)}, {})
`)
	for src, want := range map[string]string{
		`convert.rwkv("four.bin", "b.gguf")`:            "four.bin is an RWKV of another version than 5.2",
		`convert.rwkv("a.gguf", "b.gguf")`:              "a.gguf is not a file of rwkv.cpp",
		`convert.main(["four.bin", "b", "--pre", "x"])`: "is converted as it is, without options",
		`load_model("four.bin")`:                        "general.architecture",
	} {
		refuses(t, it, src, want)
	}
}
