package core

import "math"

// Log10 is the logarithm of x to the base 10, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: f32 is computed in f64 and rounded once; f64 is at most 1 ulp from the exact value. The same bits on
// every machine; f16 and bf16 compute in f32 and round once. -inf at 0, NaN below.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 1000.0], "a").log10()
type Log10 struct{ Unary }

var log10 = Declare[Log10]("log10")

// Log10 is the logarithm to the base 10; see the Log10 operation.
func (x *Tensor) Log10() *Tensor { return log10.Call(Log10{Unary{x}}) }

// F32 is the f32 kernel.
func (*Log10) F32(y, x []float32) { each(y, x, log10At) }

// F64 is the f64 kernel.
func (*Log10) F64(y, x []float64) { each(y, x, log10At) }

func log10At(x float64) float64 { return logIn(x, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57) } // 1 / ln 10

// Weight is what an element costs beside that of a usual operation.
func (*Log10) Weight() int { return 4 }

// Saves x.
func (*Log10) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy / (x · ln 10).
func (a *Log10) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0].wide().Div(a.X.wide().times(math.Ln10)))
}
