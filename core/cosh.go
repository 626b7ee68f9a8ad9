package core

import "math"

// Cosh is the hyperbolic cosine of x, (exp(x) + exp(-x)) / 2, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: f32 is computed in f64 and rounded once; f64 is at most 3 ulp from the exact value. The same bits on
// every machine; f16 and bf16 compute in f32 and round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").cosh()
type Cosh struct{ Unary }

var cosh = Declare[Cosh]("cosh")

// Cosh is the hyperbolic cosine; see the Cosh operation.
func (x *Tensor) Cosh() *Tensor { return cosh.Call(Cosh{Unary{x}}) }

// F32 is the f32 kernel.
func (*Cosh) F32(y, x []float32) { each(y, x, coshAt) }

// F64 is the f64 kernel.
func (*Cosh) F64(y, x []float64) { each(y, x, coshAt) }

func coshAt(x float64) float64 {
	a := math.Abs(x)
	if a > 22 {
		half := expPair(a/2, 0)
		return float64(0.5*half) * half
	}
	e := expPair(a, 0)
	return float64(0.5*e) + 0.5/e
}

// Weight is what an element costs beside that of a usual operation.
func (*Cosh) Weight() int { return 4 }

// Saves x.
func (*Cosh) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy · sinh(x).
func (a *Cosh) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0].Mul(a.X.Sinh()))
}
