package starlark

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	star "go.starlark.net/starlark"
)

// A cancelled context stops what is running within 50 ms, whatever it is, and loses nothing: the
// variables are there and the next line works. The best of three tries counts, because the machine may
// be busy with something else.
func TestInterrupts(t *testing.T) {
	if testing.Short() {
		t.Skip("times out of the ordinary under the race detector")
	}
	for name, c := range map[string]struct{ setup, src string }{
		"a matmul of half a minute": {`x = ones(i=4096, k=4096)
w = ones(j=4096, k=4096)`, `x.dot(w, "k")`},
		"an inner product":       {`x = ones(k=1 << 24, i=20)`, `x.dot(x.rename(i="j"), "k")`},
		"a softmax of long rows": {`x = ones(row=64, i=1 << 20)`, "[x.softmax(\"i\").free() for _ in range(100)]"},
		"an attention":           {`x = ones(seq=8192, head=8, head_dim=64)`, `attention(x, x, x)`},
		"a permuted copy": {`x = ones(i=4096, j=1 << 15)`,
			"[x.order(\"j i\").copy().free() for _ in range(100)]"},
		"an endless loop": {"", "while True:\n    pass"},
		"a generation": {`m = load_model("` + stories + `")`,
			"for _ in range(1000):\n    list(m.generate(\"Once\", max_tokens=500))"},
		"an encoding": {`m = load_model("` + stories + `")
text = "once upon a time, " * (1 << 20)`, "m.tokenize(text)"},
		"an encoding of one word": {`b = bpe_train("ab" * 5000, 300)
text = "ba" * (1 << 22)`, "b.encode(text)"},
		"a training": {`text = "".join([str(i * i) + " " for i in range(1 << 19)])`,
			"bpe_train(text, 50000)"},
		"a conversion to bool": {`x = ones(i=1 << 26)`, "[x.cast(\"bool\").free() for _ in range(100)]"},
	} {
		t.Run(name, func(t *testing.T) {
			it := New(Config{Stdout: io.Discard})
			defer it.Close()
			if _, err := it.Eval(context.Background(), "setup", c.setup+"\nkept = 41\n"); err != nil {
				t.Fatal(err)
			}
			best := time.Hour
			for range 3 {
				ctx, cancel := context.WithCancel(context.Background())
				var stopped time.Time
				timer := time.AfterFunc(150*time.Millisecond, func() {
					stopped = time.Now()
					cancel()
				})
				_, err := it.Eval(ctx, "work", c.src)
				took := time.Since(stopped)
				if timer.Stop() || !errors.Is(err, context.Canceled) {
					t.Fatalf("ended with %v before it was interrupted", err)
				}
				cancel()
				best = min(best, took)
				if v, err := it.Eval(context.Background(), "after", "kept + 1"); err != nil || v.String() != "42" {
					t.Fatalf("afterwards: %v, %v", v, err)
				}
				if best < 50*time.Millisecond {
					return
				}
			}
			t.Errorf("stopped %v after the interrupt, want at most 50 ms", best)
		})
	}
}

// An interrupted operation gives its memory back.
func TestInterruptLeavesNothing(t *testing.T) {
	it := New(Config{Stdout: io.Discard})
	defer it.Close()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	const work = "def f():\n    for i in range(1 << 30):\n        x = ones(a=100000).exp()\nscope(f)\n"
	_, err := it.Eval(ctx, "work", work)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if s := it.Env().Memory(); s.InUse != 0 {
		t.Errorf("%d bytes in use after an interrupt", s.InUse)
	}
}

// A model file that is truncated while it is in use is an error at the script's line.
func TestTruncatedModel(t *testing.T) {
	data, err := os.ReadFile(stories)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	it := New(Config{Stdout: io.Discard})
	defer it.Close()
	it.Globals()["path"] = star.String(path)
	if _, err := it.Eval(context.Background(), "load", "m = load_model(path)"); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 16384); err != nil {
		t.Skipf("the system does not truncate a mapped file: %v", err)
	}
	_, err = it.Eval(context.Background(), "use", "text = \"\".join(list(m.generate(\"Once\")))")
	if err == nil || !strings.Contains(err.Error(), "model.gguf changed or shrank while it was mapped") {
		t.Fatalf("got %v", err)
	}
	if v, err := it.Eval(context.Background(), "after", "1 + 1"); err != nil || v.String() != "2" {
		t.Fatalf("afterwards: %v, %v", v, err)
	}
}
