package fucina_test

import (
	"context"
	"errors"
	"math/rand"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fucina-go/fucina"
	"github.com/fucina-go/fucina/core"
)

// closed is what goes on for ever when its interpreter is closed.
var closed = map[string]string{
	"steps of training": `
w = variable(randn(out=8, in_=64))
opt = optim.adamw({"w": w})
x = randn(batch=32, in_=64)
for i in steps(1 << 30):
    backward((x.dot(w, "in").tanh() - 0.5).square().mean())
    opt.step()
    opt.zero_grad()
    turn(i)`,
	"a generation": `
m = load_model("stories.gguf")
for i in range(1 << 30):
    for piece in m.generate("Once", max_tokens=100):
        turn(i)`,
	"loading": `
for i in steps(1 << 30):
    load_model("stories.gguf")
    turn(i)`,
	"saving": `
x = randn(a=100, b=100)
for i in steps(1 << 30):
    save_npy("x.npy", x)
    turn(i)`,
}

// TestClosedInTheMidst closes interpreters from another goroutine while they train, generate, load and save. The run
// goes on until its context ends, as if nothing had been; then the interpreter is closed, and a tensor that the program
// took before is still its own.
func TestClosedInTheMidst(t *testing.T) {
	weights, err := os.ReadFile("examples/data/stories260K.gguf")
	if err != nil {
		t.Fatal(err)
	}
	for name, work := range closed {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits
			root, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			turns := make(chan int)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := fucina.New(fucina.Save(root), fucina.Builtin("turn", func(i int) {
				select {
				case turns <- i:
				case <-ctx.Done():
				}
			}))
			files := fstest.MapFS{"stories.gguf": {Data: weights},
				"work.star": {Data: []byte("kept = arange(1000, \"a\", dtype=\"f32\")\n" + work)},
				"call.star": {Data: []byte("def f(): pass\n")}}
			ended := make(chan error)
			go func() { ended <- p.Run(ctx, files, "work.star", nil) }()
			turn := func() {
				select {
				case <-turns:
				case err := <-ended:
					t.Fatal(err)
				}
			}
			turn()
			time.Sleep(time.Duration(rand.Intn(5)) * time.Millisecond)
			for range 2 {
				p.Close()
			}
			for range 3 {
				turn()
			}
			if err := p.Run(ctx, files, "call.star", nil); err == nil || !strings.Contains(err.Error(), "was closed") {
				t.Errorf("a run after Close: %v", err)
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the run ended with %v", err)
			}
			var kept *core.Tensor
			if err := p.Get("kept", &kept); err != nil {
				t.Fatal(err)
			}
			if got := kept.Float32s(); len(got) != 1000 || got[999] != 999 {
				t.Errorf("the tensor has %d elements, of which the last is %v", len(got), got[len(got)-1])
			}
		})
	}
}
