package core

import "github.com/fucina-go/fucina/kernels/num"

// Exp is e to the power of x, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: at most 2 ulp from the exact value, the same bits on every machine; f16 and bf16 compute in f32 and
// round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").exp()
type Exp struct{ Unary }

var exp = Declare[Exp]("exp")

// Exp is e to the power of x; see the Exp operation.
func (x *Tensor) Exp() *Tensor { return exp.Call(Exp{Unary{x}}) }

// F32 is the f32 kernel.
func (*Exp) F32(y, x []float32) { num.Exp(y, x) }

// F64 is the f64 kernel.
func (*Exp) F64(y, x []float64) { num.Exp(y, x) }

// Saves y.
func (*Exp) Saves(uint64) (in, out uint64) { return 0, 1 }

// VJP is gy · y.
func (a *Exp) VJP(y, gy []*Tensor, g *Grads) { g.Set(0, gy[0].Mul(y[0])) }
