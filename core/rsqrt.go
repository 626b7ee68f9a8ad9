package core

import "math"

// Rsqrt is 1 / √x, element by element: inf at 0, NaN below.
//
// Shape: x[axes] → y[axes].
// Numerics: f32 is computed in f64 and rounded once; f64 is at most 1.5 ulp from the exact value.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([4.0, 0.25], "a").rsqrt()
type Rsqrt struct{ Unary }

var rsqrt = Declare[Rsqrt]("rsqrt")

// Rsqrt is 1 / √x; see the Rsqrt operation.
func (x *Tensor) Rsqrt() *Tensor { return rsqrt.Call(Rsqrt{Unary{x}}) }

// F32 is the f32 kernel.
func (*Rsqrt) F32(y, x []float32) { inverseRoots(y, x) }

// F64 is the f64 kernel.
func (*Rsqrt) F64(y, x []float64) { inverseRoots(y, x) }

func inverseRoots[T float32 | float64](y, x []T) {
	x = x[:len(y)]
	for i := range y {
		y[i] = T(1 / math.Sqrt(float64(x[i])))
	}
}

// Saves y.
func (*Rsqrt) Saves(uint64) (in, out uint64) { return 0, 1 }

// VJP is -gy · y³ / 2.
func (a *Rsqrt) VJP(y, gy []*Tensor, g *Grads) {
	p, gp := y[0].wide(), gy[0].wide()
	g.Set(0, gp.Mul(p.Mul(p).Mul(p)).times(-0.5))
}
