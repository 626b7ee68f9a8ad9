package core

import (
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/mem"
	"github.com/fucina-go/fucina/core/par"
)

// Env is what one interpreter thread works in: its pool of buffers, its share of the workers, its
// open scopes, its cancel flag and memory budget. Only one goroutine at a time may use an Env;
// Control.Stop may be called from any.
type Env struct {
	Control par.Control // worker count, and the flag that stops running kernels

	// Where tells the place in the script that is being executed, for messages; may be nil.
	Where func() Site

	// NameOf tells what the script calls an operand, counted from 0, of the call at a place, for messages;
	// other if that has no name. It may be nil.
	NameOf func(at Site, operand int, other string) string

	// Multiplied is told of every product that dot, dots, linear and moe compute, before it is. It must not run
	// operations. It may be nil.
	Multiplied func(p Product)

	// Timed is told of every operation that has computed, and how long that took. It must not run operations. It may be
	// nil.
	Timed func(op string, took time.Duration)

	// Ops are the operations that this Env's interpreter has beyond the table, by name.
	Ops map[string]*Info

	recent [16]*Info // operations of the table that Lookup was asked for, by their names' length and first letter

	pool   *mem.Pool
	idle   []*roomy // tensors that nobody can reach, for reuse
	scopes []*Scope
	holds  []owned // the list of an ended scope, for reuse
	calls  []*call // idle call frames, for reuse
	spare  []Op    // argument structs by their operation's place, for reuse
	busy   []*call // frames of operations in progress, innermost last
	evals  int     // operations that computed something
	ahead  foresight
	back   bool // the last Alternate went backwards
	shared bool // one of commons

	alloc func(bytes int) *mem.Buffer // where tests let buffers come from; nil: the pool

	seed, stream uint64 // of random operations: what Seed was given, and how many drew since

	shapeOnly bool        // run Names and Sizes only
	pretended []pretended // gradients to put back when shapeOnly ends
	trying    bool        // in shape-only mode, to see whether a correction helps
	noRecord  bool        // operations are not recorded for gradients
	anomaly   bool        // an operation that makes a NaN fails
	segment   *segment    // of the checkpoint in progress
}

// Product is X contracted with W along Axes. If Expert is not "", it is with one place of that axis of W, which X
// lacks.
type Product struct {
	X, W   *Tensor
	Axes   *axis.List
	Expert string
	Place  int
}

// NewEnv is an Env with a budget of memLimit bytes of tensors in use (0: none) that splits work
// over workers threads (0: all processors).
func NewEnv(memLimit int64, workers int) *Env {
	e := &Env{pool: mem.NewPool(memLimit)}
	e.Control.Workers = workers
	e.pool.BeforeCollect = e.loosen
	e.pool.Stopped = e.Control.Stopped
	return e
}

// commons are the Envs of operations whose operands are all shared, called from Go without an
// Env. Their results are shared too.
var commons idleEnvs

type idleEnvs struct {
	mu   sync.Mutex
	idle []*Env
}

func (l *idleEnvs) take() *Env {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.idle); n > 0 {
		e := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return e
	}
	e := NewEnv(0, 0)
	e.shared = true
	return e
}

func (l *idleEnvs) put(e *Env) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, e)
}

// Close ends every open scope and gives the pool's memory back. Tensors that the host still holds
// stay valid.
func (e *Env) Close() {
	for len(e.scopes) > 0 {
		e.scopes[len(e.scopes)-1].Close()
	}
	e.pool.Close()
}

// Memory reports the tensor memory of the Env, in bytes.
func (e *Env) Memory() mem.Stats { return e.pool.Stats() }

// SetMemoryLimit changes the budget of tensor bytes in use; 0 is none.
func (e *Env) SetMemoryLimit(bytes int64) { e.pool.SetLimit(bytes) }

// Evals is how many operations have computed something in the Env, views not counted.
func (e *Env) Evals() int { return e.evals }

