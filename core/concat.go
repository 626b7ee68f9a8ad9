package core

import (
	"fmt"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
)

// Concat joins tensors one after another along an axis they all have.
//
// Shape: xs[i][…, axis=n_i, …] → y[…, axis=Σ n_i, …], in the order of the first one's axes. The
// other axes have one size in all of them.
//
// Errors: an axis that one of them lacks, different axes, sizes or dtypes.
//
// Example:
//
//	concat([zeros(a=2), ones(a=1)], "a")
type Concat struct {
	Xs   []*Tensor `arg:"xs"`
	Axis Axis      `arg:"axis"`
}

var concat = Declare[Concat]("concat")

// ConcatAll joins tensors along the named axis; see the Concat operation.
func ConcatAll(axis string, xs ...*Tensor) *Tensor {
	return concat.Call(Concat{Xs: xs, Axis: Axis(axis)})
}

// Names insists on equal sets of axes.
func (a *Concat) Names(p *Plan) {
	first := a.Xs[0]
	p.Need(first, a.Axis)
	p.alike(a.Xs)
	p.Out(first.axes, first.dtype)
}

// alike insists that the tensors have one dtype and the same axes, in any order.
func (p *Plan) alike(xs []*Tensor) {
	first := xs[0]
	for _, x := range xs[1:] {
		p.NeedAll(x, first.axes)
		if more := x.axes.Without(first.axes); more.Len() > 0 {
			p.Fail(fmt.Sprintf("%s has %s, which %s lacks", p.Describe(x), quoted(more.Names()), p.Describe(first)),
				p.c.hint(p.c.taken("take one place of it", x, more)))
		}
	}
	p.Same(xs...)
}

// Sizes adds up along the axis.
func (a *Concat) Sizes(s *Sizes) {
	s.Match(axisList(string(a.Axis)))
	n := 0
	for _, x := range a.Xs {
		n += s.Of(x, a.Axis)
	}
	s.Set(0, string(a.Axis), n)
}

// Eval copies each operand to its place.
func (a *Concat) Eval(c *Ctx) {
	out, at := c.Out(0), 0
	k := out.axes.Index(string(a.Axis))
	for _, x := range a.Xs {
		part := &Tensor{env: out.env, dtype: out.dtype, axes: out.axes, strides: out.strides}
		part.sizes = append([]int(nil), out.sizes...)
		part.sizes[k] = x.Size(string(a.Axis))
		if part.Len() > 0 {
			part.data = unsafe.Add(out.data, at*out.strides[k]*out.dtype.Size())
			c.copyStrided(part, x.permuted(out.axes))
		}
		at += part.sizes[k]
	}
}

// Samples covers lengths along the axis and across it, other orders, and the dtypes.
func (*Concat) Samples(m *Maker) (list []Concat) {
	for _, n := range lengths {
		list = append(list, Concat{Xs: []*Tensor{m.Tensor(dtype.F32, "row=2 col=%d", n),
			m.Tensor(dtype.F32, "row=2 col=3")},
			Axis: "col"})
	}
	for _, dt := range allDTypes {
		list = append(list, Concat{Xs: []*Tensor{m.Tensor(dt, "row=3 a=5 col=4"), m.Tensor(dt, "col=4 row=3 a=1"),
			m.Tensor(dt, "row=3 a=0 col=4")}, Axis: "a"},
			Concat{Xs: []*Tensor{m.Tensor(dt, "row=3 a=17"), m.Tensor(dt, "row=2 a=17")}, Axis: "row"})
	}
	return list
}

// Saves nothing.
func (*Concat) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP gives each operand its part of gy.
func (a *Concat) VJP(_, gy []*Tensor, g *Grads) {
	at := 0
	for i, x := range a.Xs {
		n := x.Size(string(a.Axis))
		if g.Wants(i) {
			g.Set(i, gy[0].Slice(string(a.Axis), at, at+n, 1))
		}
		at += n
	}
}
