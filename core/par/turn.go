package par

import (
	"runtime"
	"time"
)

// A turn is what a goroutine that runs chunk after chunk remembers of when it let others have the processor. While the
// chunks of a job have all processors, a collection would otherwise wait for the scheduler to take one away, which it
// does every 10 ms, and more than once. While a processor is free there are no turns: Gosched would only wake a thread
// there, and might move the goroutine away from its caches.
type turn struct{ next time.Duration }

const (
	turnEvery = 100 * time.Microsecond // longer than Gosched takes by far, shorter than a chunk at its longest
	turnLong  = 5 * time.Millisecond   // longer than what a collector does at a time
	turnFair  = 10 * time.Millisecond  // what the scheduler gives each goroutine
)

var started = time.Now()

// newTurn is that of a goroutine that begins to run chunks.
func newTurn() turn { return turn{time.Since(started) + turnEvery} }

// give lets others run if it is time to and s keeps every processor busy. If they take long, they are no collection but
// other goroutines that compute; those and this one share the processor as the scheduler has them do.
func (t *turn) give(s *set) {
	now := time.Since(started)
	if now < t.next || !s.full() {
		return
	}
	runtime.Gosched()
	after := time.Since(started)
	t.next = after + turnEvery
	if after-now > turnLong {
		t.next = after + turnFair
	}
}
