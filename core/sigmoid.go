package core

import "github.com/fucina-go/fucina/kernels/num"

// Sigmoid is 1 / (1 + exp(-x)), element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: at most 4 ulp from the exact value, the same bits on every machine; f16 and bf16 compute in f32 and
// round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").sigmoid()
type Sigmoid struct{ Unary }

var sigmoid = Declare[Sigmoid]("sigmoid")

// Sigmoid is 1 / (1 + exp(-x)); see the Sigmoid operation.
func (x *Tensor) Sigmoid() *Tensor { return sigmoid.Call(Sigmoid{Unary{x}}) }

// F32 is the f32 kernel.
func (*Sigmoid) F32(y, x []float32) { num.Sigmoid(y, x) }

// F64 is the f64 kernel.
func (*Sigmoid) F64(y, x []float64) { num.Sigmoid(y, x) }

// Saves y.
func (*Sigmoid) Saves(uint64) (in, out uint64) { return 0, 1 }

// VJP is gy · y · (1 - y).
func (a *Sigmoid) VJP(y, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0].Mul(y[0]).Mul(y[0].Neg().plus(1)))
}
