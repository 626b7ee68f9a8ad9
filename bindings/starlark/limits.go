package starlark

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core/mem"
)

const (
	defaultMaxDepth = 1000

	// pollSteps is how many bytecode instructions pass between two looks at the limits. Starlark has no hook
	// for a call, and one statement more in every function would cost 60 ns a call; a look every so many
	// steps costs nothing, and 256 steps are at most 128 calls deeper.
	pollSteps = 256

	// maxItems bounds the elements a builtin takes from one iterable, since nothing can interrupt it then:
	// list(range(1 << 62)) would end the process.
	maxItems = 1 << 27
)

// stop is why a run had to end. It is not caught by the builtin catch, and errors.Is sees the context's error.
type stop struct {
	msg       string
	cause     error
	catchable bool // it is an error of an iteration, which Starlark gives no way to fail
}

func (s *stop) Error() string { return s.msg }
func (s *stop) Unwrap() error { return s.cause }

// cancelHook is a pair of functions given to OnCancel.
type cancelHook struct{ stop, resume func() }

// OnCancel registers what stops work the interpreter cannot see into, such as running kernels. stop is called,
// from another goroutine, when the context of a run is done; resume once that run has ended.
func (it *Interp) OnCancel(stop, resume func()) {
	it.onCancel = append(it.onCancel, cancelHook{stop, resume})
}

// run is the door of all runs: it arms the limits, keeps panics in and makes an *Error of what went wrong.
func (it *Interp) run(ctx context.Context, fn func() error) error {
	if ctx == nil {
		ctx = context.Background()
	}
	disarm := it.arm(ctx)
	err := func() (err error) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a mapped file may shrink
		defer rescue(&err)
		return fn()
	}()
	disarm()
	if err == nil {
		return nil
	}
	return it.locate(err)
}

// arm starts counting steps and watching ctx. The function it returns ends both and makes the thread usable
// again after a cancellation.
func (it *Interp) arm(ctx context.Context) (disarm func()) {
	it.stopped.Store(nil)
	it.ctx = ctx
	it.firstStep = it.thread.Steps
	it.work.Store(0)
	it.poll(it.thread)

	halt := func() { it.halt(&stop{msg: stopMessage(ctx), cause: ctx.Err()}) }
	if ctx.Err() != nil {
		halt() // the goroutine below might come after the end of a short run
	}
	called := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(called)
		halt()
		for _, hook := range it.onCancel {
			hook.stop()
		}
	})
	return func() {
		if !unwatch() {
			<-called
			for _, hook := range it.onCancel {
				hook.resume()
			}
		}
		it.thread.Uncancel()
	}
}

func stopMessage(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case cause != ctx.Err():
		return "stopped: " + cause.Error()
	case errors.Is(cause, context.DeadlineExceeded):
		return "stopped: time limit reached"
	}
	return "interrupted"
}

// halt makes the thread fail at its next step. The first reason counts.
func (it *Interp) halt(why *stop) {
	if it.stopped.CompareAndSwap(nil, why) {
		it.thread.Cancel(why.msg)
	}
}

// poll looks at the limits and sets the step of the next look.
func (it *Interp) poll(t *star.Thread) {
	next := t.Steps + pollSteps
	if limit := it.cfg.MaxSteps; limit > 0 {
		end := it.firstStep + limit - min(limit, it.work.Load())
		if t.Steps >= end {
			it.halt(stepLimit(limit))
		}
		next = min(next, max(end, t.Steps))
	}
	if t.CallStackDepth() > it.cfg.MaxDepth {
		it.halt(depthLimit(it.cfg.MaxDepth))
	}
	t.SetMaxExecutionSteps(next)
}

func stepLimit(limit uint64) *stop {
	return &stop{msg: fmt.Sprintf("stopped after %d steps (limit --max-steps, MaxSteps in Go)", limit)}
}

func depthLimit(limit int) *stop {
	return &stop{msg: fmt.Sprintf("stopped: more than %d calls inside one another; does the recursion end?", limit)}
}

// panicError is a Go panic that met one of the doors.
type panicError struct {
	value any
	stack []byte
}

// rescue, deferred, turns a panic into *err. An error that an operation panics with on purpose stays what it
// is, anything else is an internal error. It belongs at every door through which Starlark calls Go: further out
// the interpreter has already dropped the frames that say where the script was.
func rescue(err *error) {
	v := recover()
	if v == nil {
		return
	}
	if fault := mem.Fault(v); fault != nil {
		*err = fault
		return
	}
	var bug runtime.Error
	if failed, ok := v.(error); ok && !errors.As(failed, &bug) {
		*err = failed
		return
	}
	*err = &panicError{value: v, stack: debug.Stack()}
}

func (e *panicError) Error() string { return fmt.Sprintf("internal error: %v", e.value) }

func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// walksNothing are universal builtins that do not go through the elements of their arguments.
var walksNothing = map[string]bool{
	"bool": true, "dir": true, "fail": true, "getattr": true, "hasattr": true, "hash": true, "len": true,
	"print": true, "range": true, "repr": true, "str": true, "type": true, "write": true,
}

// guarded returns b behind a door for panics and, if b is one of Starlark's own, for oversized arguments.
func guarded(b *star.Builtin) *star.Builtin {
	name := b.Name()
	walks := star.Universe.Has(name) && !walksNothing[name]
	return star.NewBuiltin(name, func(
		t *star.Thread, _ *star.Builtin, args star.Tuple, kwargs []star.Tuple,
	) (v star.Value, err error) {
		defer rescue(&err)
		if walks {
			for _, arg := range args {
				if n := star.Len(arg); n > maxItems {
					return nil, fmt.Errorf("%s: %s of %d elements is too long; at most %d can be taken at once",
						name, arg.Type(), n, maxItems)
				}
			}
		}
		if walks || name == "hash" {
			v, err = interpOf(t).walk(t, b, args, kwargs)
		} else {
			v, err = b.CallInternal(t, args, kwargs)
		}
		if err != nil && star.Universe.Has(name) && interpOf(t).stopped.Load() == nil {
			err = forTensors(name, args, err)
		}
		return v, err
	})
}
