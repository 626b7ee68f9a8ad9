package starlark

import (
	"context"
	"errors"
	"sync"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// interrupts is what a script that finishes a step before it stops, and Ctrl-C, agree on.
type interrupts struct {
	mu       sync.Mutex
	deferred int  // calls of defer_interrupt in progress, inside of the innermost of interruptible
	asked    bool // an interrupt came during them
	catching int  // calls of interruptible in progress
}

// Interrupt asks the script that is running to stop when it has finished what it began by defer_interrupt, unless it
// has been asked already, or ends what it has begun by interruptible, after which it goes on; of calls inside one
// another the innermost is meant. It reports whether there is one. Otherwise nothing happens, and the way to stop the
// run is its context. It may be called from any goroutine.
func (it *Interp) Interrupt() bool {
	i := &it.interrupts
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.deferred > 0 && !i.asked:
		i.asked = true
	case i.catching > 0:
		it.halt(&stop{msg: "interrupted", cause: errInner})
		if why := it.stopped.Load(); why == nil || why.cause != errInner {
			return true // the run has to end for another reason, which goes on to stop what it began
		}
		for _, hook := range it.onCancel {
			hook.stop()
		}
	default:
		return false
	}
	return true
}

// deferInterrupt is defer_interrupt(fn, *args, **kwargs): fn's value, after a call during which Ctrl-C only makes
// interrupted() true; the run, or the call of interruptible in which this is, ends after it. Ctrl-C a second time ends
// it at once.
func deferInterrupt(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	if len(args) == 0 {
		return nil, errNoFunction(b.Name())
	}
	it := interpOf(t)
	i := &it.interrupts
	i.mu.Lock()
	i.deferred++
	i.mu.Unlock()
	defer func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.deferred--; i.deferred > 0 || !i.asked {
			return
		}
		i.asked = false
		if err == nil {
			why := &stop{msg: "interrupted", cause: context.Canceled}
			if i.catching > 0 {
				why.cause = errInner
			}
			it.halt(why)
			v, err = nil, it.stopped.Load()
		}
	}()
	return it.call(t, args[0], args[1:], kwargs)
}

// errInner is the cause of a stop that ends no more than a call of interruptible.
var errInner = errors.New("interrupted")

// callInterruptible is interruptible(fn, *args, **kwargs): a struct of value, that of fn, None if Ctrl-C ended the
// call, and interrupted, whether Ctrl-C was pressed during it. The script goes on after it.
func callInterruptible(
	t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple,
) (v star.Value, err error) {
	if len(args) == 0 {
		return nil, errNoFunction(b.Name())
	}
	it := interpOf(t)
	i := &it.interrupts
	i.mu.Lock()
	deferred, asked := i.deferred, i.asked
	i.catching, i.deferred, i.asked = i.catching+1, 0, false
	i.mu.Unlock()
	was := false
	func() {
		defer func() { // also when it panics
			was = it.ended(t)
			i.mu.Lock()
			i.deferred, i.asked = deferred, asked
			i.mu.Unlock()
		}()
		v, err = it.call(t, args[0], args[1:], kwargs)
	}()
	if err != nil && !was {
		return nil, err
	}
	if err != nil {
		v = star.None
	}
	return starlarkstruct.FromStringDict(starlarkstruct.Default,
		star.StringDict{"value": v, "interrupted": star.Bool(was)}), nil
}

// ended ends a call of interruptible, and reports whether Ctrl-C came during it. If so, the thread goes on, unless the
// run has to end for another reason.
func (it *Interp) ended(t *star.Thread) bool {
	i := &it.interrupts
	i.mu.Lock()
	defer i.mu.Unlock()
	i.catching--
	why := it.stopped.Load()
	if why == nil || why.cause != errInner || !it.stopped.CompareAndSwap(why, nil) {
		return false
	}
	for _, hook := range it.onCancel {
		hook.resume()
	}
	t.Uncancel()
	if ctx := it.ctx; ctx.Err() != nil { // whose own reason came second
		it.halt(&stop{msg: stopMessage(ctx), cause: ctx.Err()})
		for _, hook := range it.onCancel {
			hook.stop()
		}
	}
	if now := it.stopped.Load(); now != nil {
		t.Cancel(now.msg)
	}
	return true
}

// interrupted is interrupted(): whether Ctrl-C was pressed in the call of defer_interrupt that is in progress.
func interrupted(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if err := star.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	i := &interpOf(t).interrupts
	i.mu.Lock()
	defer i.mu.Unlock()
	return star.Bool(i.asked), nil
}
