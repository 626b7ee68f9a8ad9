package core

import "github.com/fucina-go/fucina/core/dtype"

// Reciprocal is 1 / x, element by element. Integers give f32, as true division does.
//
// Shape: x[axes] → y[axes].
// Numerics: correctly rounded; 1/0 is inf.
//
// Example:
//
//	tensor([4.0, 0.5], "a").reciprocal()
type Reciprocal struct{ Unary }

var reciprocal = Declare[Reciprocal]("reciprocal")

// Reciprocal is 1 / x; see the Reciprocal operation.
func (x *Tensor) Reciprocal() *Tensor { return reciprocal.Call(Reciprocal{Unary{x}}) }

// Names keeps the axes; integers become f32.
func (a *Reciprocal) Names(p *Plan) {
	dt := a.X.dtype
	if !dt.IsFloat() {
		dt = dtype.F32
	}
	p.Out(a.X.axes, dt)
}

// Eval calls the kernel of the result's dtype.
func (a *Reciprocal) Eval(c *Ctx) {
	if c.Out(0).dtype == dtype.F64 {
		pointwise(c, c.Out(0), inverses[float64], a.X)
		return
	}
	pointwise(c, c.Out(0), inverses[float32], a.X)
}

func inverses[T float32 | float64](_ Op, y []T, xs *[maxOperands][]T) {
	x := xs[0][:len(y)]
	for i := range y {
		y[i] = 1 / x[i]
	}
}

// Saves y.
func (*Reciprocal) Saves(uint64) (in, out uint64) { return 0, 1 }

// VJP is -gy · y².
func (a *Reciprocal) VJP(y, gy []*Tensor, g *Grads) { g.Set(0, gy[0].Mul(y[0]).Mul(y[0]).Neg()) }
