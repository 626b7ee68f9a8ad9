package core

import "math"

// Expm1 is exp(x) - 1, element by element, exact for x near 0 too.
//
// Shape: x[axes] → y[axes].
// Numerics: f32 is computed in f64 and rounded once; f64 is at most 2 ulp from the exact value. The same bits on
// every machine; f16 and bf16 compute in f32 and round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 1e-6, 2.0], "a").expm1()
type Expm1 struct{ Unary }

var expm1 = Declare[Expm1]("expm1")

// Expm1 is exp(x) - 1; see the Expm1 operation.
func (x *Tensor) Expm1() *Tensor { return expm1.Call(Expm1{Unary{x}}) }

// F32 is the f32 kernel.
func (*Expm1) F32(y, x []float32) { each(y, x, expm1At) }

// F64 is the f64 kernel.
func (*Expm1) F64(y, x []float64) { each(y, x, expm1At) }

// expm1At is 2ⁿ - 1 + 2ⁿ·(exp(r) - 1) for x = n·ln 2 + r.
func expm1At(x float64) float64 {
	switch {
	case x != x || math.Abs(x) < 0x1p-54:
		return x
	case x > 710:
		return math.Inf(1)
	case x < -38:
		return -1
	}
	n, r, low := reduceExp(x, 0)
	p := r + math.FMA(float64(r*r), expTail(r), math.FMA(r, low, low))
	if n > 53 {
		return scaleBy(1+p, n) // the 1 is less than half an ulp
	}
	two := math.Float64frombits(uint64(n+1023) << 52)
	return math.FMA(two, p, two-1)
}

// Weight is what an element costs beside that of a usual operation.
func (*Expm1) Weight() int { return 2 }

// Saves y.
func (*Expm1) Saves(uint64) (in, out uint64) { return 0, 1 }

// VJP is gy · (y + 1).
func (a *Expm1) VJP(y, gy []*Tensor, g *Grads) { g.Set(0, gy[0].wide().Mul(y[0].wide().plus(1))) }
