package core

import (
	"fmt"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
)

// Stack lays tensors of equal axes beside one another along a new axis, which comes first.
//
// Shape: xs[i][a, b] → y[axis=number of xs, a, b], in the order of the first one's axes.
//
// Errors: an axis that they have already; different axes, sizes or dtypes.
//
// Example:
//
//	stack([zeros(a=2), ones(a=2)], "row")
type Stack struct {
	Xs   []*Tensor `arg:"xs"`
	Axis Axis      `arg:"axis"`
}

var stack = Declare[Stack]("stack")

// StackAll lays tensors beside one another along a new axis; see the Stack operation.
func StackAll(axis string, xs ...*Tensor) *Tensor { return stack.Call(Stack{Xs: xs, Axis: Axis(axis)}) }

// Names insists on equal sets of axes, without the new one.
func (a *Stack) Names(p *Plan) {
	p.alike(a.Xs)
	if first := a.Xs[0]; first.axes.Has(string(a.Axis)) {
		fixed := *a
		fixed.Axis = Axis(freshNames(axisList(string(a.Axis)), first.axes)[0])
		p.Fail(fmt.Sprintf("%s has the axis %q already", p.Describe(first), a.Axis),
			p.c.hint(p.c.recall("concat joins along it; for a new axis", &fixed)))
	}
	p.Out(axisList(string(a.Axis)).Append(a.Xs[0].axes), a.Xs[0].dtype)
}

// Sizes counts the tensors.
func (a *Stack) Sizes(s *Sizes) {
	s.Match(nil)
	s.Set(0, string(a.Axis), len(a.Xs))
}

// Eval copies each operand to its place.
func (a *Stack) Eval(c *Ctx) {
	out, first := c.Out(0), a.Xs[0]
	for i, x := range a.Xs {
		part := &Tensor{env: out.env, dtype: out.dtype, axes: first.axes, sizes: out.sizes[1:],
			strides: out.strides[1:]}
		if part.Len() > 0 {
			part.data = unsafe.Add(out.data, i*part.Len()*out.dtype.Size())
			c.copyInto(part, x.permuted(first.axes))
		}
	}
}

// Saves nothing.
func (*Stack) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP gives each operand its place of gy.
func (a *Stack) VJP(_, gy []*Tensor, g *Grads) {
	for i := range a.Xs {
		if g.Wants(i) {
			g.Set(i, gy[0].At(string(a.Axis), i))
		}
	}
}

// Samples covers the lengths, other orders, and the dtypes.
func (*Stack) Samples(m *Maker) (list []Stack) {
	for _, n := range lengths {
		list = append(list,
			Stack{Xs: []*Tensor{m.Tensor(dtype.F32, "row=3 col=%d", n), m.Tensor(dtype.F32, "row=3 col=%d", n)},
				Axis: "a"})
	}
	for _, dt := range allDTypes {
		list = append(list,
			Stack{Xs: []*Tensor{m.Tensor(dt, "row=3 a=2"), m.Tensor(dt, "a=2 row=3"), m.Tensor(dt, "row=3 a=2")},
				Axis: "b"}, Stack{Xs: []*Tensor{m.Tensor(dt, "")}, Axis: "b"})
	}
	return list
}
