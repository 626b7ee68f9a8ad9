package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// IndexSelect is x at some places of an axis, which keeps its name. Where the index's own axes are to stand in
// its place, or are axes of x, see gather.
//
// Shape: x[…, axis, …], index[any one] of integers → y[…, axis=number of indices, …].
//
// A quantized x stays so; the axis must not be the last, along which its blocks lie.
//
// Errors: an index with other than one axis, of other than integers, or outside of 0 … n-1; an axis that x
// lacks, or that is inside its blocks.
//
// Example:
//
//	tensor([10, 20, 30], "seq").index_select(tensor([2, 0], "place"), "seq")
type IndexSelect struct {
	X     *Tensor `arg:"x"`
	Index *Tensor `arg:"index"`
	Axis  Axis    `arg:"axis"`
}

var indexSelect = Declare[IndexSelect]("index_select")

// IndexSelect is x at some places of the axis; see the IndexSelect operation.
func (x *Tensor) IndexSelect(index *Tensor, axis string) *Tensor {
	return indexSelect.Call(IndexSelect{X: x, Index: index, Axis: Axis(axis)})
}

// Names insists on one axis of places.
func (a *IndexSelect) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	p.Integer(a.Index)
	if a.Index.Rank() != 1 {
		p.Fail(fmt.Sprintf("want one axis in %s", p.Describe(a.Index)),
			p.c.oneAxis("gather takes any axes, index_select one", a.Index, a.X))
	}
	if a.X.stored() {
		p.wholeBlocks(a.X, nil, a.Axis)
	}
	p.Out(a.X.axes, a.X.dtype)
}

// Quantized takes a quantized x.
func (*IndexSelect) Quantized() (operands uint64, named bool) { return 1, false }

// Sizes counts the places.
func (a *IndexSelect) Sizes(s *Sizes) { s.Set(0, string(a.Axis), a.Index.sizes[0]) }

// Eval takes what lies at the places.
func (a *IndexSelect) Eval(c *Ctx) {
	if a.X.stored() {
		c.pickBlocks(a.X, c.places(a.X, a.Index, a.Axis, a.Index.axes), a.Axis)
		return
	}
	places := make([][]int, a.X.Rank())
	at := &places[a.X.axes.Index(string(a.Axis))]
	ids := c.places(a.X, a.Index, a.Axis, a.Index.axes)
	*at = c.placesOf(len(ids))
	for lo, hi := range c.c.env.scan(len(ids)) {
		for i := lo; i < hi; i++ {
			(*at)[i] = int(ids[i])
		}
	}
	c.pick(a.X, places, nil)
}

// Saves the index.
func (*IndexSelect) Saves(uint64) (in, out uint64) { return 2, 0 }

// VJP adds each element of gy where it came from.
func (a *IndexSelect) VJP(_, gy []*Tensor, g *Grads) {
	at := a.Index
	if name := at.axes.At(0); name != string(a.Axis) {
		at = at.Rename(name, string(a.Axis))
	}
	g.Set(0, a.X.zerosIn(gy[0].env).IndexAdd(at, gy[0], string(a.Axis)))
}

// Samples covers the lengths of the index and of what stays, an index called as another axis, and the dtypes.
func (*IndexSelect) Samples(m *Maker) (list []IndexSelect) {
	add := func(x, index *Tensor) { list = append(list, IndexSelect{X: x, Index: index, Axis: "a"}) }
	for _, n := range lengths {
		add(m.Tensor(dtype.F32, "a=5 col=%d", n), m.Indices(dtype.I64, 5, "row=3"))
		add(m.Tensor(dtype.F32, "row=3 a=%d", max(1, n)), m.Indices(dtype.I64, max(1, n), "place=%d", n))
	}
	for _, dt := range integers {
		add(m.Tensor(dtype.F32, "col=3 a=4"), m.Indices(dt, 4, "col=7"))
	}
	for _, dt := range allDTypes {
		add(m.Tensor(dt, "row=3 a=5 col=17"), m.Indices(dtype.I32, 5, "a=2"))
	}
	add(m.Indices(dtype.I64, 5, "a=5"), m.Indices(dtype.I64, 5, "a=5"))
	add(m.Quantized("q4_0", "row=3 a=5 b=2 in=32"), m.Indices(dtype.I64, 5, "in=7"))
	return list
}
