package starlark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// sharedWeights is a weight that any interpreter may read.
func sharedWeights(t testing.TB) Tensor {
	t.Helper()
	axes, err := axis.Parse("out in")
	if err != nil {
		t.Fatal(err)
	}
	env := core.NewEnv(0, 0)
	w := env.Tensor(dtype.F32, axes, 64, 64)
	values := make([]float32, 64*64)
	for i := range values {
		values[i] = float32(i%13)/13 - 0.5
	}
	w.Fill(values)
	return Tensor{w.Share()}
}

const sharedWork = `
def turn(i):
    x = full(i, row=3, in_=64)
    for k in range(5):
        x = x.dot(w, "in").rename(out="in").tanh() + x * 0.5
    return x.sum()
total = 0.0
for i in steps(n):
    total = total + turn(i).item()
`

// Interpreters on several goroutines share weights, are cancelled and panic, and none disturbs another.
func TestInterpretersShareWeights(t *testing.T) {
	w := sharedWeights(t)
	want := work(t, w, 20)
	for _, n := range []int{2, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var wg sync.WaitGroup
			for g := range n {
				wg.Go(func() {
					it := New(Config{Stdout: io.Discard, MaxSteps: 1e7})
					defer it.Close()
					it.Predeclare("w", w)
					it.Predeclare("crash", star.NewBuiltin("crash", func(
						*star.Thread, *star.Builtin, star.Tuple, []star.Tuple,
					) (star.Value, error) {
						panic("on purpose")
					}))
					for turn := range 6 {
						switch (turn + g) % 3 {
						case 0:
							if got := work(t, w, 20); got != want {
								t.Errorf("got %v, want %v", got, want)
							}
						case 1:
							ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
							err := it.RunSource(ctx, "endless", []byte("n = 1 << 30\n"+sharedWork))
							cancel()
							if !errors.Is(err, context.DeadlineExceeded) {
								t.Errorf("got %v, want the deadline", err)
							}
						case 2:
							err := it.RunSource(context.Background(), "panics", []byte("scope(lambda: crash(w.sum()))"))
							if err == nil || !strings.Contains(err.Error(), "on purpose") {
								t.Errorf("got %v, want the panic", err)
							}
						}
					}
					it.Env().Collect() // an interrupted turn of steps belongs to nobody
					if s := it.Env().Memory(); s.InUse != 0 {
						t.Errorf("%d bytes in use at the end", s.InUse)
					}
				})
			}
			wg.Wait()
		})
	}
	if got := work(t, w, 20); got != want {
		t.Errorf("afterwards: got %v, want %v", got, want)
	}
}

// work runs the shared work in an interpreter of its own.
func work(t testing.TB, w Tensor, n int) string {
	it := New(Config{Stdout: io.Discard})
	defer it.Close()
	it.Predeclare("w", w)
	it.Predeclare("n", star.MakeInt(n))
	if err := it.RunSource(context.Background(), "work", []byte(sharedWork)); err != nil {
		t.Error(err)
	}
	return it.Globals()["total"].String()
}

// A host may make interpreters by the thousand, each with names of its own: what the process keeps of
// them is bounded by the plan caches, and does not grow.
func TestInterpretersLeakNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds under the race detector")
	}
	w := sharedWeights(t)
	made := 0
	round := func(turns int) (lists int) {
		for range turns {
			it := New(Config{Stdout: io.Discard})
			it.Predeclare("w", w)
			src := strings.ReplaceAll("x_N = ones(axis_N=1000, other=3)\n"+
				"kept = [x_N.sum(\"axis_N\") + i for i in range(3)]\n"+
				"y = w.sum(\"in\")\n", "N", fmt.Sprint(made))
			made++
			if err := it.RunSource(context.Background(), "script", []byte(src)); err != nil {
				t.Fatal(err)
			}
			it.Close()
		}
		lists = axis.Interned()
		for range 20 { // dead lists leave the table when the collector's clean-ups have run
			runtime.GC()
			time.Sleep(10 * time.Millisecond)
			lists = min(lists, axis.Interned())
		}
		return lists
	}
	routines := runtime.NumGoroutine()
	before := round(500)
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	after := round(1000)
	runtime.ReadMemStats(&end)
	if after > before+before/10 {
		t.Errorf("%d lists of axis names after 500 interpreters, %d after 1,500", before, after)
	}
	if grown := int64(end.HeapAlloc) - int64(start.HeapAlloc); grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes over 1,000 interpreters", grown)
	}
	if n := runtime.NumGoroutine(); n > routines+2 {
		t.Errorf("%d goroutines before, %d after", routines, n)
	}
}

// BenchmarkInterpreters measures the work that eight interpreters do at once: with one thread each, and
// with the process-wide workers at their disposal.
func BenchmarkInterpreters(b *testing.B) {
	for _, threads := range []int{1, 0} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					it := New(Config{Stdout: io.Discard, Threads: threads})
					defer it.Close()
					src := fmt.Sprintf(`
x = ones(row=64, in_=256)
w = ones(out=256, in_=256)
def f():
    for i in range(%d):
        x.dot(w, "in").free()
f()
`, b.N)
					if err := it.RunSource(context.Background(), "bench", []byte(src)); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
		})
	}
}
