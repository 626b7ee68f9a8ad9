package starlark

import (
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core/gguf"
)

// olderDraft is the file of a deepseek2 as other programs wrote it: with the two matrices that make keys and values of
// the latent in one, in which that of the keys is transposed, and with the experts' gate and up in one.
func olderDraft(t testing.TB, spec familySpec, latents, experts bool) *gguf.Draft {
	t.Helper()
	d := draftOf(t, spec)
	number := func(key string) int { return int(spec.Meta["deepseek2."+key].(float64)) }
	heads := number("attention.head_count")
	weights := func(name string) []float32 { return floats(weightsOf(name, spec.Tensors[name])) }
	var list []gguf.DraftTensor
	add := func(name string, dims []int, xs []float32) {
		list = append(list, gguf.DraftTensor{Name: name, Dims: dims,
			Write: func(w io.Writer) error { return binary.Write(w, binary.LittleEndian, xs) }})
	}
	for _, x := range d.Tensors {
		switch _, part, _ := strings.Cut(x.Name[len("blk."):], "."); {
		case latents && part == "attn_v_b.weight", experts && part == "ffn_up_exps.weight":
		case latents && part == "attn_k_b.weight":
			keys, values := weights(x.Name), weights(strings.Replace(x.Name, "_k_b", "_v_b", 1))
			dim, latent, each := x.Dims[0], x.Dims[1], len(values)/heads
			var all []float32
			for h := range heads {
				for i := range dim {
					for j := range latent {
						all = append(all, keys[(h*latent+j)*dim+i])
					}
				}
				all = append(all, values[h*each:][:each]...)
			}
			add(strings.Replace(x.Name, "_k_b", "_kv_b", 1), []int{latent, len(all) / latent}, all)
		case experts && part == "ffn_gate_exps.weight":
			gate, up := weights(x.Name), weights(strings.Replace(x.Name, "gate", "up", 1))
			var all []float32
			for n := x.Dims[0] * x.Dims[1]; len(gate) > 0; gate, up = gate[n:], up[n:] {
				all = slices.Concat(all, gate[:n], up[:n])
			}
			add(strings.Replace(x.Name, "gate", "gate_up", 1), []int{x.Dims[0], 2 * x.Dims[1], x.Dims[2]}, all)
		default:
			list = append(list, x)
		}
	}
	d.Tensors = list
	if latents { // keys and values have the sizes of a head's, not of the latent
		for _, key := range []string{"key_length", "value_length"} {
			key = "attention." + key
			d.Set("deepseek2."+key, gguf.Int(gguf.KindU32, int64(number(key+"_mla"))))
			d.Delete("deepseek2." + key + "_mla")
		}
		d.Set("deepseek2.attention.head_count_kv", gguf.Int(gguf.KindU32, int64(heads)))
	}
	return d
}

// Files that have matrices in one which others have apart give the same scores: those of experts bit for bit, those of
// latents, from which other things are computed then, nearly. llama.cpp's are as near for both. Tokens give the same
// bits at once or in steps, what is saved is what was loaded, and quantized files are near to the file in f32.
func TestFamilyOlder(t *testing.T) {
	ids := promptIDs(t)
	specs := familySpecs(t)
	for _, name := range []string{"deepseek2-mla", "deepseek2-yarn", "deepseek2-groups"} {
		want := floatsOf(t, "../../models/testdata/"+name+".logits.f32")
		it := newTest(Config{Stdout: io.Discard, Stderr: io.Discard})
		defer it.Close()
		path := writeDraft(t, filepath.Join(t.TempDir(), "apart.gguf"), draftOf(t, specs[name]))
		apartScores := modelScores(t, it, path, ids)
		for _, latents := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, latents in one %v", name, latents), func(t *testing.T) {
				d := olderDraft(t, specs[name], latents, true)
				m, err := openFamily(t, it, d)
				if err != nil {
					t.Fatal(err)
				}
				got := modelScores(t, it, m.name, ids)
				if !latents && !slices.Equal(slices.Concat(got...), slices.Concat(apartScores...)) {
					t.Error("the scores are others with experts in one")
				}
				worst, _ := apart(got, want)
				t.Logf("greatest difference %.2g", worst)
				if !(worst <= 1e-3) {
					t.Errorf("scores differ by %g, want at most 1e-3", worst)
				}
				var some []int32
				for _, id := range ids {
					some = append(some, int32(id))
				}
				if !slices.Equal(scoresInSteps(t, d, 3, some, 7), slices.Concat(got...)) {
					t.Error("the scores are others in steps of 7")
				}
				it.Predeclare("in_one", star.Bool(latents))
				evaluate(t, it, `
ids = list(range(3, 40))
m = load_model(path)
def same(m, file):
    m.save(path + ".again")
    equal(read_bytes(path + ".again") == read_bytes(file), True)
same(m, path)
same(m.trainable(), path)
if in_one: # keys and values of their own, so that scores have a gradient
    v = m.trainable()
    y = v.logits(tensor([ids], "batch seq"))
    equal((y.at(batch=0).rename(seq="row") - m.logits(ids)).abs().max().item() < 1e-4, True)
    backward(y.square().mean())
    equal(v.weights.layers[1].kv_head.grad.abs().sum().item() > 0, True)
    equal(v.weights.layers[1].experts.gate.grad.abs().sum().item() > 0, True)
for recipe, most in (("f16", 0.003), ("q8_0", 0.15), ("q4_k_m", 0.8)):
    quantize_model(path, path + "." + recipe, recipe)
    q = load_model(path + "." + recipe)
    same(q, path + "." + recipe)
    apart = (q.logits(ids) - m.logits(ids)).abs().mean().item()
    if not apart < most:
        fail("{}: {}".format(recipe, apart))
`)
			})
		}
	}
}
