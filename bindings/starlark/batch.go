package starlark

import (
	"fmt"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/models/kv"
)

// batch is what a family's layer function gets as b: it knows which sequence each row belongs to, at
// which position, and what came before, so that the layer need not.
type batch struct {
	m         *Model
	cache     *kv.Cache    // nil: every sequence is whole, and its places are along seq
	positions *core.Tensor // [row], or [seq]
	all       bool         // the scores of all rows are wanted, not only the last one's
}

func (b *batch) String() string        { return "<batch>" }
func (b *batch) Type() string          { return "batch" }
func (b *batch) Freeze()               {}
func (b *batch) Truth() star.Bool      { return true }
func (b *batch) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: batch") }

// Holds visits the positions.
func (b *batch) Holds(visit func(star.Value)) { visit(Tensor{b.positions}) }

var batchMethods = map[string]*star.Builtin{
	"attend": star.NewBuiltin("attend", batchAttend),
	"last":   star.NewBuiltin("last", batchLast),
	"rope":   star.NewBuiltin("rope", batchRope),
}

// Attr is a method by name.
func (b *batch) Attr(name string) (star.Value, error) {
	if m, ok := batchMethods[name]; ok {
		return m.BindReceiver(b), nil
	}
	return nil, nil
}

// AttrNames is every method.
func (b *batch) AttrNames() []string { return []string{"attend", "last", "rope"} }

// batchAttend is b.attend(i, q, k, v): stores the rows' keys and values in layer i and attends to all
// that came before. q[row, head, head_dim], k and v[row, kv_head, head_dim] → y[row, head, head_dim].
func batchAttend(_ *star.Thread, fn *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var i int
	var q, k, val Tensor
	if err := star.UnpackPositionalArgs(fn.Name(), args, kwargs, 4, &i, &q, &k, &val); err != nil {
		return nil, err
	}
	b := fn.Receiver().(*batch)
	if b.cache == nil {
		return Tensor{q.Attention(k.Tensor, val.Tensor, 0)}, nil
	}
	return Tensor{b.cache.Attend(i, q.Tensor, k.Tensor, val.Tensor)}, nil
}

// batchRope is b.rope(x): x[row, …, head_dim] turned by the rows' positions as the model's config says.
func batchRope(t *star.Thread, fn *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var x Tensor
	if err := star.UnpackPositionalArgs(fn.Name(), args, kwargs, 1, &x); err != nil {
		return nil, err
	}
	b := fn.Receiver().(*batch)
	return (&opFunc{info: core.Lookup("rope")}).CallInternal(t, star.Tuple{x, Tensor{b.positions}}, b.m.ropes)
}

// batchLast is b.last(x): the rows of x whose scores are wanted.
func batchLast(_ *star.Thread, fn *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var x Tensor
	if err := star.UnpackPositionalArgs(fn.Name(), args, kwargs, 1, &x); err != nil {
		return nil, err
	}
	if fn.Receiver().(*batch).all {
		return x, nil
	}
	n := x.Size("row")
	return Tensor{x.Slice("row", n-1, n, 1)}, nil
}
