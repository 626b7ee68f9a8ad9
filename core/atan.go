package core

// Atan is the angle between -π/2 and π/2 whose tangent is x, in radians, element by element. Of a point
// see atan2.
//
// Shape: x[axes] → y[axes].
// Numerics: f32 is computed in f64 and rounded once; f64 is at most 2 ulp from the exact value. The same bits on
// every machine; f16 and bf16 compute in f32 and round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").atan()
type Atan struct{ Unary }

var atan = Declare[Atan]("atan")

// Atan is the angle whose tangent is x; see the Atan operation.
func (x *Tensor) Atan() *Tensor { return atan.Call(Atan{Unary{x}}) }

// F32 is the f32 kernel.
func (*Atan) F32(y, x []float32) { each(y, x, atanAt) }

// F64 is the f64 kernel.
func (*Atan) F64(y, x []float64) { each(y, x, atanAt) }

func atanAt(x float64) float64 { return angleOf(1, x) }

// Weight is what an element costs beside that of a usual operation.
func (*Atan) Weight() int { return 8 }

// Saves x.
func (*Atan) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy / (1 + x²).
func (a *Atan) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0].wide().Div(a.X.wide().Square().plus(1)))
}
