package starlark

import (
	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Slices, comparisons, `in` and `|` take as long as what they go through, within one instruction of Starlark. Long
// operands are gone through in pieces here.

// sliceCheck is the X of X[v, bounds]: v, whose slices end when the run has to stop, unless it refuses to be sliced.
type sliceCheck struct {
	hiddenValue
	it *Interp
}

func (c *sliceCheck) Get(operands star.Value) (star.Value, bool, error) {
	pair := operands.(star.Tuple)
	switch v := pair[0].(type) {
	case star.String, star.Bytes, star.Tuple, *star.List:
		if star.Len(v) >= longText {
			return &longSliceable{v.(star.Sliceable), c.it}, true, nil
		}
	case Refuser:
		return nil, false, v.Refuse("[:]" + string(pair[1].(star.String)))
	}
	return pair[0], true, nil
}

// longSliceable is a long text, tuple or list.
type longSliceable struct {
	star.Sliceable
	it *Interp
}

// Slice is None when the run has to stop: Starlark then ends at its next instruction.
func (s *longSliceable) Slice(start, end, step int) star.Value {
	var items []star.Value
	switch v := s.Sliceable.(type) {
	case star.String, star.Bytes:
		if step == 1 { // which copies nothing
			return v.Slice(start, end, step)
		}
		part, err := s.it.Apart(star.Len(v), func() (star.Value, error) { return v.Slice(start, end, step), nil })
		if err != nil {
			return star.None
		}
		return part
	case star.Tuple:
		if step == 1 {
			return v[start:end]
		}
	}
	for i := start; i < end && step > 0 || i > end && step < 0; i += step {
		items = append(items, s.Index(i))
		if len(items)%pieceLen == 0 && s.it.spend(pieceLen/stepItems) != nil {
			return star.None
		}
	}
	if _, ok := s.Sliceable.(star.Tuple); ok {
		return star.Tuple(items)
	}
	return star.NewList(items)
}

// compare is x op y; long lists and tuples are compared in pieces.
func (it *Interp) compare(op syntax.Token, x, y star.Value) (bool, error) {
	a, b, ok := longPair(x, y)
	if !ok || a.Len() != b.Len() && (op == syntax.EQL || op == syntax.NEQ) {
		return star.Compare(op, x, y)
	}
	for i := range min(a.Len(), b.Len()) {
		if i%pieceLen == pieceLen-1 {
			if err := it.spend(pieceLen / stepItems); err != nil {
				return false, err
			}
		}
		if same, err := star.Equal(a.Index(i), b.Index(i)); err != nil {
			return false, err
		} else if !same {
			return star.Compare(op, a.Index(i), b.Index(i))
		}
	}
	return star.Compare(op, star.MakeInt(a.Len()), star.MakeInt(b.Len()))
}

// longPair is two lists, or two tuples, that are long.
func longPair(x, y star.Value) (a, b star.Indexable, ok bool) {
	switch v := x.(type) {
	case *star.List:
		a = v
		b, ok = y.(*star.List)
	case star.Tuple:
		a = v
		b, ok = y.(star.Tuple)
	}
	return a, b, ok && a.Len() >= longText && b.Len() >= longText
}

// containerCheck is the X of v in X[w]: w, in which a search ends when the run has to stop.
type containerCheck struct {
	hiddenValue
	it *Interp
}

func (c *containerCheck) Get(v star.Value) (star.Value, bool, error) {
	switch v.(type) {
	case *star.List, star.Tuple:
		if star.Len(v) >= longText {
			return &longContainer{v.(star.Indexable), c.it}, true, nil
		}
	}
	return v, true, nil
}

// longContainer is a long list or tuple.
type longContainer struct {
	star.Indexable
	it *Interp
}

// Has tells whether x is among the elements.
func (l *longContainer) Has(x star.Value) (bool, error) {
	for i := range l.Len() {
		if i%pieceLen == pieceLen-1 {
			if err := l.it.spend(pieceLen / stepItems); err != nil {
				return false, err
			}
		}
		if same, err := star.Equal(l.Index(i), x); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// union is x | y.
func (it *Interp) union(x, y star.Value) (star.Value, error) {
	n := 0
	more := func() error {
		if n++; n%pieceLen == 0 {
			return it.spend(pieceLen / stepItems)
		}
		return nil
	}
	switch x := x.(type) {
	case *star.Dict:
		y, ok := y.(*star.Dict)
		if !ok || x.Len()+y.Len() < longText {
			break
		}
		z := star.NewDict(0)
		for _, d := range []*star.Dict{x, y} {
			for k, v := range d.Entries() {
				if err := z.SetKey(k, v); err != nil {
					return nil, err
				}
				if err := more(); err != nil {
					return nil, err
				}
			}
		}
		return z, nil
	case *star.Set:
		y, ok := y.(*star.Set)
		if !ok || x.Len()+y.Len() < longText {
			break
		}
		z := star.NewSet(0)
		for _, s := range []*star.Set{x, y} {
			for k := range s.Elements() {
				if err := z.Insert(k); err != nil {
					return nil, err
				}
				if err := more(); err != nil {
					return nil, err
				}
			}
		}
		return z, nil
	}
	return star.Binary(syntax.PIPE, x, y)
}
