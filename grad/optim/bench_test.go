package optim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
	kernel "github.com/fucina-go/fucina/kernels/update"
)

// BenchmarkMatrix times a step of one 768 × 3072 matrix by every optimizer.
func BenchmarkMatrix(b *testing.B) {
	for _, info := range Rules() {
		b.Run(info.Name, func(b *testing.B) {
			env := core.NewEnv(0, 1)
			defer env.Close()
			w := env.Watch(env.Tensor(dtype.F32, rowCol, 768, 3072))
			values := make([]float32, w.Len())
			rng.FillNormal32(values, 0, 0, 0)
			g := env.Tensor(dtype.F32, rowCol, 768, 3072)
			g.Fill(values)
			env.SetGrad(w.Variable(), g)
			o := New(env, info.Name, info.LR, []Group{{Params: []Param{{"w", w}}, Rule: info.NewRule(), Name: info.Name,
				Scale: 1}})
			for b.Loop() {
				o.Step()
			}
		})
	}
}

// gpt2 is the shapes of GPT-2's 124 million parameters.
func gpt2() (sizes [][]int) {
	sizes = [][]int{{50257, 768}, {1024, 768}, {1, 768}, {1, 768}}
	for range 12 {
		sizes = append(sizes, []int{2304, 768}, []int{768, 768}, []int{3072, 768}, []int{768, 3072}, []int{1, 2304},
			[]int{1, 768}, []int{1, 3072}, []int{1, 768}, []int{1, 768}, []int{1, 768}, []int{1, 768}, []int{1, 768})
	}
	return sizes
}

// BenchmarkBandwidth times a step of 124 million f32 parameters and, in turn with it, the plain passes that say what
// the memory gives: copying, the triad z = x + 3y, and y = 3y in place, whose lines are read anyway, as those of a step
// are; all in the same chunks on the same workers. It prints the bytes read and written a second, of the steps and of
// the fastest plain pass before and after, and the ratio; medians.
//
//	go test -run - -bench Bandwidth -benchtime 9x ./grad/optim
func BenchmarkBandwidth(b *testing.B) {
	for _, workers := range []int{1, 2} {
		for _, name := range []string{"adamw", "sgd", "lion"} {
			b.Run(fmt.Sprintf("%s/threads=%d", name, workers), func(b *testing.B) { bandwidth(b, name, workers) })
		}
	}
}

func bandwidth(b *testing.B, name string, workers int) {
	env := core.NewEnv(0, workers)
	defer env.Close()
	g := Group{Rule: Lookup(Rules(), name).NewRule(), Name: name, Scale: 1}
	count := 0
	for i, s := range gpt2() {
		w := env.Watch(env.Tensor(dtype.F32, rowCol, s...))
		env.SetGrad(w.Variable(), env.Tensor(dtype.F32, rowCol, s...))
		g.Params = append(g.Params, Param{fmt.Sprint(i), w})
		count += s[0] * s[1]
	}
	o := New(env, name, 1e-4, []Group{g})
	o.Step()
	var three [3]*core.Tensor
	for i := range three {
		three[i] = env.Tensor(dtype.F32, rowCol, 1<<15, 1<<10)
	}
	pass := func(writes int, f func(int, [][]float32), ts ...*core.Tensor) float64 {
		begin := time.Now()
		(&core.Sweep{Writes: writes, F32: f}).Run(env, ts...)
		return float64(4*len(ts)*ts[0].Len()) / time.Since(begin).Seconds()
	}
	streams := map[string]int{"adamw": 7, "sgd": 3, "lion": 5}[name]
	var steps, plain, ratio []float64
	fastest := func() float64 {
		copying := pass(1, copies[float32], three[0], three[1])
		triad := pass(1, func(_ int, xs [][]float32) { kernel.Combine(xs[0], xs[1], xs[2], 1, 3) }, three[:]...)
		inPlace := 2 * pass(1, func(_ int, xs [][]float32) { kernel.Combine(xs[0], xs[0], xs[0], 1, 2) }, three[0])
		return max(copying, triad, inPlace)
	}
	b.ResetTimer()
	before := fastest()
	for range b.N {
		begin := time.Now()
		o.Step()
		step := float64(4*streams*count) / time.Since(begin).Seconds()
		after := fastest()
		around := (before + after) / 2
		steps, plain, ratio = append(steps, step), append(plain, around), append(ratio, step/around)
		before = after
	}
	b.ReportMetric(median(steps)/1e9, "GB/s")
	b.ReportMetric(median(plain)/1e9, "plain-GB/s")
	b.ReportMetric(median(ratio), "of-plain")
	b.ReportMetric(float64(count)/1e6, "M-params")
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
