package core

import (
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Div is the elementwise quotient x / y, aligned by axis name. Integers give f32, as the true
// division of Python does.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes].
// Numerics: correctly rounded; x/0 is ±inf and 0/0 NaN.
//
// Example:
//
//	tensor([1, 2], "a").div(4)
type Div struct{ Binary }

var div = Declare[Div]("div")

// Div is the elementwise quotient; see the Div operation.
func (x *Tensor) Div(y *Tensor) *Tensor { return div.Call(Div{Binary{X: x, Y: y}}) }

// Names broadcasts by name; integers become f32.
func (a *Div) Names(p *Plan) {
	axes := p.Broadcast(a.Outer, a.X, a.Y)
	dt := p.Same(a.X, a.Y)
	if !dt.IsFloat() {
		dt = dtype.F32
	}
	p.Out(axes, dt)
}

// Eval calls the kernel of the result's dtype.
func (a *Div) Eval(c *Ctx) {
	if c.Out(0).dtype == dtype.F64 {
		pointwise(c, c.Out(0), quotient[float64], a.X, a.Y)
		return
	}
	pointwise(c, c.Out(0), quotient[float32], a.X, a.Y)
}

func quotient[T float32 | float64](_ Op, z []T, xs *[maxOperands][]T) {
	num.Div(z, xs[0][:len(z)], xs[1][:len(z)])
}

// Saves y, and x if y wants a gradient.
func (*Div) Saves(want uint64) (in, out uint64) { return want>>1&1 | 2, 0 }

// VJP is gy / y and -gy · x / y².
func (a *Div) VJP(_, gy []*Tensor, g *Grads) {
	q := gy[0].Div(a.Y)
	g.Set(0, q)
	if g.Wants(1) {
		g.Set(1, q.Mul(a.X).Div(a.Y).Neg())
	}
}
