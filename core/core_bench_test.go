package core

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
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

// BenchmarkCollection is a collection of garbage while goroutines multiply matrices: none, one alone, one with a worker
// on every processor, or one alone on each. It waits for the kernels that run, and unless a processor is free for turns
// between their chunks. A collection counts as undisturbed if the threads of this process waited less than 100 µs for
// processors that other programs had.
func BenchmarkCollection(b *testing.B) {
	b.Run("idle", func(b *testing.B) { benchCollection(b, 0, 1) })
	b.Run("alone", func(b *testing.B) { benchCollection(b, 1, 1) })
	b.Run("workers", func(b *testing.B) { benchCollection(b, 1, 0) })
	b.Run("callers", func(b *testing.B) { benchCollection(b, runtime.GOMAXPROCS(0), 1) })
}

// benchCollection measures runtime.GC beside the products of so many callers with so many workers each, and for how
// long the world stood still in it.
func benchCollection(b *testing.B, callers, workers int) {
	in, _ := axis.Parse("row in")
	out, _ := axis.Parse("in out")
	var stop atomic.Bool
	var done sync.WaitGroup
	for range callers {
		e := NewEnv(0, workers)
		x, w := e.Tensor(dtype.F32, in, 1024, 1024), e.Tensor(dtype.F32, out, 1024, 1024)
		done.Go(func() {
			for !stop.Load() {
				x.Dot(w, "in").Free()
			}
		})
	}
	var times, undisturbed, pauses []time.Duration
	var stats debug.GCStats
	for b.Loop() {
		delay, begin := processorDelay(), time.Now()
		runtime.GC()
		took := time.Since(begin)
		if times = append(times, took); processorDelay()-delay < 100*time.Microsecond {
			undisturbed = append(undisturbed, took)
		}
		debug.ReadGCStats(&stats)
		pauses = append(pauses, stats.Pause[0])
	}
	stop.Store(true)
	done.Wait()
	slices.Sort(times)
	slices.Sort(pauses)
	report := func(d time.Duration, unit string) { b.ReportMetric(float64(d.Microseconds()), unit) }
	report(times[len(times)/2], "µs/median")
	report(times[len(times)*99/100], "µs/p99")
	report(pauses[len(pauses)*99/100], "µs/p99-pause")
	report(times[len(times)-1], "µs/longest")
	b.ReportMetric(100*float64(len(undisturbed))/float64(len(times)), "%undisturbed")
	if len(undisturbed) > 0 {
		report(slices.Max(undisturbed), "µs/longest-undisturbed")
	}
}

// processorDelay is for how long the threads of this process could have run and waited for a processor, as Linux counts
// it in /proc: what runs besides takes that. Elsewhere it is 0.
func processorDelay() (sum time.Duration) {
	files, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, file := range files {
		var ran, waited int64
		if data, err := os.ReadFile(file); err == nil {
			fmt.Sscan(string(data), &ran, &waited)
			sum += time.Duration(waited)
		}
	}
	return sum
}
