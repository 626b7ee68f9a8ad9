package core

import (
	"fmt"

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
		p.Fail(fmt.Sprintf("%s has the axis %q already", p.Describe(first), a.Axis),
			fmt.Sprintf("to join along it: concat(xs, %q)", a.Axis))
	}
}

// alike insists that the tensors have one dtype and the same axes, in any order.
func (p *Plan) alike(xs []*Tensor) {
	first := xs[0]
	for _, x := range xs[1:] {
		p.NeedAll(x, first.axes)
		if more := x.axes.Without(first.axes); more.Len() > 0 {
			p.Fail(fmt.Sprintf("%s has %s, which %s lacks", p.Describe(x), quoted(more.Names()), p.Describe(first)),
				fmt.Sprintf("all tensors need the axes %q", first.axes))
		}
	}
	p.Same(xs...)
}

// Compose joins along an inserted axis.
func (a *Stack) Compose() *Tensor {
	xs := make([]*Tensor, len(a.Xs))
	for i, x := range a.Xs {
		xs[i] = x.Insert(string(a.Axis))
	}
	return ConcatAll(string(a.Axis), xs...)
}

// Samples covers the lengths, other orders, and the dtypes.
func (*Stack) Samples(m *Maker) (list []Stack) {
	for _, n := range lengths {
		list = append(list, Stack{Xs: []*Tensor{m.Tensor(dtype.F32, "row=3 col=%d", n), m.Tensor(dtype.F32, "row=3 col=%d", n)},
			Axis: "a"})
	}
	for _, dt := range allDTypes {
		list = append(list, Stack{Xs: []*Tensor{m.Tensor(dt, "row=3 a=2"), m.Tensor(dt, "a=2 row=3"), m.Tensor(dt, "row=3 a=2")},
			Axis: "b"}, Stack{Xs: []*Tensor{m.Tensor(dt, "")}, Axis: "b"})
	}
	return list
}
