package starlark

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core/gguf"
	"github.com/fucina-go/fucina/core/quant"
	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/models"
	"github.com/fucina-go/fucina/models/kv"
)

// keepFamilies is where TestFamilyLogits leaves its models, so that a reference can be made of them.
var keepFamilies = flag.String("families", "", "a folder to which the models of TestFamilyLogits are written")

// familySpec describes a tiny model: metadata, and tensors with their sizes, the fastest first.
type familySpec struct {
	Meta    map[string]any   `json:"meta"`
	Tensors map[string][]int `json:"tensors"`
}

func familySpecs(t testing.TB) map[string]familySpec {
	t.Helper()
	var specs map[string]familySpec
	readJSON(t, "../../models/testdata/families.json", &specs)
	return specs
}

// noise is element i of a tensor, in [-1, 1): splitmix64 (Steele, Lea and Flood 2014) of a hash of the tensor's name.
func noise(name string, i int) float32 {
	h := fnv.New64a()
	io.WriteString(h, name)
	z := h.Sum64() + uint64(i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float32((z^z>>31)>>40)/(1<<23) - 1
}

// weightsOf is a tensor of random weights that keep what they multiply at its size.
func weightsOf(name string, dims []int) []byte {
	offset, scale := float32(0), float32(math.Sqrt(3/float64(dims[0])))
	switch {
	case strings.Contains(name, "norm.weight"):
		offset, scale = 1, 0.25
	case strings.HasPrefix(name, "token_embd"), strings.HasSuffix(name, ".bias"):
		scale = 0.5
	case strings.HasPrefix(name, "rope_"):
		offset, scale = 2, 1
	case strings.HasSuffix(name, "ssm_a"):
		offset, scale = -1, 0.5
	}
	n := 1
	for _, d := range dims {
		n *= d
	}
	data := make([]byte, 0, 4*n)
	for i := range n {
		x := float32(noise(name, i)*scale) + offset
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return data
}

// draftOf is the GGUF file of a spec, with the tokenizer of stories260K.
func draftOf(t testing.TB, spec familySpec) *gguf.Draft {
	t.Helper()
	f, err := gguf.Open(stories, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	d := f.Draft()
	d.Tensors = nil
	for _, key := range d.Keys() {
		if !strings.HasPrefix(key, "tokenizer.") {
			d.Delete(key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(spec.Meta)) {
		d.Set(key, metaValue(t, key, spec.Meta[key]))
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Tensors)) {
		dims := spec.Tensors[name]
		d.Tensors = append(d.Tensors, gguf.DraftTensor{Name: name, Type: gguf.Type(0), Dims: dims,
			Write: func(w io.Writer) error {
				_, err := w.Write(weightsOf(name, dims))
				return err
			}})
	}
	return d
}

// metaValue gives JSON's numbers the kinds that llama.cpp expects: those it wants as floats are named so.
func metaValue(t testing.TB, key string, v any) gguf.Value {
	t.Helper()
	switch v := v.(type) {
	case string:
		return gguf.Text(v)
	case bool:
		return gguf.Bool(v)
	case []any:
		var list []gguf.Value
		for _, x := range v {
			list = append(list, gguf.Int(gguf.KindI32, int64(x.(float64))))
		}
		return gguf.List(gguf.KindI32, list...)
	case float64:
		for _, part := range strings.Fields("epsilon freq_base _scale scale_ factor beta softcapping multiplier") {
			if strings.Contains(key, part) {
				return gguf.Float(float32(v))
			}
		}
		return gguf.Int(gguf.KindU32, int64(v))
	}
	t.Fatalf("%s is %T", key, v)
	return gguf.Value{}
}

func writeDraft(t testing.TB, path string, d *gguf.Draft) string {
	t.Helper()
	f, err := os.Create(path)
	if err == nil {
		err = d.Write(f)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func floatsOf(t *testing.T, path string) []float32 {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return floats(data)
}

func floats(data []byte) []float32 {
	xs := make([]float32, len(data)/4)
	for i := range xs {
		xs[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return xs
}

func promptIDs(t *testing.T) []int {
	t.Helper()
	var prompt struct{ Tokens []int }
	readJSON(t, "../../models/testdata/prompt.json", &prompt)
	return prompt.Tokens
}

// Every family's logits are llama.cpp's, for every position, and each tensor of the file is read once (which loading
// insists on).
func TestFamilyLogits(t *testing.T) {
	ids := promptIDs(t)
	for name, spec := range familySpecs(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if *keepFamilies != "" {
				dir = *keepFamilies
			}
			path := writeDraft(t, filepath.Join(dir, name+".gguf"), draftOf(t, spec))
			want := floatsOf(t, "../../models/testdata/"+name+".logits.f32")
			it := New(Config{Stdout: io.Discard})
			defer it.Close()
			got := slices.Concat(modelScores(t, it, path, ids)...)
			if len(got) != len(want) {
				t.Fatalf("%d scores, the reference has %d", len(got), len(want))
			}
			worst := 0.0
			for i, x := range got {
				if d := math.Abs(float64(x - want[i])); !(d <= worst) {
					worst = d
				}
			}
			t.Logf("greatest difference %.2g", worst)
			if !(worst <= 1e-3) {
				t.Errorf("scores differ by %g, want at most 1e-3", worst)
			}
		})
	}
}

// What metadata can say besides means what it means to llama.cpp: the scores of the last position of families with
// other keys, in the order of the names.
func TestFamilyVariants(t *testing.T) {
	ids := promptIDs(t)
	specs := familySpecs(t)
	var variants map[string]struct {
		Of   string         `json:"of"`
		Meta map[string]any `json:"meta"`
	}
	readJSON(t, "../../models/testdata/variants.json", &variants)
	scores := floatsOf(t, "../../models/testdata/variants.logits.f32")
	it := New(Config{Stdout: io.Discard})
	defer it.Close()
	for i, name := range slices.Sorted(maps.Keys(variants)) {
		t.Run(name, func(t *testing.T) {
			v := variants[name]
			spec := familySpec{maps.Clone(specs[v.Of].Meta), specs[v.Of].Tensors}
			maps.Copy(spec.Meta, v.Meta)
			maps.DeleteFunc(spec.Meta, func(_ string, value any) bool { return value == nil })
			dir := t.TempDir()
			if *keepFamilies != "" {
				dir = *keepFamilies
			}
			path := writeDraft(t, filepath.Join(dir, "variant-"+name+".gguf"), draftOf(t, spec))
			got := modelScores(t, it, path, ids)
			last := got[len(got)-1]
			worst, _ := apart([][]float32{last}, scores[i*len(last):])
			t.Logf("greatest difference %.2g", worst)
			if !(worst <= 1e-3) {
				t.Errorf("scores differ by %g, want at most 1e-3", worst)
			}
		})
	}
}

// The same with reference files that NumPy made, where they are at hand: those in f32 to 1e-3, quantized ones by the
// divergence, and those that have them also to scores computed in f64 from the decoded weights.
func TestFamilyReferences(t *testing.T) {
	if testing.Short() || cpu.Current() == cpu.Generic {
		t.Skip("takes long, for what has the same bits elsewhere; TestFamilyLogits compares models that it makes")
	}
	ids := promptIDs(t)
	seen := 0
	for _, dir := range []string{"../../../shared/data", "../../../../shared/data"} {
		names, err := filepath.Glob(dir + "/tiny-random-archs/*.gguf")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			name, seen = strings.TrimSuffix(name, ".gguf"), seen+1
			it := New(Config{Stdout: io.Discard})
			got := modelScores(t, it, name+".gguf", ids)
			it.Close()
			worst, kl := apart(got, floatsOf(t, name+".logits.f32"))
			bound := 1e-3
			if _, err := os.Stat(name + ".exact.f32"); err == nil {
				exact, kl := apart(got, floatsOf(t, name+".exact.f32"))
				t.Logf("%s: greatest difference %.2g from f64, divergence %.3g", filepath.Base(name), exact, kl)
				most := 1e-4
				if bound = 0.55; !strings.HasSuffix(name, "f16") { // activations are rounded
					most = bound
				}
				if !(exact <= most && kl <= 0.005) {
					t.Errorf("%s: scores differ by %g from f64, want at most %g; divergence %g", name, exact, most, kl)
				}
			}
			t.Logf("%s: greatest difference %.2g, divergence %.3g", filepath.Base(name), worst, kl)
			if !(worst <= bound && kl <= 0.005) {
				t.Errorf("%s: scores differ by %g, divergence %g, want at most %g and 0.005", name, worst, kl, bound)
			}
		}
	}
	if seen == 0 {
		t.Skip("the reference files are not beside the repository; TestFamilyLogits compares models that it makes")
	}
}

// apart is the greatest difference between two tables of scores, and the mean divergence of rows.
func apart(got [][]float32, want []float32) (worst, kl float64) {
	for i, row := range got {
		ref := want[i*len(row):][:len(row)]
		for j, x := range row {
			if d := math.Abs(float64(x - ref[j])); !(d <= worst) {
				worst = d
			}
			p := logProb(ref, j)
			kl += math.Exp(p) * (p - logProb(row, j)) / float64(len(got))
		}
	}
	return worst, kl
}

// quantized changes the matrices of a draft to a format, and those of the last product of each half layer to another.
func quantized(t *testing.T, d *gguf.Draft, format, last string) {
	t.Helper()
	for i := range d.Tensors {
		x := &d.Tensors[i]
		name := format
		if strings.Contains(x.Name, "attn_v") || strings.Contains(x.Name, "ffn_down") {
			name = last
		}
		f, ok := quant.ByName(name)
		if !ok {
			t.Fatalf("no format %s", name)
		}
		if len(x.Dims) < 2 || strings.Contains(x.Name, "gate_inp") {
			continue
		}
		x.Type = gguf.Type(f.ID)
		write := x.Write
		x.Write = func(w io.Writer) error {
			var raw bytes.Buffer
			if err := write(&raw); err != nil {
				return err
			}
			src := floats(raw.Bytes())
			dst := make([]byte, len(src)/f.Block*f.Bytes)
			if err := f.Encode(dst, src, nil); err != nil {
				return err
			}
			_, err := w.Write(dst)
			return err
		}
	}
}

// A model in f16 has the scores of the f32 file with the same weights, bit for bit: activations are not rounded.
func TestFamilyHalves(t *testing.T) {
	ids := promptIDs(t)
	for name, spec := range familySpecs(t) {
		t.Run(name, func(t *testing.T) {
			it := New(Config{Stdout: io.Discard})
			defer it.Close()
			dir := t.TempDir()
			path := writeDraft(t, filepath.Join(dir, "whole.gguf"), draftOf(t, spec))
			half, wide := filepath.Join(dir, "half.gguf"), filepath.Join(dir, "wide.gguf")
			for _, c := range [][3]string{{path, half, "f16"}, {half, wide, "f32"}} {
				src := fmt.Sprintf("quantize_model(%q, %q, %q)", c[0], c[1], c[2])
				if _, err := it.Eval(context.Background(), "test", src); err != nil {
					t.Fatal(err)
				}
			}
			for _, ids := range [][]int{ids, ids[:1]} {
				whole := slices.Concat(modelScores(t, it, path, ids)...)
				got := slices.Concat(modelScores(t, it, half, ids)...)
				want := slices.Concat(modelScores(t, it, wide, ids)...)
				if slices.Equal(whole, want) {
					t.Error("the scores do not depend on the rounding of the weights")
				}
				for i, x := range got {
					if x != want[i] {
						t.Fatalf("of %d rows score %d is %v in f16, %v in f32", len(ids), i, x, want[i])
					}
				}
			}
		})
	}
}

// A quantized model's scores are near to llama.cpp's with weights in f32.
func TestFamilyQuantized(t *testing.T) {
	ids := promptIDs(t)
	for _, c := range []struct {
		family, format, last string
		flips                int // positions where the rounding makes a router choose otherwise
	}{
		{"qwen3-256", "q8_0", "q8_0", 0}, {"qwen3-256", "q4_0", "q4_0", 0}, {"qwen3-256", "q4_k", "q6_k", 0},
		{"qwen3-256", "q6_k", "q6_k", 0}, {"mixtral-moe", "q8_0", "q8_0", 1},
	} {
		name := c.family + "-" + c.format
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if *keepFamilies != "" {
				dir = *keepFamilies
			}
			d := draftOf(t, familySpecs(t)[c.family])
			quantized(t, d, c.format, c.last)
			path := writeDraft(t, filepath.Join(dir, name+".gguf"), d)
			want := floatsOf(t, "../../models/testdata/"+name+".logits.f32")
			it := New(Config{Stdout: io.Discard})
			defer it.Close()
			got := modelScores(t, it, path, ids)
			divergence := make([]float64, len(got))
			for i, row := range got {
				ref := want[i*len(row):][:len(row)]
				for j := range row {
					p := logProb(ref, j)
					divergence[i] += math.Exp(p) * (p - logProb(row, j))
				}
			}
			slices.Sort(divergence)
			kl := 0.0
			for _, d := range divergence[:len(got)-c.flips] {
				kl += d / float64(len(got))
			}
			t.Logf("divergence %.3g", kl)
			if !(kl <= 0.005) {
				t.Errorf("divergence %g, want at most 0.005", kl)
			}
		})
	}
}

// openFamily loads a spec's model.
func openFamily(t testing.TB, it *Interp, d *gguf.Draft) (*Model, error) {
	t.Helper()
	it.Globals()["path"] = star.String(writeDraft(t, filepath.Join(t.TempDir(), "model.gguf"), d))
	v, err := it.Eval(context.Background(), "test", "load_model(path)")
	if err != nil {
		return nil, err
	}
	return v.(*Model), nil
}

// Tokens give the same bits whether they come at once, in pieces or one by one, for any number of workers.
func TestFamilyStepsAreBits(t *testing.T) {
	ids := make([]int32, 0, 20)
	for _, id := range promptIDs(t) {
		ids = append(ids, int32(id))
	}
	for name, spec := range familySpecs(t) {
		t.Run(name, func(t *testing.T) {
			whole := scoresInSteps(t, draftOf(t, spec), 1, ids, len(ids))
			for _, step := range []int{1, 7, len(ids)} {
				for i, x := range scoresInSteps(t, draftOf(t, spec), 3, ids, step) {
					if math.Float32bits(x) != math.Float32bits(whole[i]) {
						t.Fatalf("in steps of %d, score %d is %g, at once it is %g", step, i, x, whole[i])
					}
				}
			}
		})
	}
}

// scoresInSteps is the scores of all ids, which come a step at a time.
func scoresInSteps(t *testing.T, d *gguf.Draft, threads int, ids []int32, step int) (flat []float32) {
	t.Helper()
	it := New(Config{Stdout: io.Discard, Threads: threads})
	defer it.Close()
	m, err := openFamily(t, it, d)
	if err != nil {
		t.Fatal(err)
	}
	cache := kv.New(it.env, m.layers)
	defer cache.Free()
	for piece := range slices.Chunk(ids, step) {
		x, err := m.forward(it, cache, piece, true)
		if err != nil {
			t.Fatal(err)
		}
		flat = append(flat, x.Float32s()...)
		x.Free()
	}
	return flat
}

// What is saved of a loaded model, in every kind of type, or of its variables, is what was loaded, byte for byte.
func TestFamilySaved(t *testing.T) {
	for name, spec := range familySpecs(t) {
		t.Run(name, func(t *testing.T) {
			it := newTest(Config{Stdout: io.Discard, Stderr: io.Discard})
			defer it.Close()
			if _, err := openFamily(t, it, draftOf(t, spec)); err != nil {
				t.Fatal(err)
			}
			evaluate(t, it, `
ids = list(range(3, 40))
def same(m, file):
    m.save(path + ".again")
    equal(read_bytes(path + ".again") == read_bytes(file), True)
    equal(load_model(path + ".again").logits(ids).tolist(), m.logits(ids).tolist())

m = load_model(path)
same(m, path)
m.trainable().save(path + ".again")
equal(read_bytes(path + ".again") == read_bytes(path), True)
for recipe in ("f16", "q8_0", "q4_k_m"):
    quantize_model(path, path + "." + recipe, recipe)
    same(load_model(path + "." + recipe), path + "." + recipe)
`)
		})
	}
}

// Layers at the end that draft further tokens are left out, and need not be in the file.
func TestFamilyDrafts(t *testing.T) {
	ids := promptIDs(t)
	it := New(Config{Stdout: io.Discard})
	defer it.Close()
	specs := familySpecs(t)
	for _, name := range []string{"deepseek2-groups", "glm4moe", "qwen35-deltanet"} {
		t.Run(name, func(t *testing.T) {
			spec := specs[name]
			dir := t.TempDir()
			want := modelScores(t, it, writeDraft(t, filepath.Join(dir, "run.gguf"), draftOf(t, spec)), ids)
			arch := spec.Meta["general.architecture"].(string)
			layers := int(spec.Meta[arch+".block_count"].(float64))
			for _, drafts := range []map[string][]int{
				{}, {"attn_norm.weight": {64}, "nextn.eh_proj.weight": {128, 64}},
			} {
				more := familySpec{maps.Clone(spec.Meta), maps.Clone(spec.Tensors)}
				more.Meta[arch+".block_count"] = float64(layers + 1)
				more.Meta[arch+".nextn_predict_layers"] = 1.0
				for part, dims := range drafts {
					more.Tensors[fmt.Sprintf("blk.%d.%s", layers, part)] = dims
				}
				got := modelScores(t, it, writeDraft(t, filepath.Join(dir, "more.gguf"), draftOf(t, more)), ids)
				if !slices.Equal(slices.Concat(got...), slices.Concat(want...)) {
					t.Error("the scores are others")
				}
			}
		})
	}
}

// Each way in which a file may not be what its architecture says has its own message.
func TestFamilyErrors(t *testing.T) {
	it := New(Config{Stdout: io.Discard})
	defer it.Close()
	specs := familySpecs(t)
	for _, c := range []struct {
		name, family string
		change       func(familySpec)
		want         string
	}{
		{"architecture", "qwen3-qknorm", func(s familySpec) { s.Meta["general.architecture"] = "qwen9" },
			`is of the architecture "qwen9"; known are ` + strings.Join(models.Families(), ", ")},
		{"missing", "glm4moe", func(s familySpec) { delete(s.Tensors, "blk.1.ffn_up_exps.weight") },
			"has no tensor blk.1.ffn_up_exps.weight"},
		{"unused", "gemma3-swa", func(s familySpec) { s.Tensors["blk.0.attn_sinks.weight"] = []int{4} },
			"has 1 tensors that the family gemma3 does not use: blk.0.attn_sinks.weight"},
		{"shape", "deepseek2-mla", func(s familySpec) { s.Tensors["blk.0.attn_k_b.weight"] = []int{32, 24, 4} },
			"tensor blk.0.attn_k_b.weight is 4 × 24 × 32, want [head=4, latent=32, head_dim=24]"},
		{"size", "phi3-fused", func(s familySpec) { s.Tensors["blk.1.ffn_up.weight"] = []int{64, 250} },
			"tensor blk.1.ffn_up.weight is 250 × 64, want [part=2, ffn=128, embed=64]"},
		{"key", "qwen2-bias-tied", func(s familySpec) { delete(s.Meta, "qwen2.embedding_length") },
			"qwen2.embedding_length"},
		{"gating", "glm4moe", func(s familySpec) { s.Meta["glm4moe.expert_gating_func"] = 3.0 },
			"expert gating function 3 is unknown"},
		{"drafts", "glm4moe", func(s familySpec) { s.Meta["glm4moe.nextn_predict_layers"] = 3.0 },
			"nextn_predict_layers is 3, but there are 3 layers"},
		{"temperature", "deepseek2-mla", func(s familySpec) { s.Meta["deepseek2.attention.temperature_scale"] = 0.5 },
			"queries that grow with their position are not supported: attention.temperature_scale is 0.5"},
		{"groups", "deepseek2-groups", func(s familySpec) { s.Meta["deepseek2.expert_group_count"] = 5.0 },
			"12 experts cannot be cut into 5 groups of one size"},
		{"no groups used", "glm4moe-groups", func(s familySpec) { delete(s.Meta, "glm4moe.expert_group_used_count") },
			"expert_group_used_count is 0, want 1 … 4, the number of groups"},
		{"many groups", "deepseek2-groups", func(s familySpec) { s.Meta["deepseek2.expert_group_used_count"] = 5.0 },
			"expert_group_used_count is 5, want 1 … 4, the number of groups"},
		{"few experts", "deepseek2-groups", func(s familySpec) { s.Meta["deepseek2.expert_used_count"] = 7.0 },
			"expert_used_count is 7, but 2 of 4 groups have 6 experts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := familySpec{maps.Clone(specs[c.family].Meta), maps.Clone(specs[c.family].Tensors)}
			c.change(spec)
			_, err := openFamily(t, it, draftOf(t, spec))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want …%s", err, c.want)
			}
		})
	}
}

// A float of the metadata that is none is an error that names it, whichever a family reads.
func TestFamilyFloats(t *testing.T) {
	it := New(Config{Stdout: io.Discard})
	defer it.Close()
	specs := familySpecs(t)
	keys := regexp.MustCompile(`g\.float\(\s*"([^"]+)"`)
	read := map[string]bool{} // key → whether a family refuses a bad one
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		spec := specs[name]
		arch := spec.Meta["general.architecture"].(string)
		for _, file := range []string{"common.star", arch + ".star"} {
			source, err := models.FS.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range keys.FindAllStringSubmatch(string(source), -1) {
				key := m[1]
				if read[key] {
					continue
				}
				read[key] = false
				for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
					d := draftOf(t, spec)
					d.Set(arch+"."+key, gguf.Float(bad))
					_, err := openFamily(t, it, d)
					if err == nil {
						break // it is not read
					}
					want := fmt.Sprintf("%s.%s: got %g, want a finite number", arch, key, bad)
					if !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want …%s", err, want)
					}
					read[key] = true
				}
			}
		}
	}
	if len(read) < 12 {
		t.Errorf("only %d keys are read: %v", len(read), read)
	}
	for key, refused := range read {
		if !refused {
			t.Errorf("%s may be anything", key)
		}
	}
}
