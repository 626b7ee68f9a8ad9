package core

import "math"

// Acos is the angle between 0 and π whose cosine is x, in radians, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: f32 is computed in f64 and rounded once; f64 is at most 2 ulp from the exact value. The same bits on
// every machine; f16 and bf16 compute in f32 and round once. NaN outside of -1 … 1.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 0.5], "a").acos()
type Acos struct{ Unary }

var acos = Declare[Acos]("acos")

// Acos is the angle whose cosine is x; see the Acos operation.
func (x *Tensor) Acos() *Tensor { return acos.Call(Acos{Unary{x}}) }

// F32 is the f32 kernel.
func (*Acos) F32(y, x []float32) { each(y, x, acosAt) }

// F64 is the f64 kernel.
func (*Acos) F64(y, x []float64) { each(y, x, acosAt) }

func acosAt(x float64) float64 { return angleOf(x, math.Sqrt(math.FMA(-x, x, 1))) }

// Weight is what an element costs beside that of a usual operation.
func (*Acos) Weight() int { return 8 }

// Saves x.
func (*Acos) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is -gy / √(1 - x²).
func (a *Acos) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0].wide().Mul(a.X.wide().Square().Neg().plus(1).Rsqrt()).Neg())
}
