package core

import "github.com/fucina-go/fucina/kernels/num"

// Tanh is the hyperbolic tangent of x, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: at most 4 ulp from the exact value, the same bits on every machine; f16 and bf16 compute in f32 and
// round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").tanh()
type Tanh struct{ Unary }

var tanh = Declare[Tanh]("tanh")

// Tanh is the hyperbolic tangent of x; see the Tanh operation.
func (x *Tensor) Tanh() *Tensor { return tanh.Call(Tanh{Unary{x}}) }

// F32 is the f32 kernel.
func (*Tanh) F32(y, x []float32) { num.Tanh(y, x) }

// F64 is the f64 kernel.
func (*Tanh) F64(y, x []float64) { num.Tanh(y, x) }

// Saves y.
func (*Tanh) Saves(uint64) (in, out uint64) { return 0, 1 }

// VJP is gy · (1 - y²).
func (a *Tanh) VJP(y, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0].Mul(y[0].Mul(y[0]).Neg().plus(1)))
}
