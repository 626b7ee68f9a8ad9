package par

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// newTestSet has more processors than the callers of any test, so that nothing
// is crowded on a small machine either.
func newTestSet() *set { return newSet(64) }

// split is Split on a set of the test's own.
func split(s *set, ctl *Control, n, grain int, f func(lo, hi int)) bool {
	grain = max(grain, 1)
	if n <= grain {
		return alone(ctl, n, grain, f, nil)
	}
	return s.split(ctl, n, grain, f)
}

// checkCover fails unless the recorded ranges are whole chunks that cover [0, n) once.
func checkCover(t rapid.TB, s *set, workers, n, grain int) {
	t.Helper()
	seen := make([]int32, max(n, 0))
	var bad atomic.Pointer[string]
	all := split(s, &Control{Workers: workers}, n, grain, func(lo, hi int) {
		g := max(grain, 1)
		if lo%g != 0 || lo >= hi || hi > n || hi != n && hi-lo != g {
			m := fmt.Sprintf("range [%d, %d) with n %d, grain %d", lo, hi, n, grain)
			bad.Store(&m)
			return
		}
		for i := lo; i < hi; i++ {
			seen[i]++
		}
	})
	if !all {
		t.Fatalf("workers %d, n %d, grain %d: Split returned false", workers, n, grain)
	}
	if m := bad.Load(); m != nil {
		t.Fatal(*m)
	}
	for i, c := range seen {
		if c != 1 {
			t.Fatalf("workers %d, n %d, grain %d: index %d ran %d times", workers, n, grain, i, c)
		}
	}
}

