package starlark

import (
	"errors"
	"flag"
	"io"
	"math"
	"testing"

	star "go.starlark.net/starlark"
	"pgregory.net/rapid"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/gguf"
	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/models/kv"
)

// raggedTexts are the token ids of a few sequences, longer than a page.
func raggedTexts(vocab int) [][]int32 {
	texts := make([][]int32, 4)
	for i := range texts {
		for j := range []int{9, 40, 75, 100}[i] {
			texts[i] = append(texts[i], int32((7+i*31+j*(i+13)+j*j/3)%vocab))
		}
	}
	return texts
}

// aloneScores is the scores of every token of a text, each row forwarded alone.
func aloneScores(t *testing.T, it *Interp, m *Model, text []int32) [][]float32 {
	t.Helper()
	cache := m.newCache(it)
	defer cache.Free()
	var rows [][]float32
	for _, id := range text {
		x, err := m.forward(it, cache, []int32{id}, true)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, x.Float32s())
		x.Free()
	}
	return rows
}

func sameBits(x, y []float32) bool {
	for i := range x {
		if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
			return false
		}
	}
	return len(x) == len(y)
}

// A row has the bits of that row alone in any batch of up to 64 rows of any sequences, lengths and positions, whether
// its tokens come one by one or in chunks, for any number of workers: in every family, with quantized weights and, in
// families of every kind of layer, for the other dtypes of caches.
func TestRaggedBatchesAreBits(t *testing.T) {
	q8, _ := dtype.Parse("q8_0")
	for name, spec := range familySpecs(t) {
		t.Run(name, func(t *testing.T) { testRagged(t, draftOf(t, spec), dtype.F32) })
	}
	for _, c := range [][2]string{{"qwen3-256", "f16"}, {"qwen3-256", "q8_0"}, {"qwen3-256", "q4_k_m"},
		{"mixtral-moe", "q4_0"}, {"qwen3moe", "f16"}, {"glm4moe", "q8_0"}, {"deepseek2-mla", "q8_0"},
		{"qwen35-deltanet", "q8_0"}, {"gemma3-swa", "f16"}} {
		if cpu.Current() == cpu.Generic && c[0] == "qwen3-256" && c[1] != "q4_k_m" {
			continue // takes long without assembly, and other families have the format
		}
		t.Run(c[0]+"/"+c[1], func(t *testing.T) {
			it := New(Config{Stdout: io.Discard, Stderr: io.Discard, Threads: 1})
			defer it.Close()
			if _, err := openFamily(t, it, draftOf(t, familySpecs(t)[c[0]])); err != nil {
				t.Fatal(err)
			}
			it.Globals()["recipe"] = star.String(c[1])
			runIn(t, it, "quantize_model(path, path + recipe, recipe)\nm = load_model(path + recipe)\n")
			checkRagged(t, it, it.Globals()["m"].(*Model))
		})
	}
	for _, name := range []string{"llama-gqa-untied", "gemma2", "deepseek2-mla", "qwen35-deltanet"} {
		for _, dt := range []dtype.Type{dtype.F16, q8} {
			t.Run(name+"/"+dt.String(), func(t *testing.T) { testRagged(t, draftOf(t, familySpecs(t)[name]), dt) })
		}
	}
}

func testRagged(t *testing.T, d *gguf.Draft, dt dtype.Type) {
	it := New(Config{Stdout: io.Discard, Threads: 1})
	defer it.Close()
	m, err := openFamily(t, it, d)
	if err != nil {
		t.Fatal(err)
	}
	m.cached = dt
	checkRagged(t, it, m)
}

// checkRagged compares rows of random batches with rows alone.
func checkRagged(t *testing.T, it *Interp, m *Model) {
	t.Helper()
	before := it.Env().Memory().InUse
	texts := raggedTexts(m.tokens.Len())
	var want [][][]float32
	for _, text := range texts {
		want = append(want, aloneScores(t, it, m, text))
	}
	if checks := flag.Lookup("rapid.checks"); cpu.Current() == cpu.Generic { // without assembly a check takes long
		defer flag.Set(checks.Name, checks.Value.String())
		flag.Set(checks.Name, "5")
	}
	rapid.Check(t, func(t *rapid.T) {
		it.env.Control.Workers = rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(t, "workers")
		raggedRounds(t, it, m, texts, want)
	})
	if n := it.Env().Memory().InUse; n != before {
		t.Errorf("%d bytes of tensors in use, %d before", n, before)
	}
}