// Collect takes back the memory of every tensor that nobody can reach any more, unless the Env has to stop.
func (e *Env) Collect() { e.pool.Collect() }

// fill makes b, which must be zero, a buffer from the pool and returns it.
func (e *Env) fill(b *mem.Buffer, bytes int) *mem.Buffer {
	if e.alloc != nil {
		return e.alloc(bytes)
	}
	e.granted(e.pool.Fill(b, bytes))
	return b
}

// granted takes what the pool said; going over the budget is an *Error of the running operation, and having to stop
// while the pool collects is a *Canceled.
func (e *Env) granted(err error) {
	if errors.Is(err, mem.ErrStopped) {
		panic(&Canceled{Op: e.opName()})
	}
	if err != nil {
		hint := "scope(fn) and steps(n) free what is no longer needed; by hand: x.free()"
		if over := (*mem.LimitError)(nil); errors.As(err, &over) && (over.Want > over.Limit || over.InUse == 0) {
			hint = "make it in parts, or of a smaller dtype such as f16"
		}
		panic(&Error{Op: e.opName(), Msg: err.Error(), Hint: hint})
	}
}

// scan is consecutive ranges of [0, n) for loops of an operation; before each it looks whether to stop.
func (e *Env) scan(n int) iter.Seq2[int, int] {
	return func(yield func(lo, hi int) bool) {
		for lo := 0; lo < n; lo += pauseLen {
			if e.checkStop(); !yield(lo, min(n, lo+pauseLen)) {
				return
			}
		}
	}
}

// checkStop panics with *Canceled if the Env is stopped.
func (e *Env) checkStop() {
	if e.Control.Stopped() {
		panic(&Canceled{Op: e.opName()})
	}
	if paused != nil {
		paused()
	}
}

// fits tells whether the budget has room for so many bytes more.
func (e *Env) fits(bytes int64) bool {
	s := e.pool.Stats()
	return s.Limit == 0 || s.InUse+bytes+bytes/4 <= s.Limit // a size class is at most that much larger
}

// opName is the operation in progress.
func (e *Env) opName() string {
	if n := len(e.busy); n > 0 {
		return e.busy[n-1].info.Name
	}
	return "tensor"
}

// Tensor is a new dense tensor with undefined contents, made outside of every scope: for the
// runtime's own objects, such as caches and optimizer state, which outlive the step they are
// made in. It panics with an *Error when the budget does not allow it.
func (e *Env) Tensor(dt dtype.Type, axes *axis.List, sizes ...int) *Tensor {
	t := newTensor(e, dt, axes)
	t.shapeAs("tensor", sizes)
	t.allocate(true)
	return t
}

// Borrow is a shared tensor over bytes that belong to owner, such as a mapped file: dense, in the
// order of axes. The bytes are never written. A quantized dtype has its blocks along the last axes: the last of them
// may cut a row into several, as long as all together are whole blocks.
func Borrow(data []byte, owner any, dt dtype.Type, axes *axis.List, sizes ...int) *Tensor {
	t := newTensor(nil, dt, axes)
	t.shapeAs("borrow", sizes)
	if byteCount(dt, t.Len()) != len(data) {
		panic(&Error{Op: "borrow", Msg: t.Shape() + " does not fit the bytes given"})
	}
	t.buf = mem.Borrow(data, owner)
	t.data = t.buf.Data()
	return t
}

// IsShapeOnly tells whether the shape-only mode is on.
func (e *Env) IsShapeOnly() bool { return e.shapeOnly }

// ShapeOnly turns the shape-only mode on or off and returns what it was: operations then check and
// settle axes, sizes and dtypes, but compute nothing and allocate nothing.
func (e *Env) ShapeOnly(on bool) (was bool) {
	was, e.shapeOnly = e.shapeOnly, on
	if !on {
		for i := len(e.pretended) - 1; i >= 0; i-- {
			e.pretended[i].of.Grad = e.pretended[i].grad
		}
		e.pretended = nil
	}
	return was
}
