package core

import "math"

// Sinh is the hyperbolic sine of x, (exp(x) - exp(-x)) / 2, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: f32 is computed in f64 and rounded once; f64 is at most 3 ulp from the exact value. The same bits on
// every machine; f16 and bf16 compute in f32 and round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").sinh()
type Sinh struct{ Unary }

var sinh = Declare[Sinh]("sinh")

// Sinh is the hyperbolic sine; see the Sinh operation.
func (x *Tensor) Sinh() *Tensor { return sinh.Call(Sinh{Unary{x}}) }

// F32 is the f32 kernel.
func (*Sinh) F32(y, x []float32) { each(y, x, sinhAt) }

// F64 is the f64 kernel.
func (*Sinh) F64(y, x []float64) { each(y, x, sinhAt) }

// sinhAt is (e + e/(e+1)) / 2 for e = exp|x| - 1; for great x one exponential is all, in two factors.
func sinhAt(x float64) float64 {
	a := math.Abs(x)
	if a > 22 {
		half := expPair(a/2, 0)
		return math.Copysign(float64(0.5*half)*half, x)
	}
	e := expm1At(a)
	return math.Copysign(0.5*(e+e/(e+1)), x)
}

// Weight is what an element costs beside that of a usual operation.
func (*Sinh) Weight() int { return 4 }

// Saves x.
func (*Sinh) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy · cosh(x).
func (a *Sinh) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0].Mul(a.X.Cosh()))
}
