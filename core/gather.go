package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// Gather picks elements along an axis by their places: y is x at index. Axes that the index shares with x
// are aligned; its others take the place of the axis.
//
// Shape: x[row, expert], index[row, choice] of integers → y[row, choice] for gather(index, "expert");
// x[batch, seq, embed], index[keep] → y[batch, keep, embed] for gather(index, "seq"). An axis of the index
// may be called as the one looked up.
//
// A quantized x stays so; the axis must not be the last, along which its blocks lie, and the index shares no axes with
// it.
//
// Errors: indices that are no integers or lie outside of 0 … n-1; an axis that x lacks, or that is inside its blocks;
// sizes of shared axes that differ.
//
// Example:
//
//	tensor([[1, 2], [3, 4]], "row col").gather(tensor([1, 0], "row"), "col")
type Gather struct {
	X     *Tensor `arg:"x"`
	Index *Tensor `arg:"index"`
	Axis  Axis    `arg:"axis"`
}

var gatherOp = Declare[Gather]("gather")

// Gather picks elements along the axis; see the Gather operation.
func (x *Tensor) Gather(index *Tensor, axis string) *Tensor {
	return gatherOp.Call(Gather{X: x, Index: index, Axis: Axis(axis)})
}

// lookup is how x, an index into its axis and what lies there are walked together: shared axes first, then
// the axis looked up or the index's own axes in its place, then the rest of x.
type lookup struct {
	picked    *axis.List // the axes of what is looked up, in x's order
	own       *axis.List // of the index
	x, at, to *axis.List // the orders of x, the index and what is looked up
}

// lookup sorts the axes by role.
func (p *Plan) lookup(x, index *Tensor, name Axis) lookup {
	p.Integer(index)
	p.Need(x, name)
	one := axisList(string(name))
	shared := index.axes.Shared(x.axes).Without(one)
	rest := x.axes.Without(one).Without(shared)
	l := lookup{own: index.axes.Without(shared)}
	picked, err := x.axes.Replace(x.axes.Index(string(name)), l.own.Names()...)
	if err != nil {
		panic("core: " + err.Error()) // the index's own axes are not x's
	}
	l.picked = picked
	l.x, l.at = shared.Append(one).Append(rest), shared.Append(l.own)
	l.to = l.at.Append(rest)
	return l
}

// places is the index in order, checked to lie on the axis of x.
func (c *Ctx) places(x, index *Tensor, name Axis, order *axis.List) []int64 {
	ids := elementsOf[int64](c.Dense(index, order, dtype.I64))
	n := int64(x.Size(string(name)))
	for lo, hi := range c.c.env.scan(len(ids)) {
		for _, id := range ids[lo:hi] {
			if id < 0 || id >= n {
				c.Fail(fmt.Sprintf("the index %d is outside of axis %q of %s", id, name, c.Describe(x)),
					c.c.indexRange(index, int(n)))
			}
		}
	}
	return ids
}

// Names puts the index's own axes in the place of the axis.
func (a *Gather) Names(p *Plan) {
	l := p.lookup(a.X, a.Index, a.Axis)
	if a.X.stored() {
		p.wholeBlocks(a.X, a.Index, a.Axis)
	}
	p.Out(l.picked, a.X.dtype)
	p.Keep(l)
}

// Quantized takes a quantized x.
func (*Gather) Quantized() (operands uint64, named bool) { return 1, false }

// Sizes takes those of the index's own axes from the index.
func (a *Gather) Sizes(s *Sizes) {
	s.Match(axisList(string(a.Axis)))
	for _, name := range s.c.plan.data.(lookup).own.Names() {
		s.Set(0, name, a.Index.Size(name))
	}
}

// Eval copies runs of the axes behind the one looked up.
func (a *Gather) Eval(c *Ctx) {
	out, l := c.Out(0), c.Data().(lookup)
	ids := c.places(a.X, a.Index, a.Axis, l.at)
	if a.X.stored() {
		c.pickBlocks(a.X, ids, a.Axis)
		return
	}
	if out.Len() == 0 {
		return
	}
	x, dst := c.Dense(a.X, l.x, a.X.dtype), out
	if out.axes != l.to {
		dst = c.Scratch(out.dtype, l.to, out.permuted(l.to).sizes)
	}
	n := a.X.Size(string(a.Axis))
	width := out.Len() / len(ids) * out.dtype.Size()
	each := volume(a.Index, l.own) // places per batch
	c.Split(len(ids), max(1, pointGrain/width), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(row[byte](dst, i, width), row[byte](x, i/each*n+int(ids[i]), width))
		}
	})
	if dst != out {
		c.copyInto(out, dst.permuted(out.axes))
	}
}

// Saves the index.
func (*Gather) Saves(uint64) (in, out uint64) { return 2, 0 }

// VJP adds each element of gy where it came from.
func (a *Gather) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, a.X.zerosIn(gy[0].env).IndexAdd(a.Index, gy[0], string(a.Axis)))
}

// Samples covers the lengths of the axis, of the index and of the rest, shared axes, and the dtypes.
func (*Gather) Samples(m *Maker) (list []Gather) {
	for _, n := range lengths {
		list = append(list, Gather{X: m.Tensor(dtype.F32, "vocab=5 embed=%d", n),
			Index: m.Indices(dtype.I64, 5, "choice=3"),
			Axis:  "vocab"},
			Gather{X: m.Tensor(dtype.F32, "row=3 expert=%d", max(1, n)),
				Index: m.Indices(dtype.I64, max(1, n), "row=3 choice=%d", n), Axis: "expert"})
	}
	for _, dt := range integers {
		list = append(list, Gather{X: m.Tensor(dtype.F32, "row=3 expert=4"), Index: m.Indices(dt, 4, "row=3 expert=2"),
			Axis: "expert"})
	}
	for _, dt := range allDTypes {
		list = append(list, Gather{X: m.Tensor(dt, "row=3 a=5 col=17"), Index: m.Indices(dtype.I32, 5, "b=2 row=3 c=2"),
			Axis: "a"})
	}
	list = append(list, Gather{X: m.Quantized("q8_0", "expert=4 out=3 in=64"),
		Index: m.Indices(dtype.I32, 4, "row=3 choice=2"), Axis: "expert"})
	list = append(list, Gather{X: m.Indices(dtype.I64, 5, "choice=5"), Index: m.Indices(dtype.I64, 5, "choice=5"),
		Axis: "choice"})
	return list
}
