package starlark

import (
	"fmt"
	"time"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core/mem"
)

// Starlark asks between two instructions whether to stop, never within one, and one may copy a gigabyte. So whatever
// takes long runs here: what reads values that nobody can change runs apart, and is left behind when the run has to
// stop; what reads lists goes through them in pieces and asks after each. Both count as steps, in proportion.

const (
	stepItems = 16      // elements that count as one step
	stepBytes = 64      // bytes of text that count as one step
	pieceLen  = 1 << 12 // elements between two looks at whether to stop
	longText  = 1 << 16 // bytes from which on a text is handled apart
	longList  = 1 << 12 // elements from which on a list is gone through in pieces
)

// spend counts work as steps. Its error is why the run must stop.
func (it *Interp) spend(steps int) error {
	done := it.work.Add(uint64(steps))
	if limit := it.cfg.MaxSteps; limit > 0 && done >= limit {
		it.halt(stepLimit(limit))
	}
	if why := it.stopped.Load(); why != nil {
		return why
	}
	return nil
}

// call is star.Call for builtins that call what a script gives them. Builtins may call one another a thousand times
// without one step of the script, so the depth is looked at here.
func (it *Interp) call(t *star.Thread, fn star.Value, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if t.CallStackDepth() > it.cfg.MaxDepth {
		it.halt(depthLimit(it.cfg.MaxDepth))
	}
	if err := it.spend(1); err != nil {
		return nil, err
	}
	return star.Call(t, fn, args, kwargs)
}

// Apart runs fn, which must read nothing that can change, and counts bytes of text as steps. When the run has to stop
// it does not wait for fn, whose result is dropped.
func (it *Interp) Apart(bytes int, fn func() (star.Value, error)) (star.Value, error) {
	if err := it.spend(bytes / stepBytes); err != nil {
		return nil, err
	}
	if bytes < longText {
		return fn()
	}
	type result struct {
		v   star.Value
		err error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() { done <- r }()
		defer rescue(&r.err)
		r.v, r.err = fn()
	}()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case r := <-done:
			return r.v, r.err
		case <-look.C:
			if err := it.spend(0); err != nil {
				return nil, err
			}
		}
	}
}

// room is an error if a text or list of that many bytes is more than the memory limit, or than one value may have.
func (it *Interp) room(what string, bytes uint64) error {
	limit := uint64(maxValue)
	if it.cfg.MemLimit > 0 {
		limit = min(limit, uint64(it.cfg.MemLimit))
	}
	if bytes <= limit {
		return nil
	}
	return fmt.Errorf("%s of %s is too large: the limit is %s", what, mem.Bytes(int64(min(bytes, 1<<62))),
		mem.Bytes(int64(limit)))
}

const (
	maxValue  = 1 << 30 // bytes of a text or list that an operator makes
	itemBytes = 16      // of an element of a list
	listBytes = 64      // of a list in a list
	viewBytes = 256     // of a view in a list
)

// watch returns v, or if it is long, or nobody knows how long, a value that asks every few thousand elements whether
// to stop and then ends.
func (it *Interp) watch(v star.Value) star.Value {
	seq, ok := v.(star.Iterable)
	if !ok {
		return v
	}
	switch n := star.Len(v); {
	case n < 0:
		return &watched{seq, it}
	case n >= longList:
		return &watchedSequence{watched{seq, it}, n}
	}
	return v
}

// watched is an iterable whose iterators ask whether to stop.
type watched struct {
	star.Iterable
	it *Interp
}

// Iterate begins to go through the elements.
func (w *watched) Iterate() star.Iterator {
	return &watchedIterator{Iterator: w.Iterable.Iterate(), it: w.it}
}

// watchedSequence is watched with a known length.
type watchedSequence struct {
	watched
	n int
}

// Len is the number of elements.
func (w *watchedSequence) Len() int { return w.n }

type watchedIterator struct {
	star.Iterator
	it   *Interp
	seen int
}

// Next is false at the end, and when the run has to stop.
func (w *watchedIterator) Next(v *star.Value) bool {
	if w.seen++; w.seen%pieceLen == 0 && w.it.spend(pieceLen/stepItems) != nil {
		return false
	}
	return w.Iterator.Next(v)
}

// pairs is the entries of a dict as something to iterate.
type pairs struct {
	star.Value
	items []star.Tuple
}

// Iterate begins with the first entry.
func (p *pairs) Iterate() star.Iterator { return &pairIterator{p.items} }

type pairIterator struct{ rest []star.Tuple }

// Next is the next entry, a tuple.
func (p *pairIterator) Next(v *star.Value) bool {
	if len(p.rest) == 0 {
		return false
	}
	*v, p.rest = p.rest[0], p.rest[1:]
	return true
}

// Done does nothing.
func (*pairIterator) Done() {}

// join is copies of the parts, which are lists and tuples, one after another, in pieces.
func (it *Interp) join(copies int, parts ...star.Indexable) ([]star.Value, error) {
	n := 0
	for _, part := range parts {
		n += part.Len()
	}
	all := make([]star.Value, 0, n*copies)
	for range copies {
		for _, part := range parts {
			for i := range part.Len() {
				all = append(all, part.Index(i))
				if len(all)%pieceLen == 0 {
					if err := it.spend(pieceLen / stepItems); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return all, nil
}
