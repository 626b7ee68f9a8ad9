// Package par runs loops on the worker goroutines of the process.
//
// It holds Split, the one way to run work in parallel, the worker set behind it,
// Control, which limits a caller's workers and stops its work, and Meanwhile, for
// what workers may as well do while they wait. It knows
// nothing of tensors: what a chunk means, and that chunks write to different
// places, is the caller's business.
//
// There is one worker set per process and one job at a time owns it. A caller
// that does not get it, among them every Split inside a Split, runs its own
// work alone, so the result of a Split never depends on who else is busy.
package par

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// maxWorkers bounds the goroutines that run one job, the caller included.
const maxWorkers = 256

// Control limits and stops the work of one caller. The zero Control, like a
// nil one, uses the default number of workers.
type Control struct {
	// Workers is the number of goroutines that may run a job, the caller
	// included: 1 runs everything in the caller, 0 stands for GOMAXPROCS as it
	// was when the process first used a worker; at most 256. It must not change
	// while a Split is running.
	Workers int

	stop atomic.Bool
	held atomic.Int32
	turn turn
}

// Stop makes every running and every later Split with this Control return
// false as soon as the chunks already begun have ended. It may be called from
// any goroutine.
func (c *Control) Stop() { c.stop.Store(true) }

// Reset undoes Stop.
func (c *Control) Reset() { c.stop.Store(false) }

// Stopped reports whether Stop was called since the last Reset, and nothing holds it.
func (c *Control) Stopped() bool { return c != nil && c.stop.Load() && c.held.Load() == 0 }

// Hold puts off what Stop does until release is called: for work that must not end halfway. Holds may nest.
func (c *Control) Hold() (release func()) {
	c.held.Add(1)
	return func() { c.held.Add(-1) }
}

var shared = sync.OnceValue(func() *set { return newSet(runtime.GOMAXPROCS(0)) })

// Split calls f on consecutive ranges [lo, hi) that together cover [0, n) once.
// Every lo is a multiple of grain and every range but the last has grain
// elements (a multiple of that where there would be 2²⁴ ranges or more); a
// grain below 1 counts as 1. Ranges run in any order and at the same time, so
// they must write to different places. A range should take no more than 200 µs,
// because collection and Stop wait for it, and no less than some 10 µs, because
// handing it out costs up to 1 µs.
//
// Split returns when no range is running any more: true if all ranges ran,
// false if ctl was stopped before. If f panics, the ranges not yet begun are
// left out and Split panics with the same value; a runtime.Error from another
// goroutine comes as a *WorkerError, which keeps that goroutine's stack.
func Split(ctl *Control, n, grain int, f func(lo, hi int)) bool {
	grain = max(grain, 1)
	if n <= grain {
		return alone(ctl, n, grain, f, nil)
	}
	return shared().split(ctl, n, grain, f)
}

// An Errand is work that may as well not be done.
type Errand struct {
	// Piece does a part of less than a microsecond and reports whether there was one left. Any number of workers
	// may call it at the same time, and after another errand has been set.
	Piece func() bool
}

// Meanwhile sets what workers do while they watch for the next job, instead of what was set before.
func Meanwhile(e *Errand) { shared().errand.Store(e) }

// Most is up to how many goroutines, the caller included, a Split into so many ranges may run in at once.
func Most(ctl *Control, chunks int) int {
	return max(1, min(shared().most(ctl), chunks))
}

// most is how many goroutines may run a job of ctl.
func (s *set) most(ctl *Control) int {
	if ctl != nil && ctl.Workers > 0 {
		return min(ctl.Workers, maxWorkers)
	}
	return min(s.procs, maxWorkers)
}

// alone runs every chunk in the caller, which gives others turns between them if s, which may be nil, is full.
func alone(ctl *Control, n, grain int, f func(lo, hi int), s *set) bool {
	var t *turn
	if s != nil {
		t = s.turnOf(ctl)
	}
	for lo := 0; lo < n; {
		if ctl.Stopped() {
			return false
		}
		hi := n
		if n-lo > grain {
			hi = lo + grain
		}
		call(f, lo, hi)
		if lo = hi; s != nil {
			t.give(s)
		}
	}
	return true
}

// call is the only place that calls f. Its prologue is where the collector can
// stop a goroutine whose f runs nothing but assembly.
//
//go:noinline
func call(f func(lo, hi int), lo, hi int) { f(lo, hi) }

// split is Split for more than one chunk.
func (s *set) split(ctl *Control, n, grain int, f func(lo, hi int)) bool {
	s.callers.Add(1)
	defer s.callers.Add(-1)

	workers := s.most(ctl)
	if workers == 1 || s.crowded() || !s.owned.CompareAndSwap(false, true) {
		return alone(ctl, n, grain, f, s)
	}
	for (n-1)/grain >= mostChunks {
		grain *= 2
	}
	j := job{ctl: ctl, n: n, grain: grain, chunks: (n-1)/grain + 1, f: f}
	fail, all := s.run(j, min(workers, j.chunks)-1)
	if fail != nil {
		panic(fail.value)
	}
	return all
}
