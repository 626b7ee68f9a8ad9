package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// Outer is the product of every element of x with every element of y.
//
// Shape: x[a, b], y[c] → z[a, b, c]: the axes of x, then those of y.
//
// Errors: an axis that both have; dtypes that differ.
//
// Example:
//
//	tensor([1, 2], "row").outer(tensor([1, 10, 100], "col"))
type Outer struct {
	X *Tensor `arg:"x"`
	Y *Tensor `arg:"y"`
}

var outer = Declare[Outer]("outer")

// Outer is every product of an element of x with one of y; see the Outer operation.
func (x *Tensor) Outer(y *Tensor) *Tensor { return outer.Call(Outer{X: x, Y: y}) }

// Names insists on axes of one's own.
func (a *Outer) Names(p *Plan) {
	if both := a.X.axes.Shared(a.Y.axes); both.Len() > 0 {
		p.Fail(fmt.Sprintf("%s and %s share %s", p.Describe(a.X), p.Describe(a.Y), quoted(both.Names())),
			p.c.hint(p.c.renamed("mul aligns what they share, for all pairs", a.Y, both.Names(),
				freshNames(both, a.X.axes, a.Y.axes))))
	}
	p.Same(a.X, a.Y)
}

// Compose multiplies.
func (a *Outer) Compose() *Tensor {
	z := mul.Call(Mul{Binary{X: a.X, Y: a.Y, Outer: true}})
	return order.Call(Order{X: z, Axes: a.X.axes.Append(a.Y.axes)})
}

// Samples covers the lengths, either operand being the wider one, and the dtypes.
func (*Outer) Samples(m *Maker) (list []Outer) {
	for _, n := range lengths {
		list = append(list, Outer{X: m.Tensor(dtype.F32, "row=3"), Y: m.Tensor(dtype.F32, "col=%d", n)})
	}
	for _, dt := range allDTypes {
		list = append(list, Outer{X: m.Tensor(dt, "row=3"), Y: m.Tensor(dt, "a=2 col=17")},
			Outer{X: m.Tensor(dt, "row=3 a=2"), Y: m.Tensor(dt, "")})
	}
	return list
}
