package starlark

import (
	"context"
	"errors"
	"io"
	"math/rand"
	"path/filepath"
	"sync"
	"testing"
	"time"

	star "go.starlark.net/starlark"
)

// What is cancelled again and again: it goes on for ever. Its files are those of one interpreter.
var cancelled = map[string]string{
	"training": `
def go():
    w = variable(randn(out=8, in_=64))
    opt = optim.adamw({"w": w})
    x = randn(batch=32, in_=64)
    for i in steps(1 << 30):
        backward((x.dot(w, "in").tanh() - 0.5).square().mean())
        opt.step()
        opt.zero_grad()
go()`,
	"a checkpoint": `
def go():
    w = variable(randn(out=64, in_=64))
    opt = optim.adamw({"w": w})
    save_checkpoint(file, w=w, opt=opt)
    for i in steps(1 << 30):
        save_checkpoint(file, w=w, opt=opt)
        load_checkpoint(file, w=w, opt=opt)
go()`,
	"a generation": `for i in range(1 << 30): list(m.generate("Once", max_tokens=40, seed=i, temperature=1.0))`,
	"generations":  `for i in range(1 << 30): list(m.generate(["Once", "The cat", "One day"], max_tokens=40))`,
	"a cache": `
def go():
    for i in steps(1 << 30):
        c = m.cache()
        list(m.generate("Once upon a time", max_tokens=5, cache=c))
        list(m.generate(" there was", max_tokens=5, cache=c))
go()`,
	"loading": `for i in steps(1 << 30): load_model(path)`,
	"encoding": `
text = "once upon a time, " * 1000
for i in range(1 << 30): m.tokenize(text)`,
	"gradients": `
def go():
    q = variable(randn(seq=100, head=2, head_dim=8))
    for i in steps(1 << 30):
        grad(checkpoint(lambda: attention(q, q, q)).square().sum(), q)
go()`,
	"changes": `
x = zeros(row=300, col=300)
for i in steps(1 << 30): x.set(i, row=(i % 300, None))`,
}

// checked fails unless the interpreter is as good as new.
const checked = `
def check():
    equal("".join(list(m.generate("Once", max_tokens=3, temperature=0))), " upon a time")
    w = variable(ones(out=4, in_=300))
    opt = optim.sgd({"w": w}, lr=0.5)
    for i in steps(2):
        backward(w.dot(ones(in_=300), "in").sum())
        opt.step()
        opt.zero_grad()
    equal(w.sum().item(), 0.0)
scope(check)
`

// TestCancelledAgainAndAgain cancels two interpreters that run at the same time and read one file of weights, at any
// time and in the midst of anything. Afterwards each computes as before, and holds no more memory.
func TestCancelledAgainAndAgain(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	var wg sync.WaitGroup
	for range 2 {
		it := talking(t, Config{Stdout: io.Discard})
		it.Predeclare("path", star.String(stories))
		it.Predeclare("file", star.String(filepath.ToSlash(t.TempDir())+"/w.safetensors"))
		run := func(timeout time.Duration, name, src string) error {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			return it.RunSource(ctx, name, []byte(src))
		}
		r := rand.New(rand.NewSource(rand.Int63()))
		wg.Go(func() {
			if err := run(time.Minute, "check", checked); err != nil {
				t.Error(err)
				return
			}
			it.Env().Collect()
			before := it.Env().Memory().InUse
			for range rounds {
				for name, src := range cancelled {
					timeout := time.Duration(r.Int63n(int64(15 * time.Millisecond)))
					if err := run(timeout, name, src); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s ended after %v with: %v", name, timeout, err)
					}
				}
				if err := run(time.Minute, "check", checked); err != nil {
					t.Error(err)
				}
			}
			clear(it.Globals())
			it.Env().Collect()
			if after := it.Env().Memory().InUse; after != before {
				t.Errorf("%d bytes of tensors in use, %d before", after, before)
			}
		})
	}
	wg.Wait()
}
