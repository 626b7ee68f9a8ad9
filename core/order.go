package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// Order puts the axes into the given order, of which every axis must be named. It is a view: only
// strides change.
//
// Shape: x[a, b, c] → y[c, a, b] for order("c a b").
//
// Errors: an axis that x lacks; an axis of x that is missing from the list.
//
// Example:
//
//	zeros(row=2, col=3).order("col row")
type Order struct {
	X    *Tensor `arg:"x"`
	Axes Axes    `arg:"axes"`
}

var order = Declare[Order]("order")

// Order puts the axes into the order that names writes, separated by spaces.
func (x *Tensor) Order(names string) *Tensor { return order.Call(Order{X: x, Axes: axisList(names)}) }

// Names insists on a permutation.
func (a *Order) Names(p *Plan) {
	p.NeedAll(a.X, a.Axes)
	if rest := a.X.axes.Without(a.Axes); rest.Len() > 0 {
		p.Fail(fmt.Sprintf("%s is missing from the order %q of %s", quoted(rest.Names()), a.Axes, p.Describe(a.X)),
			p.c.hint(p.c.recall("name every axis", &Order{X: a.X, Axes: a.Axes.Append(a.X.axes)})))
	}
	p.Out(a.Axes, a.X.dtype)
}

// View permutes the strides.
func (a *Order) View(v *View) bool {
	for k, name := range a.Axes.Names() {
		v.Stride(k, a.X.strides[a.X.axes.Index(name)])
	}
	v.Alias(a.X, 0)
	return true
}

// Samples covers the lengths, longer cycles, and the dtypes.
func (*Order) Samples(m *Maker) (list []Order) {
	for _, n := range lengths {
		list = append(list, Order{X: m.Tensor(dtype.F32, "a=3 b=%d", n), Axes: axisList("b", "a")})
	}
	for _, dt := range allDTypes {
		list = append(list, Order{X: m.Tensor(dt, "a=3 b=2 c=4 d=1"), Axes: axisList("c", "d", "a", "b")})
	}
	return list
}

// Saves nothing.
func (*Order) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP puts the axes back into x's order.
func (a *Order) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, gy[0]) }