// raggedRounds forwards a few batches of random rows and compares each row.
func raggedRounds(t *rapid.T, it *Interp, m *Model, texts [][]int32, want [][][]float32) {
	type run struct {
		of, at int // the text, and how much of it was forwarded
		cache  *kv.Cache
	}
	runs := make([]*run, rapid.SampledFrom([]int{1, 2, 3, 7, 40, 64}).Draw(t, "sequences"))
	for i := range runs {
		runs[i] = &run{of: rapid.IntRange(0, len(texts)-1).Draw(t, "text"), cache: m.newCache(it)}
		defer runs[i].cache.Free()
	}
	for range rapid.IntRange(1, 3).Draw(t, "rounds") {
		var feeds []feed
		var fed []*run
		all := rapid.Bool().Draw(t, "all")
		for room, i := 64, rapid.IntRange(0, len(runs)-1).Draw(t, "first"); i < len(runs) && room > 0; i++ {
			r := runs[i]
			n := min(room, len(texts[r.of])-r.at, rapid.SampledFrom([]int{0, 1, 1, 1, 2, 5, 23, 64}).Draw(t, "tokens"))
			if n == 0 {
				continue
			}
			feeds, fed = append(feeds, feed{r.cache, texts[r.of][r.at : r.at+n]}), append(fed, r)
			room -= n
		}
		if len(feeds) == 0 {
			continue
		}
		x, err := m.forwardAll(it, feeds, all)
		if err != nil {
			t.Fatal(err)
		}
		got := rowsOf(x)
		x.Free()
		for k, r := range fed {
			from := r.at
			r.at += len(feeds[k].ids)
			if !all {
				from = r.at - 1
			}
			for ; from < r.at; from++ {
				if !sameBits(got[0], want[r.of][from]) {
					t.Fatalf("sequence %d of %d, position %d differs from that row alone", k, len(fed), from)
				}
				got = got[1:]
			}
		}
		if len(got) != 0 {
			t.Fatalf("%d rows more than asked for", len(got))
		}
	}
}

// More rows than go through a model at once give what pieces of them give; after an error nothing has changed.
func TestForwardInPieces(t *testing.T) {
	for _, family := range []string{"llama-gqa-untied", "gemma3-swa", "qwen35-deltanet"} {
		t.Run(family, func(t *testing.T) {
			spec := familySpecs(t)[family]
			spec.Meta[spec.Meta["general.architecture"].(string)+".context_length"] = 2048.0
			it := runWithSpec(t, spec, `
ids = [5 + i * 7 % 90 for i in range(1300)]
def steps(ids):
    k = m.cache()
    x = None
    for i in range(0, len(ids), 100):
        x = m.forward(k, ids[i:i + 100])
    k.free()
    return x
def same(x, y):
    if x.sub(y).abs().max().item() != 0.0:
        fail("scores differ")
want = [steps(ids), steps(ids[:4]), steps(ids[7:607])]
a, b, c = m.cache(), m.cache(), m.cache()
got = m.forward([(a, ids), (b, ids[:4]), (c, ids[7:607])])
for i in range(3):
    same(got.slice(row=(i, i + 1)), want[i])
[k.free() for k in (a, b, c)]
m.forward(a, ids[:50])
same(m.forward(a, ids[50:1300], all=True).slice(row=(1249, 1250)), want[0])
a.free()
m.forward(a, ids[:300])
`)
			m := it.Globals()["m"].(*Model)
			logits := m.fns["logits"]
			m.fns["logits"] = star.NewBuiltin("logits", func(*star.Thread, *star.Builtin, star.Tuple,
				[]star.Tuple) (star.Value, error) {
				return nil, errors.New("no scores today")
			})
			before := it.Env().Memory().InUse
			runIn(t, it, `
for more in (ids[300:], ids[300:450]):
    got = catch(m.forward, a, more)
    if got.error == None or "no scores today" not in got.error or len(a) != 300:
        fail(got, a)
`)
			if n := it.Env().Memory().InUse; n != before {
				t.Errorf("%d bytes in use after an error, %d before", n, before)
			}
			m.fns["logits"] = logits
			runIn(t, it, "same(m.forward(a, ids[300:]), want[0])\n")
		})
	}
}
