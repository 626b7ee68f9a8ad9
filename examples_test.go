package fucina

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/bindings/plot"
	"github.com/fucina-go/fucina/bindings/starlark"
	"github.com/fucina-go/fucina/kernels/cpu"
)

// runExample runs a script from the root of the project and returns what it prints.
func runExample(t *testing.T, path string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	it := starlark.New(starlark.Config{Stdout: &out, Args: args})
	defer it.Close()
	plot.Add(it)
	if err := it.RunFile(context.Background(), path); err != nil {
		t.Fatalf("%v", err)
	}
	return out.String()
}

// needsAssembly skips what takes many minutes in plain Go, where a fused multiply-add is emulated.
func needsAssembly(t *testing.T) {
	t.Helper()
	if cpu.Current() == cpu.Generic {
		t.Skip("trains a model, which takes many minutes without assembly")
	}
}

// Every example runs and prints something.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("examples/*.star")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err == nil && strings.Contains(string(src), "optim.") {
				needsAssembly(t)
			}
			if runExample(t, file) == "" {
				t.Error("printed nothing")
			}
		})
	}
}

// The small Qwen 3 of the example is saved in four types, which load as models that say nearly the same.
func TestTinyQwen3(t *testing.T) {
	if testing.Short() {
		t.Skip("trains the model of TestExamples once more")
	}
	needsAssembly(t)
	dir := t.TempDir()
	runExample(t, "examples/tiny_qwen3.star", dir)
	it := starlark.New(starlark.Config{Dir: dir})
	defer it.Close()
	if _, err := it.Eval(context.Background(), "compare", `
names = ["model.gguf", "model-f16.gguf", "model-q8_0.gguf", "model-q4_k_m.gguf"]
models = [load_model(name) for name in names]
ids = models[0].tokenize("What, my lord, is the matter with the king?")
scores = [m.logits(ids).log_softmax("vocab") for m in models]
`); err != nil {
		t.Fatal(err)
	}
	v, err := it.Eval(context.Background(), "compare",
		`[(s.exp() * (s - scores[0])).sum("vocab").abs().max().item() for s in scores]`)
	if err != nil {
		t.Fatal(err)
	}
	for i, most := range []float64{0, 1e-6, 1e-4, 5e-3} {
		if d, _ := star.AsFloat(v.(*star.List).Index(i)); !(d <= most) {
			t.Errorf("file %d: divergence %g, want at most %g", i, d, most)
		}
	}
}

// The files for other programs to read are written.
func TestFilesForReaders(t *testing.T) {
	dir := t.TempDir()
	if got, want := runExample(t, "examples/readers/write.star", dir), "13 files in "+dir+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The README shows the tour and what it really prints.
func TestReadmeTour(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("examples/tour.star")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(script), "\n"); n > 30 {
		t.Errorf("the tour has %d lines, want at most 30", n)
	}
	if diff := cmp.Diff(string(script), block(t, string(readme), "```python\n")); diff != "" {
		t.Errorf("README and examples/tour.star differ:\n%s", diff)
	}
	if diff := cmp.Diff(runExample(t, "examples/tour.star"), block(t, string(readme), "prints\n\n```\n")); diff != "" {
		t.Errorf("README and the tour's output differ:\n%s", diff)
	}
}

// block is the code block of text that begins with open.
func block(t *testing.T, text, open string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, open)
	code, _, closed := strings.Cut(rest, "```\n")
	if !ok || !closed {
		t.Fatalf("no block begins with %q", open)
	}
	return code
}

// The example programs build and do what their comments say.
func TestExamplePrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	for _, c := range []struct {
		args  []string
		stdin string // a file
		want  []string
	}{
		{[]string{"./examples/service", "-once"}, os.DevNull,
			[]string{"200: sigmoid(3) = 0.9526, slope 0.0452\n", "400: "}},
		{[]string{"./examples/pipeline", "examples/pipeline/rules.star"}, "examples/pipeline/rows.csv",
			[]string{"  a        0.573\n", "* d        1.732\n"}},
		{[]string{"./examples/plugin"}, os.DevNull, []string{"Hinge is max(0, 1 - x)", "f32[row=2] [1.25,    0]\n"}},
	} {
		t.Run(filepath.Base(c.args[0]), func(t *testing.T) {
			stdin, err := os.Open(c.stdin)
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			cmd := exec.Command("go", append([]string{"run"}, c.args...)...)
			cmd.Stdin = stdin
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("printed\n%s\nwant in it %q", out, want)
				}
			}
		})
	}
}

// Training the small GPT gives the same bits for any number of workers, and so does what it computes without
// gradients.
func TestTrainingBits(t *testing.T) {
	needsAssembly(t)
	const tiny = "layers = 2, heads = 2, embed = 32, seq = 32, batch = 8, steps = 60"
	src, err := os.ReadFile("examples/char_gpt.star")
	if err != nil {
		t.Fatal(err)
	}
	text := string(src)
	if !strings.Contains(text, tiny) {
		t.Fatalf("char_gpt.star has no %q", tiny)
	}
	// Wide enough that every operation is shared among the workers.
	text = strings.Replace(text, tiny, "layers = 1, heads = 4, embed = 128, seq = 64, batch = 6, steps = 50", 1)
	var want []string
	all := []int{1, 2, 3, 8}
	if testing.Short() { // with the race detector each takes long
		all = []int{1, 8}
	}
	for _, workers := range all {
		var out bytes.Buffer
		it := starlark.New(starlark.Config{Stdout: &out, Threads: workers})
		if err := it.RunSource(context.Background(), "char_gpt.star", []byte(text)); err != nil {
			t.Fatal(err)
		}
		v, err := it.Eval(context.Background(), "weights", "[p.tolist() for p in opt.params.values()] + "+
			"[no_grad(validate)]")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for item := range star.Elements(v.(*star.List)) {
			got = append(got, item.String())
		}
		it.Close()
		if want == nil {
			want = got
		}
		if len(got) != 12 || !slices.Equal(got, want) {
			t.Errorf("%d workers give other weights than 1", workers)
		}
	}
}
