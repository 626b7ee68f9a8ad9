package starlark

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
)

const stories = "../../examples/data/stories260K.gguf"

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// modelScores runs m.logits on token ids and returns the scores of every row.
func modelScores(t *testing.T, it *Interp, path string, ids []int) [][]float32 {
	t.Helper()
	items := make([]star.Value, len(ids))
	for i, id := range ids {
		items[i] = star.MakeInt(id)
	}
	it.Globals()["path"] = star.String(path)
	it.Globals()["ids"] = star.NewList(items)
	v, err := it.Eval(context.Background(), "test", "load_model(path).logits(ids)")
	if err != nil {
		t.Fatal(err)
	}
	x := v.(Tensor).Tensor
	return rowsOf(x)
}

func rowsOf(x *core.Tensor) [][]float32 {
	flat, width := x.Float32s(), x.Size("vocab")
	var rows [][]float32
	for ; len(flat) > 0; flat = flat[width:] {
		rows = append(rows, flat[:width])
	}
	return rows
}

// The perplexity of five texts as llama.cpp has it.
func TestModelPerplexity(t *testing.T) {
	var ref struct {
		Texts []struct {
			IDs      []int `json:"ids"`
			LogProbs struct {
				F32 []float64 `json:"f32"`
			} `json:"logprobs"`
		}
	}
	readJSON(t, "../../models/testdata/stories260K.nll.json", &ref)
	it := New(Config{Stdout: io.Discard})
	defer it.Close()
	total, n := 0.0, 0
	for _, text := range ref.Texts {
		rows := modelScores(t, it, stories, text.IDs)
		for i, next := range text.IDs[1:] {
			lp := logProb(rows[i], next)
			if d := math.Abs(lp - text.LogProbs.F32[i]); d > 1e-3 {
				t.Fatalf("token %d: log-probability %g, want %g", i+1, lp, text.LogProbs.F32[i])
			}
			total -= lp
			n++
		}
	}
	got := math.Exp(total / float64(n))
	t.Logf("perplexity %.6f over %d tokens", got, n)
	if math.Abs(got-3.54820) > 1e-4 {
		t.Errorf("perplexity %.6f, want 3.54820", got)
	}
}

func logProb(scores []float32, token int) float64 {
	top := math.Inf(-1)
	for _, x := range scores {
		top = max(top, float64(x))
	}
	sum := 0.0
	for _, x := range scores {
		sum += math.Exp(float64(x) - top)
	}
	return float64(scores[token]) - top - math.Log(sum)
}

// The greedy story that llama2.c prints for this model.
const story = `Once upon a time, there was a little girl named Lily. She loved to play outside in the park. ` +
	`One day, she saw a big, red ball. She wanted to play with it, but it was too high.` + "\n" +
	`Lily's mom said, "Lily, let's go to the park." Lily was sad and didn't know what to do. She said, "I want to ` +
	`play with your ball, but I can't find it."` + "\n" +
	`Lily was sad and didn't know what to do. She said, "I'm sorry, Lily. I didn't know what to do."`

func TestModelStory(t *testing.T) {
	var out strings.Builder
	it := New(Config{Stdout: &out})
	defer it.Close()
	src := `
m = load_model("` + stories + `")
prompt = "Once"
write(prompt)
for piece in m.generate(prompt, max_tokens=200):
    write(piece)
`
	if err := it.RunSource(context.Background(), "story.star", []byte(src)); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), story) {
		t.Errorf("got  %q\nwant %q …", out.String(), story)
	}
	if s := it.Env().Memory(); s.InUse != 0 {
		t.Errorf("%d bytes of tensors are still in use", s.InUse)
	}
}

// An error in the middle of a generation can be caught, and the script goes on.
func TestGenerationErrorsAreCaught(t *testing.T) {
	it := New(Config{Stdout: io.Discard, MemLimit: 200_000})
	defer it.Close()
	src := `
m = load_model("` + stories + `")
r = catch(lambda: list(m.generate("Once", max_tokens=2000)))
if r.error == None or "out of tensor memory" not in r.error:
    fail(r)
for bad in [dict(temperature=-1), dict(max_tokens=-5), dict(top_k=-1), dict(min_p=2), dict(top_p=float("nan"))]:
    if catch(m.generate, "Once", **bad).error == None:
        fail(bad)
text = "".join(list(m.generate("Once", max_tokens=4)))
`
	if err := it.RunSource(context.Background(), "test.star", []byte(src)); err != nil {
		t.Fatal(err)
	}
}
