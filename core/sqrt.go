package core

import "github.com/fucina-go/fucina/kernels/num"

// Sqrt is the square root of x, element by element; NaN below 0.
//
// Shape: x[axes] → y[axes]. Numerics: correctly rounded.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([4.0, 2.0], "a").sqrt()
type Sqrt struct{ Unary }

var sqrt = Declare[Sqrt]("sqrt")

// Sqrt is the square root; see the Sqrt operation.
func (x *Tensor) Sqrt() *Tensor { return sqrt.Call(Sqrt{Unary{x}}) }

// F32 is the f32 kernel.
func (*Sqrt) F32(y, x []float32) { num.Sqrt(y, x) }

// F64 is the f64 kernel.
func (*Sqrt) F64(y, x []float64) { num.Sqrt(y, x) }

// Saves y.
func (*Sqrt) Saves(uint64) (in, out uint64) { return 0, 1 }

// VJP is gy / 2y.
func (a *Sqrt) VJP(y, gy []*Tensor, g *Grads) { g.Set(0, gy[0].Div(y[0].times(2))) }