func TestSplitCoversEveryIndexOnce(t *testing.T) {
	s := newTestSet()
	for _, workers := range []int{1, 2, 3, 8} {
		for _, n := range []int{-3, 0, 1, 2, 7, 64, 65, 1000} {
			for _, grain := range []int{-1, 0, 1, 3, 64, 2000} {
				checkCover(t, s, workers, n, grain)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(t, "workers")
		n := rapid.IntRange(0, 3000).Draw(t, "n")
		grain := rapid.IntRange(1, 300).Draw(t, "grain")
		checkCover(t, s, workers, n, grain)
	})
}

func TestSplitOnTheSharedSet(t *testing.T) {
	var sum atomic.Int64
	if !Split(nil, 1000, 7, func(lo, hi int) { sum.Add(int64(hi - lo)) }) || sum.Load() != 1000 {
		t.Fatalf("ran %d of 1000 elements", sum.Load())
	}
}

func TestHugeRangesStayMultiplesOfTheGrain(t *testing.T) {
	const n = math.MaxInt
	var sum, odd atomic.Int64
	ctl := &Control{Workers: 2}
	newTestSet().split(ctl, n, 3, func(lo, hi int) {
		if lo%3 != 0 {
			odd.Add(1)
		}
		if sum.Add(int64(hi-lo)) > 1<<20 {
			ctl.Stop()
		}
	})
	if odd.Load() != 0 {
		t.Fatalf("%d ranges do not start at a multiple of the grain", odd.Load())
	}
}

func TestWorkersTakePart(t *testing.T) {
	s := newTestSet()
	var meet sync.WaitGroup
	meet.Add(4)
	// Returns only if four goroutines run chunks at the same time.
	s.split(&Control{Workers: 4}, 4, 1, func(lo, hi int) {
		meet.Done()
		meet.Wait()
	})
	if len(s.workers) != 3 {
		t.Errorf("set has %d workers after a job for 4, want 3", len(s.workers))
	}
	var running, most atomic.Int64
	s.split(&Control{Workers: 2}, 200, 1, func(lo, hi int) {
		if r := running.Add(1); r > most.Load() {
			most.Store(r)
		}
		time.Sleep(20 * time.Microsecond)
		running.Add(-1)
	})
	if most.Load() > 2 {
		t.Errorf("%d goroutines ran chunks of a job for 2", most.Load())
	}
}

func TestWorkersAreBounded(t *testing.T) {
	s := newTestSet()
	s.split(&Control{Workers: 100_000}, 2000, 1, func(lo, hi int) {})
	if len(s.workers) > maxWorkers-1 {
		t.Errorf("set has %d workers, want at most %d", len(s.workers), maxWorkers-1)
	}
}

func TestStop(t *testing.T) {
	s := newTestSet()
	for _, workers := range []int{1, 2, 8} {
		ctl := &Control{Workers: workers}
		var ran, late atomic.Int64
		all := s.split(ctl, 100_000, 1, func(lo, hi int) {
			if ctl.Stopped() {
				late.Add(1)
			}
			if ran.Add(1) == 10 {
				ctl.Stop()
			}
		})
		if all {
			t.Errorf("workers %d: stopped Split returned true", workers)
		}
		// Every other goroutine may be between its check and its chunk when Stop is called.
		if l := late.Load(); l >= int64(workers) {
			t.Errorf("workers %d: %d chunks began after Stop", workers, l)
		}
		if !ctl.Stopped() || split(s, ctl, 1, 5, func(lo, hi int) { t.Error("ran while stopped") }) {
			t.Errorf("workers %d: Control does not stay stopped", workers)
		}
		if !split(s, ctl, 0, 5, nil) {
			t.Errorf("workers %d: an empty Split is complete even when stopped", workers)
		}
		ctl.Reset()
		checkCover(t, s, workers, 100, 1)
	}
}

func TestStopInTheLastChunkIsComplete(t *testing.T) {
	s := newTestSet()
	for range 100 {
		ctl := &Control{Workers: 3}
		var ran atomic.Int64
		all := s.split(ctl, 5, 1, func(lo, hi int) {
			if ran.Add(1) == 5 {
				ctl.Stop()
			}
		})
		if !all || ran.Load() != 5 {
			t.Fatalf("Split returned %v after %d of 5 chunks", all, ran.Load())
		}
	}
}

type typedError struct{ what string }

func (e *typedError) Error() string { return e.what }

// caught returns what f panics with.
func caught(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// onWorker calls f in one worker while the caller waits in a chunk for it to begin.
func onWorker(s *set, f func()) {
	begun, me := make(chan bool), goid()
	var once sync.Once
	s.split(&Control{Workers: 2}, 2, 1, func(lo, hi int) {
		if goid() == me {
			<-begun
			return
		}
		once.Do(func() { close(begun) })
		f()
	})
}

// goid returns the first line of the goroutine's stack trace, which names it.
func goid() string {
	b := make([]byte, 64)
	line, _, _ := strings.Cut(string(b[:runtime.Stack(b, false)]), "[")
	return line
}

func TestPanicInWorker(t *testing.T) {
	s := newTestSet()
	want := &typedError{"axis is gone"}
	if got := caught(func() { onWorker(s, func() { panic(want) }) }); got != want {
		t.Errorf("typed panic arrived as %v", got)
	}
	got := caught(func() {
		var empty []int
		onWorker(s, func() { empty[len(empty)]++ })
	})
	we, ok := got.(*WorkerError)
	if !ok {
		t.Fatalf("index panic arrived as %T", got)
	}
	var re runtime.Error
	if !errors.As(we.Err, &re) || !strings.Contains(we.Error(), "TestPanicInWorker") {
		t.Errorf("worker error lacks its cause or its stack: %v", we)
	}
	if got := caught(func() { onWorker(s, runtime.Goexit) }); got != errGoexit {
		t.Errorf("Goexit in a worker arrived as %v", got)
	}
	checkCover(t, s, 8, 1000, 1)
}

func TestPanicInCaller(t *testing.T) {
	s := newTestSet()
	want := &typedError{"axis is gone"}
	me := goid()
	for _, workers := range []int{1, 2, 8} {
		var ran atomic.Int64
		got := caught(func() {
			s.split(&Control{Workers: workers}, 100_000, 1, func(lo, hi int) {
				if ran.Add(1); goid() == me {
					panic(want)
				}
			})
		})
		if got != want {
			t.Errorf("workers %d: panic arrived as %v", workers, got)
		}
		if ran.Load() == 100_000 {
			t.Errorf("workers %d: all chunks ran after a panic", workers)
		}
		checkCover(t, s, workers, 100, 1)
	}
	if c := s.callers.Load(); c != 0 {
		t.Errorf("%d callers counted after all panicked", c)
	}
}

func TestNested(t *testing.T) {
	s := newTestSet()
	var sum atomic.Int64
	s.split(&Control{Workers: 4}, 50, 1, func(lo, hi int) {
		s.split(&Control{Workers: 4}, 20, 3, func(lo, hi int) { sum.Add(int64(hi - lo)) })
	})
	if sum.Load() != 50*20 {
		t.Errorf("nested Split ran %d of %d elements", sum.Load(), 50*20)
	}
}

func TestConcurrentCallers(t *testing.T) {
	for _, procs := range []int{2, 64} { // crowded, and not
		s := newSet(procs)
		var wg sync.WaitGroup
		for c := range 6 {
			wg.Go(func() {
				for r := range 60 {
					n := 10*c + r + 2
					out := make([]int, n)
					s.split(&Control{Workers: 2 + c%3}, n, 1+r%4, func(lo, hi int) {
						for i := lo; i < hi; i++ {
							out[i] += i
						}
					})
					for i, v := range out {
						if v != i {
							t.Errorf("procs %d: caller %d round %d: element %d is %d", procs, c, r, i, v)
							return
						}
					}
				}
			})
		}
		wg.Wait()
	}
}

// parkedWorkers counts the workers of an idle set that sleep.
func parkedWorkers(s *set) (parked int) {
	for _, w := range s.workers {
		if w.wake.parked.Load() {
			parked++
		}
	}
	return parked
}

func TestIdleWorkersPark(t *testing.T) {
	s := newTestSet()
	checkCover(t, s, 4, 1000, 1)
	deadline := time.Now().Add(5 * time.Second)
	for time.Sleep(20 * time.Millisecond); parkedWorkers(s) != 3; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of 3 workers are parked", parkedWorkers(s))
		}
	}
	checkCover(t, s, 4, 1000, 1) // they wake again
}

