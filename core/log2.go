package core

import "math"

// Log2 is the logarithm of x to the base 2, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: f32 is computed in f64 and rounded once; f64 is at most 1 ulp from the exact value. The same bits on
// every machine; f16 and bf16 compute in f32 and round once. -inf at 0, NaN below.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 8.0], "a").log2()
type Log2 struct{ Unary }

var log2 = Declare[Log2]("log2")

// Log2 is the logarithm to the base 2; see the Log2 operation.
func (x *Tensor) Log2() *Tensor { return log2.Call(Log2{Unary{x}}) }

// F32 is the f32 kernel.
func (*Log2) F32(y, x []float32) { each(y, x, log2At) }

// F64 is the f64 kernel.
func (*Log2) F64(y, x []float64) { each(y, x, log2At) }

func log2At(x float64) float64 { return logIn(x, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56) } // 1 / ln 2

// logIn is log(x) times the sum of two numbers; a power of the base gives a whole number.
func logIn(x, scale, scaleLow float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case x < 0:
		return math.NaN()
	case x != x || math.IsInf(x, 1):
		return x
	}
	high, low := logPair(x)
	p := float64(high * scale)
	return p + (math.FMA(high, scale, -p) + math.FMA(high, scaleLow, float64(low*scale)))
}

// Weight is what an element costs beside that of a usual operation.
func (*Log2) Weight() int { return 4 }

// Saves x.
func (*Log2) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy / (x · ln 2).
func (a *Log2) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0].wide().Div(a.X.wide().times(math.Ln2)))
}
