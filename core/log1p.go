package core

import "math"

// Log1p is log(1 + x), element by element, exact for x near 0 too: -inf at -1, NaN below.
//
// Shape: x[axes] → y[axes].
// Numerics: f32 is computed in f64 and rounded once; f64 is at most 1 ulp from the exact value. The same bits on
// every machine; f16 and bf16 compute in f32 and round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-0.5, 1e-6, 2.0], "a").log1p()
type Log1p struct{ Unary }

var log1p = Declare[Log1p]("log1p")

// Log1p is log(1 + x); see the Log1p operation.
func (x *Tensor) Log1p() *Tensor { return log1p.Call(Log1p{Unary{x}}) }

// F32 is the f32 kernel.
func (*Log1p) F32(y, x []float32) { each(y, x, log1pAt) }

// F64 is the f64 kernel.
func (*Log1p) F64(y, x []float64) { each(y, x, log1pAt) }

// log1pAt is the logarithm of u = 1 + x rounded, and c/u for the c that u lacks.
func log1pAt(x float64) float64 {
	u := 1 + x
	switch {
	case x != x || u == 1 || math.IsInf(x, 1):
		return x
	case x < -1:
		return math.NaN()
	case x == -1:
		return math.Inf(-1)
	}
	c := x - (u - 1)
	if x > 1 {
		c = 1 - (u - x)
	}
	high, low := logPair(u)
	return high + (low + c/u)
}

// Weight is what an element costs beside that of a usual operation.
func (*Log1p) Weight() int { return 4 }

// Saves x.
func (*Log1p) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy / (1 + x).
func (a *Log1p) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, gy[0].wide().Div(a.X.wide().plus(1))) }
