package starlark

import (
	"fmt"
	"slices"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/models/kv"
)

// mostRows is how many rows go through a model at once. More are cut up, which changes no bit of any row, bounds the
// memory of activations, and lets a worker find what it reads again in its cache.
const mostRows = 512

// feed is new tokens of a sequence, at least one.
type feed struct {
	cache *kv.Cache
	ids   []int32
}

// newCache is an empty cache for a sequence of the model.
func (m *Model) newCache(it *Interp) *kv.Cache {
	c := kv.New(it.env, m.layers)
	c.DType = m.cached
	return c
}

// forward is forwardAll for one sequence.
func (m *Model) forward(it *Interp, cache *kv.Cache, ids []int32, all bool) (*core.Tensor, error) {
	return m.forwardAll(it, []feed{{cache, ids}}, all)
}

// forwardAll runs the family's functions on new tokens of several sequences, each of which has a cache of its own that
// then counts them. The scores are [row, vocab] of all tokens, or of the last one of each sequence, in the order of the
// feeds. No gradients are recorded. After an error the caches are as they were, as far as they can go back; so they are
// in a shape-only run, whose keys and values have no data.
func (m *Model) forwardAll(it *Interp, feeds []feed, all bool) (y *core.Tensor, err error) {
	if it.env.IsShapeOnly() {
		feeds = slices.Clone(feeds)
		for i := range feeds {
			feeds[i].cache = m.newCache(it)
			defer feeds[i].cache.Free()
		}
	}
	rows := 0
	for _, f := range feeds {
		rows += len(f.ids)
	}
	if rows <= mostRows {
		it.env.Record(false, func() { y, err = m.infer(it, feeds, all, nil) })
		return y, err
	}
	before := make([]*kv.Cache, len(feeds))
	for i, f := range feeds {
		before[i] = f.cache.Fork()
	}
	done := false
	defer func() {
		for i, f := range feeds {
			if !done {
				f.cache.Swap(before[i])
			}
			before[i].Free()
		}
	}()
	it.env.Record(false, func() { y, err = m.inferPieces(it, feeds, all) })
	done = err == nil
	return y, err
}

// inferPieces is infer in pieces of mostRows.
func (m *Model) inferPieces(it *Interp, feeds []feed, all bool) (*core.Tensor, error) {
	s := it.env.Open()
	defer s.Close()
	var parts []*core.Tensor
	for k, at := 0, 0; k < len(feeds); {
		var piece []feed
		var open []bool // more tokens of the sequence follow
		for room := mostRows; k < len(feeds) && room > 0; {
			f := feeds[k]
			n := min(room, len(f.ids)-at)
			piece, open = append(piece, feed{f.cache, f.ids[at : at+n]}), append(open, at+n < len(f.ids))
			room -= n
			if at += n; at == len(f.ids) {
				k, at = k+1, 0
			}
		}
		x, err := m.infer(it, piece, all, open)
		if err != nil {
			return nil, err
		}
		if x != nil {
			parts = append(parts, x)
		}
	}
	y := parts[0]
	if len(parts) > 1 {
		y = core.ConcatAll("row", parts...)
	}
	s.Close(y)
	return y, nil
}

// infer is forwardAll in one piece. Of feeds for which open is true the last token's scores are not wanted; without any
// that are wanted there is no result. Every layer's tensors end with the layer.
func (m *Model) infer(it *Interp, feeds []feed, all bool, open []bool) (*core.Tensor, error) {
	env := it.env
	var positions, ids, last []int64
	rows := make(kv.Batch, len(feeds))
	for k, f := range feeds {
		rows[k] = kv.Part{Cache: f.cache, Rows: len(f.ids)}
		for i, id := range f.ids {
			positions, ids = append(positions, int64(f.cache.Len()+i)), append(ids, int64(id))
		}
		if open == nil || !open[k] {
			last = append(last, int64(len(ids)-1))
		}
	}
	committed := false
	defer func() {
		if !committed {
			rows.Discard()
		}
	}()
	outer := env.Open()
	defer outer.Close()
	b := &batch{m: m, rows: rows, positions: env.FromInts(dtype.I32, positions, rowAxis, len(ids))}
	defer b.free()
	if !all {
		b.last = last
	}
	x, made, err := it.step(m, m.fns["embed"],
		star.Tuple{m.m, Tensor{env.FromInts(dtype.I32, ids, rowAxis, len(ids))}, b})
	layer, args := m.fns["layer"], make(star.Tuple, 4)
	for i := 0; i < m.layers && err == nil; i++ {
		if !scripted(layer) { // it may keep them
			args = make(star.Tuple, 4)
		}
		args[0], args[1], args[2], args[3] = m.m, star.MakeInt(i), Tensor{x}, b
		y, own, failed := it.step(m, layer, args)
		if err = failed; err == nil && y != x {
			if made {
				m.leave(x)
			}
			x, made = y, own
		}
	}
	if err != nil {
		return nil, err
	}
	var y *core.Tensor
	if all || len(last) > 0 {
		if y, _, err = it.step(m, m.fns["logits"], star.Tuple{m.m, Tensor{x}, b}); err != nil {
			return nil, err
		}
	}
	rows.Commit()
	committed = true
	if y != nil {
		outer.Close(y)
	}
	return y, nil
}

// scripted tells whether fn is a function of a script, which takes its arguments from the list and leaves it alone.
func scripted(fn star.Callable) bool {
	_, ok := fn.(*star.Function)
	return ok
}

// step calls a family's function in a scope of its own that only the resulting tensor leaves. The functions of this
// project's families keep nothing else, so that handles are used again; those of others may put tensors where they
// are found later, such as in a list of the program, and have to be told that these have ended. made is false if the
// function returned a tensor that was there before, such as b.positions or a variable.
func (it *Interp) step(m *Model, fn star.Callable, args star.Tuple) (x *core.Tensor, made bool, err error) {
	var s *core.Scope
	if m.keepsNothing {
		s = it.env.OpenPrivate()
	} else {
		s = it.env.Open()
	}
	defer s.Close()
	v, err := star.Call(it.thread, fn, args, nil)
	if err != nil {
		return nil, false, err
	}
	y, ok := v.(Tensor)
	if !ok {
		return nil, false, fmt.Errorf("%s returned %s, want a tensor", fn.Name(), v.Type())
	}
	made = s.Owns(y.Tensor)
	s.Close(y.Tensor)
	return y.Tensor, made, nil
}

// leave ends x, which the layer before made, after the layer that was given it.
func (m *Model) leave(x *core.Tensor) {
	if m.keepsNothing {
		x.Recycle()
	} else {
		x.Free()
	}
}