func TestCrowdedSetRunsAlone(t *testing.T) {
	s := newSet(1)
	checkCover(t, s, 8, 1000, 1)
	if len(s.workers) != 0 {
		t.Errorf("a crowded set started %d workers", len(s.workers))
	}
}

func TestInlineDoesNotAllocate(t *testing.T) {
	var sum int
	f := func(lo, hi int) { sum += hi - lo }
	one := &Control{Workers: 1}
	if a := testing.AllocsPerRun(100, func() { Split(nil, 5, 10, f) }); a != 0 {
		t.Errorf("a Split of one chunk allocates %v times", a)
	}
	if a := testing.AllocsPerRun(100, func() { Split(one, 50, 10, f) }); a != 0 {
		t.Errorf("a Split with one worker allocates %v times", a)
	}
}

func BenchmarkForkJoin(b *testing.B) {
	b.ReportAllocs()
	ctl := &Control{Workers: 2}
	for b.Loop() {
		Split(ctl, 2, 1, func(lo, hi int) {})
	}
}

func BenchmarkInline(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Split(nil, 1, 1, func(lo, hi int) {})
	}
}

// A stop that comes while it is held takes effect when it is let go.
func TestHold(t *testing.T) {
	ctl := &Control{Workers: 2}
	release := ctl.Hold()
	inner := ctl.Hold()
	ctl.Stop()
	inner()
	var ran atomic.Int32
	if !Split(ctl, 100, 1, func(lo, hi int) { ran.Add(1) }) || ran.Load() != 100 {
		t.Errorf("%d of 100 chunks ran while a stop was held", ran.Load())
	}
	release()
	if Split(ctl, 100, 1, func(lo, hi int) {}) {
		t.Error("the stop was lost")
	}
}

// A worker that waits does what was set last, piece by piece, and the caller does nothing of it.
func TestMeanwhile(t *testing.T) {
	s := newTestSet()
	me := goid()
	var old, done, mine atomic.Int64
	s.errand.Store(&Errand{Piece: func() bool { old.Add(1); return false }})
	s.split(&Control{Workers: 2}, 2, 1, func(lo, hi int) {})
	s.errand.Store(&Errand{Piece: func() bool {
		if goid() == me {
			mine.Add(1)
		}
		return done.Add(1) <= 100
	}})
	for end := time.Now().Add(5 * time.Second); done.Load() < 100 && time.Now().Before(end); {
		s.split(&Control{Workers: 2}, 2, 1, func(lo, hi int) {}) // wakes the worker if it sleeps
		time.Sleep(100 * time.Microsecond)
	}
	if done.Load() < 100 || mine.Load() > 0 {
		t.Errorf("%d pieces, %d by the caller", done.Load(), mine.Load())
	}
	before := old.Load()
	s.split(&Control{Workers: 2}, 2, 1, func(lo, hi int) {})
	if after := old.Load(); after != before {
		t.Errorf("%d pieces of the errand before", after-before)
	}
}
