package par

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// work computes for 50 µs.
func work() {
	for start := time.Now(); time.Since(start) < 50*time.Microsecond; {
	}
}

// waited is how many chunks run while another goroutine waits for a processor, the median of 31 times. fill runs chunks
// on all processors, counted in ran, until stop is set.
func waited(fill func(ran *atomic.Int64, stop *atomic.Bool)) int64 {
	var ran atomic.Int64
	var stop atomic.Bool
	done := make(chan bool)
	go func() {
		defer close(done)
		fill(&ran, &stop)
	}()
	var waits []int64
	for range 31 {
		time.Sleep(3 * time.Millisecond)
		before := ran.Load()
		runtime.Gosched() // to the end of the queue
		waits = append(waits, ran.Load()-before)
	}
	stop.Store(true)
	<-done
	slices.Sort(waits)
	return waits[len(waits)/2]
}

// A goroutine gets a processor after a few chunks though chunks run on all of them. The scheduler alone would give it
// one after 10 ms, which are 200 chunks.
func TestTurns(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	jobs := func(s *set, ctl *Control, ran *atomic.Int64, stop *atomic.Bool) {
		for !stop.Load() {
			s.split(ctl, 1000, 1, func(lo, hi int) {
				if !stop.Load() {
					work()
					ran.Add(1)
				}
			})
		}
	}
	fills := map[string]func(ran *atomic.Int64, stop *atomic.Bool){
		"workers": func(ran *atomic.Int64, stop *atomic.Bool) { jobs(newSet(procs), nil, ran, stop) },
		"callers": func(ran *atomic.Int64, stop *atomic.Bool) {
			s := newSet(procs)
			var callers sync.WaitGroup
			for range procs {
				callers.Go(func() { jobs(s, &Control{Workers: 1}, ran, stop) })
			}
			callers.Wait()
		},
	}
	for name, fill := range fills {
		n := waited(fill)
		t.Logf("%s: %d chunks", name, n)
		if n > int64(5*procs) {
			t.Errorf("%s: %d chunks of 50 µs ran while a goroutine waited for a processor", name, n)
		}
	}
}

// Goroutines that compute take turns with chunks as with any other goroutine, however short the jobs are.
func TestTurnsAreFair(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	runtime.GOMAXPROCS(1)
	var stop atomic.Bool
	var others atomic.Int64
	go func() {
		for !stop.Load() {
			work()
			others.Add(1)
		}
	}()
	defer stop.Store(true)
	for _, c := range []struct {
		ctl    *Control
		chunks int // of a job
	}{{nil, 100}, {nil, 4}, {&Control{}, 100}, {&Control{Workers: 1}, 4}} {
		s := newSet(1)
		var ran atomic.Int64
		others.Store(0)
		for begin := time.Now(); time.Since(begin) < 300*time.Millisecond; {
			s.split(c.ctl, c.chunks, 1, func(lo, hi int) {
				work()
				ran.Add(1)
			})
		}
		// A turn of 100 µs for every 10 ms of the other goroutine's would be a share of 0.01.
		n, other := ran.Load(), others.Load()
		t.Logf("jobs of %d chunks: %d chunks beside %d of another goroutine", c.chunks, n, other)
		if n < other/10 {
			t.Errorf("jobs of %d chunks: %d chunks ran beside %d of another goroutine, want half as many or more",
				c.chunks, n, other)
		}
	}
}
