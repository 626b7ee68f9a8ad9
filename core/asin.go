package core

import "math"

// Asin is the angle between -π/2 and π/2 whose sine is x, in radians, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: f32 is computed in f64 and rounded once; f64 is at most 2 ulp from the exact value. The same bits on
// every machine; f16 and bf16 compute in f32 and round once. NaN outside of -1 … 1.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 0.5], "a").asin()
type Asin struct{ Unary }

var asin = Declare[Asin]("asin")

// Asin is the angle whose sine is x; see the Asin operation.
func (x *Tensor) Asin() *Tensor { return asin.Call(Asin{Unary{x}}) }

// F32 is the f32 kernel.
func (*Asin) F32(y, x []float32) { each(y, x, asinAt) }

// F64 is the f64 kernel.
func (*Asin) F64(y, x []float64) { each(y, x, asinAt) }

func asinAt(x float64) float64 { return angleOf(math.Sqrt(math.FMA(-x, x, 1)), x) }

// Weight is what an element costs beside that of a usual operation.
func (*Asin) Weight() int { return 8 }

// Saves x.
func (*Asin) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy / √(1 - x²).
func (a *Asin) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0].wide().Mul(a.X.wide().Square().Neg().plus(1).Rsqrt()))
}
