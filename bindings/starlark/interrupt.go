package starlark

import (
	"context"
	"sync"

	star "go.starlark.net/starlark"
)

// interrupts is what a script that finishes a step before it stops, and Ctrl-C, agree on.
type interrupts struct {
	mu       sync.Mutex
	deferred int  // calls of defer_interrupt in progress
	asked    bool // an interrupt came during them
}

// Interrupt asks the script that is running to stop when it has finished what it began, and reports whether it will: a
// script that said so by defer_interrupt and has not been asked yet. Otherwise nothing happens, and the way to stop the
// run is its context. It may be called from any goroutine.
func (it *Interp) Interrupt() bool {
	i := &it.interrupts
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.deferred == 0 || i.asked {
		return false
	}
	i.asked = true
	return true
}

// deferInterrupt is defer_interrupt(fn, *args, **kwargs): fn's value, after a call during which Ctrl-C only makes
// interrupted() true; the run ends after it. Ctrl-C a second time ends it at once.
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
			it.halt(&stop{msg: "interrupted", cause: context.Canceled})
			v, err = nil, it.stopped.Load()
		}
	}()
	return it.call(t, args[0], args[1:], kwargs)
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
