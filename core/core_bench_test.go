package core

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

func BenchmarkAddScalar(b *testing.B) {
	e := NewEnv(0, 1)
	x := e.Tensor(dtype.F32, axis.Empty)
	y := e.Tensor(dtype.F32, axis.Empty)
	for b.Loop() {
		x.Add(y)
	}
}

func BenchmarkAdd4096(b *testing.B) {
	e := NewEnv(0, 1)
	l, _ := axis.Parse("a")
	x := e.Tensor(dtype.F32, l, 4096)
	y := e.Tensor(dtype.F32, l, 4096)
	for b.Loop() {
		x.Add(y).Free()
	}
}

// BenchmarkPlanHit is what names cost a call whose plan is known.
func BenchmarkPlanHit(b *testing.B) {
	e := NewEnv(0, 1)
	l, _ := axis.Parse("row col")
	x, w := e.Tensor(dtype.F32, l, 2, 3), e.Tensor(dtype.F32, l, 2, 3)
	c := e.enter(Lookup("dot"), &Dot{X: x, W: w, Axes: axisList("col")})
	c.gather()
	c.findPlan()
	for b.Loop() {
		c.findPlan()
	}
}

// BenchmarkCollection is a collection of garbage while another goroutine multiplies matrices: it waits for the kernel
// that runs. (With all processors multiplying it would also wait for its turn on one.)
func BenchmarkCollection(b *testing.B) {
	e := NewEnv(0, 1)
	in, _ := axis.Parse("row in")
	out, _ := axis.Parse("in out")
	x, w := e.Tensor(dtype.F32, in, 1024, 1024), e.Tensor(dtype.F32, out, 1024, 1024)
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				x.Dot(w, "in").Free()
			}
		}
	}()
	var times []time.Duration
	for b.Loop() {
		begin := time.Now()
		runtime.GC()
		times = append(times, time.Since(begin))
	}
	close(stop)
	<-done
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs/median")
	b.ReportMetric(float64(times[len(times)-1].Microseconds()), "µs/longest")
}
