package par

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// A set is a group of worker goroutines that serve one job at a time.
//
// The whole protocol between the caller and the workers is in two words.
// claims holds the number of helpers the job admits and the range of chunks
// that nobody has claimed; taking a chunk is one compare-and-swap. The caller takes the first, every
// other worker the last: so two processors go on with the same halves of the data in job after job, and find
// them in their own caches.
// pending counts the chunks that have not ended. A claimed chunk keeps pending
// above zero, and the caller leaves only at zero: so whoever holds a claim may
// read the plain fields of job, and nobody else ever does. A worker that comes
// late fails to claim, or claims a chunk of the next job, which is as good.
type set struct {
	procs   int // processors the process may use
	owned   atomic.Bool
	workers []*worker // grown by the owner only

	job  job
	cut  atomic.Bool // some chunk of the job was left out
	fail atomic.Pointer[failure]
	wake parker // the owner, waiting for pending to reach zero
	turn turn   // of callers without a Control

	_       [64]byte
	claims  atomic.Uint64
	_       [64]byte
	pending atomic.Int64
	_       [64]byte
	callers atomic.Int64 // split calls in progress
	awake   atomic.Int64 // workers, less those and the callers that sleep

	errand atomic.Pointer[Errand] // what waiting workers do; may be nil
}

type job struct {
	ctl              *Control
	n, grain, chunks int
	f                func(lo, hi int)
}

type worker struct {
	index int
	wake  parker
	turn  turn
}

// caller is the index under which the owner claims: every job admits it.
const caller = -1

func newSet(procs int) *set {
	return &set{procs: procs, wake: newParker()}
}

// crowded reports that the callers alone can keep every processor busy: then
// nobody should spin, and a new job gains nothing from workers.
func (s *set) crowded() bool { return s.callers.Load() >= int64(s.procs) }

// full reports that callers and workers keep every processor busy.
func (s *set) full() bool { return s.callers.Load()+s.awake.Load() >= int64(s.procs) }

// run executes j with up to helpers workers and gives the set back. The caller
// must own the set. It returns the first failure in a worker and whether all
// chunks ran; a panic of f in the caller itself goes straight through.
func (s *set) run(j job, helpers int) (fail *failure, all bool) {
	for len(s.workers) < helpers {
		w := &worker{index: len(s.workers), wake: newParker()}
		s.workers = append(s.workers, w)
		s.awake.Add(1)
		go s.serve(w)
	}
	s.job = j
	s.cut.Store(false)
	s.fail.Store(nil)
	s.pending.Store(int64(j.chunks))
	s.claims.Store(claimWord(helpers, j.chunks, 0))
	for _, w := range s.workers[:helpers] {
		w.wake.unpark()
	}
	defer func() {
		s.drop()
		s.wake.await(s, s.ended, nil)
		fail, all = s.fail.Load(), !s.cut.Load()
		s.job = job{}
		s.owned.Store(false)
	}()
	turn := s.turnOf(j.ctl)
	for {
		i, ok := s.claim(caller)
		if !ok {
			return
		}
		// Counted before it runs: if f panics, only the workers' chunks are to be waited for.
		s.pending.Add(-1)
		if !s.chunk(i) {
			return
		}
		turn.give(s)
	}
}

// bide does a piece of the errand, if there is one.
func (s *set) bide() bool {
	e := s.errand.Load()
	return e != nil && e.Piece()
}

func (s *set) ended() bool { return s.pending.Load() == 0 }

// A claim word is helpers, end and begin of the unclaimed chunks.
const (
	chunkBits  = 24
	mostChunks = 1<<chunkBits - 1
)

func claimWord(helpers, end, begin int) uint64 {
	return uint64(helpers)<<(2*chunkBits) | uint64(end)<<chunkBits | uint64(begin)
}

func (s *set) unclaimed() (word uint64, helpers, end, begin int) {
	word = s.claims.Load()
	return word, int(word >> (2 * chunkBits)), int(word >> chunkBits & mostChunks), int(word & mostChunks)
}

// open reports whether the goroutine of that index could claim a chunk.
func (s *set) open(index int) bool {
	_, helpers, end, begin := s.unclaimed()
	return begin < end && index < helpers
}

// claim takes a chunk.
func (s *set) claim(index int) (chunk int, ok bool) {
	for {
		word, helpers, end, begin := s.unclaimed()
		if begin >= end || index >= helpers {
			return 0, false
		}
		chunk = begin
		if index%2 == 0 {
			end--
			chunk = end
		} else {
			begin++
		}
		if s.claims.CompareAndSwap(word, claimWord(helpers, end, begin)) {
			return chunk, true
		}
	}
}

// chunk runs a claimed chunk, or leaves it and all unclaimed ones out and
// returns false if the job was stopped.
func (s *set) chunk(i int) bool {
	j := &s.job
	if j.ctl.Stopped() {
		s.cut.Store(true)
		s.drop()
		return false
	}
	lo := i * j.grain
	hi := j.n
	if j.n-lo > j.grain {
		hi = lo + j.grain
	}
	call(j.f, lo, hi)
	return true
}

// drop leaves out all unclaimed chunks. Only the owner and holders of a claim
// may call it: anybody else could hit the next job.
func (s *set) drop() {
	word := s.claims.Swap(0)
	if left := int64(word>>chunkBits&mostChunks) - int64(word&mostChunks); left > 0 {
		s.cut.Store(true)
		s.pending.Add(-left)
	}
}

// serve is the life of a worker.
func (s *set) serve(w *worker) {
	// A chunk may read a mapped file that shrank: that must reach the caller, not end the process.
	debug.SetPanicOnFault(true)
	open := func() bool { return s.open(w.index) }
	for {
		w.wake.await(s, open, s.bide)
		if i, ok := s.claim(w.index); ok {
			s.help(w, i)
			w.turn.give(s)
		}
	}
}

// help runs one claimed chunk in worker w and hands a panic to the owner.
func (s *set) help(w *worker, i int) {
	returned := false
	defer func() {
		if !returned {
			v := recover()
			if v == nil { // f called runtime.Goexit: this goroutine is lost
				go s.serve(w)
			}
			s.fail.CompareAndSwap(nil, newFailure(v))
			s.drop()
		}
		if s.pending.Add(-1) == 0 {
			s.wake.unpark()
		}
	}()
	s.chunk(i)
	returned = true
}

// failure is what ended a chunk in a worker: the value to panic with.
type failure struct{ value any }

var errGoexit = errors.New("par: the function of a Split called runtime.Goexit in a worker")

func newFailure(v any) *failure {
	switch v := v.(type) {
	case nil:
		return &failure{errGoexit}
	case runtime.Error:
		return &failure{&WorkerError{Err: v, Stack: debug.Stack()}}
	default:
		return &failure{v}
	}
}

// WorkerError is a runtime.Error that stopped a worker, with the stack of that
// worker, which the panic in the caller would otherwise not show.
type WorkerError struct {
	Err   runtime.Error
	Stack []byte
}

// Error returns the message of Err followed by the worker's stack.
func (e *WorkerError) Error() string { return fmt.Sprintf("%v\n\nin a worker:\n%s", e.Err, e.Stack) }

// Unwrap returns Err.
func (e *WorkerError) Unwrap() error { return e.Err }

// RuntimeError marks WorkerError as a runtime.Error, as the error it wraps.
func (e *WorkerError) RuntimeError() {}
