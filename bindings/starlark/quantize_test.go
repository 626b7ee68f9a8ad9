package starlark

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/kernels/cpu"
)

// scriptIn is an interpreter that works in a folder of its own, which has the model stories.gguf.
func scriptIn(t *testing.T) (it *Interp, dir string) {
	t.Helper()
	dir = t.TempDir()
	data, err := os.ReadFile(stories)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "stories.gguf"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	it = New(Config{Stdout: io.Discard, Stderr: io.Discard})
	t.Cleanup(it.Close)
	it.Globals()["dir"] = star.String(dir + "/")
	return it, dir
}

// The perplexity of a quantized model, whose products are computed as floats, is that of llama.cpp, which rounds what
// it multiplies by to 8 bits: the difference is less than 1e-3 of it.
func TestQuantizedPerplexity(t *testing.T) {
	var ref struct {
		Texts []struct {
			IDs []int `json:"ids"`
		} `json:"texts"`
		Perplexity map[string]float64 `json:"perplexity"`
	}
	readJSON(t, "../../models/testdata/stories260K.nll.json", &ref)
	it, dir := scriptIn(t)
	recipes := []string{"f32", "f16", "bf16", "q8_0", "q4_0", "q5_1", "q4_k_m"}
	if testing.Short() || cpu.Current() == cpu.Generic {
		recipes = recipes[6:] // each takes long; TestModelPerplexity has f32
	}
	for _, recipe := range recipes {
		it.Globals()["recipe"] = star.String(recipe)
		if _, err := it.Eval(context.Background(), recipe,
			`quantize_model(dir + "stories.gguf", dir + recipe + ".gguf", recipe)`); err != nil {
			t.Fatal(err)
		}
		total, n := 0.0, 0
		for _, text := range ref.Texts {
			rows := modelScores(t, it, filepath.Join(dir, recipe+".gguf"), text.IDs)
			for i, next := range text.IDs[1:] {
				total -= logProb(rows[i], next)
				n++
			}
		}
		got, want := math.Exp(total/float64(n)), ref.Perplexity[recipe]
		t.Logf("%s: perplexity %.5f, want %.5f: %+.1e", recipe, got, want, got/want-1)
		if !(math.Abs(got/want-1) <= 1e-3) {
			t.Errorf("%s: perplexity %.5f, want %.5f", recipe, got, want)
		}
	}
}

// Along the text that llama.cpp writes by itself, 200 tokens, the most likely token is its own: in f32 and f16 always,
// which makes the texts the same, in blocks where its two best are more than 0.5 apart, as it rounds what it multiplies
// by to 8 bits.
func TestGreedyText(t *testing.T) {
	var ref map[string]json.RawMessage
	readJSON(t, "../../models/testdata/stories260K.greedy.json", &ref)
	var prompt []int
	if err := json.Unmarshal(ref["prompt"], &prompt); err != nil {
		t.Fatal(err)
	}
	it, dir := scriptIn(t)
	for recipe, apart := range map[string]float64{"f32": 0, "f16": 0, "q8_0": 0.5, "q4_0": 0.5, "q4_k_m": 0.5} {
		var text struct {
			IDs []int     `json:"ids"`
			Gap []float64 `json:"gap"` // between the scores of the two best
		}
		if err := json.Unmarshal(ref[recipe], &text); err != nil || len(text.IDs) != 200 || len(text.Gap) != 200 {
			t.Fatalf("%s: %d tokens, %v", recipe, len(text.IDs), err)
		}
		it.Globals()["recipe"] = star.String(recipe)
		if _, err := it.Eval(context.Background(), recipe,
			`quantize_model(dir + "stories.gguf", dir + recipe + ".gguf", recipe)`); err != nil {
			t.Fatal(err)
		}
		rows := modelScores(t, it, filepath.Join(dir, recipe+".gguf"), append(slices.Clone(prompt), text.IDs...))
		same, sure := 0, 0
		for i, want := range text.IDs {
			row := rows[len(prompt)-1+i]
			got := 0
			for j, x := range row {
				if x > row[got] {
					got = j
				}
			}
			if got == want {
				same++
			} else if text.Gap[i] >= apart {
				t.Errorf("%s: token %d is %d, llama.cpp's %d is %g ahead", recipe, i, got, want, text.Gap[i])
			}
			if text.Gap[i] > apart {
				sure++
			}
		}
		t.Logf("%s: %d of 200 are llama.cpp's, of which %d had to be", recipe, same, sure)
		if sure < 150 {
			t.Errorf("%s: only %d tokens are compared", recipe, sure)
		}
	}
}

// TestQuantizeModel looks at the report, at overrides, and at what becomes of the target after an error.
func TestQuantizeModel(t *testing.T) {
	it, dir := scriptIn(t)
	eval := func(src string) (string, error) {
		v, err := it.Eval(context.Background(), "test", src)
		if err != nil {
			return "", err
		}
		return v.String(), nil
	}
	tests := []struct{ src, want string }{
		{`[t["to"] for t in quantize_model(dir + "stories.gguf", dir + "a.gguf", "Q8_0", ` +
			`types={"attn_[qk]": "q4_0"}) if t["name"].startswith("blk.1.attn")]`,
			`["q4_0", "f32", "q8_0", "q4_0", "q8_0"]`},
		{`[t["bytes"] for t in quantize_model(dir + "stories.gguf", dir + "a.gguf", "f16")][:2]`, `[65536, 256]`},
		{`sorted(quantize_model(dir + "a.gguf", dir + "b.gguf", "q4_0")[1])`,
			`["bytes", "elements", "error", "from", "magnitude", "name", "to"]`},
	}
	for _, tt := range tests {
		if got, err := eval(tt.src); err != nil || got != tt.want {
			t.Errorf("%s\n got %s, %v\nwant %s", tt.src, got, err, tt.want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "text.dat"), []byte("once upon a time"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "b.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string]string{
		`quantize_model(dir + "stories.gguf", dir + "b.gguf", "q4_k_mm")`:                   `did you mean "q4_k_m"?`,
		`quantize_model(dir + "storys.gguf", dir + "b.gguf", "q4_0")`:                       `did you mean`,
		`quantize_model(dir + "b.gguf", dir + "b.gguf", "q8_0")`:                            "quantized already, as q",
		`quantize_model(dir + "stories.gguf", dir + "b.gguf", "q8_0", imatrix=dir + "no")`:  "cannot open",
		`quantize_model(dir + "stories.gguf", dir + "b.gguf", "q8_0", types={"q": 4})`:      "want a pattern and",
		`quantize_model(dir + "stories.gguf", dir + "b.gguf", "q8_0", types={"q": "q4_k"})`: "no multiple of the 256",
		`quantize_model(dir + "stories.gguf", dir + "b.gguf", "q8_0", types={"(": "q4_0"})`: "types:",
		`quantize_model(dir + "a.gguf", dir + "./a.gguf", "q8_0")`:                          "are one file",
		`quantize_model(dir + "stories.gguf", dir + "no/b.gguf", "q8_0")`:                   "cannot save",
		`quantize_model(dir + "stories.gguf", dir + "b.gguf", "q8_0", imatrix=dir + "text.dat")`: "importance matrix " +
			dir,
	}
	for src, want := range bad {
		if got, err := eval(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %s, %v\nwant %s", src, got, err, want)
		}
	}
	after, err := os.ReadFile(filepath.Join(dir, "b.gguf"))
	if err != nil || string(after) != string(before) {
		t.Errorf("an error changed the target, %v", err)
	}
	if names, err := filepath.Glob(filepath.Join(dir, ".*tmp")); len(names) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
