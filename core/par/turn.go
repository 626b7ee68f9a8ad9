package par

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A turn is what a caller or a worker, who run chunk after chunk, remember of when they let others have the processor,
// from job to job. While the chunks of a job have all processors, a collection would otherwise wait for the scheduler
// to take one away, which it does every 10 ms, and more than once. While a processor is free there are no turns:
// Gosched would only wake a thread there, and might move the goroutine away from its caches.
type turn struct{ next atomic.Int64 } // a time.Duration since the start; a caller may have several goroutines

const (
	turnEvery = 100 * time.Microsecond // longer than Gosched takes by far, shorter than a chunk at its longest
	turnLong  = 5 * time.Millisecond   // longer than what a collector does at a time
	turnFair  = 10 * time.Millisecond  // what the scheduler gives each goroutine
)

var started = time.Now()

// turnOf is the turn of a caller with that ctl. Those without one share theirs.
func (s *set) turnOf(ctl *Control) *turn {
	if ctl == nil {
		return &s.turn
	}
	return &ctl.turn
}

// give lets others run if it is time to and s keeps every processor busy. If they take long, they are no collection but
// other goroutines that compute; those and this one share the processor as the scheduler has them do.
func (t *turn) give(s *set) {
	now := time.Since(started)
	if int64(now) < t.next.Load() || !s.full() {
		return
	}
	runtime.Gosched()
	after, pause := time.Since(started), turnEvery
	if after-now > turnLong {
		pause = turnFair
	}
	t.next.Store(int64(after + pause))
}
