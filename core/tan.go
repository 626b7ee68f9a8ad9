package core

import "math"

// Tan is the tangent of x, in radians, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: as sin; f64 is at most 3 ulp from the exact value.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([0.0, 0.7853982], "a").tan()
type Tan struct{ Unary }

var tan = Declare[Tan]("tan")

// Tan is the tangent of x; see the Tan operation.
func (x *Tensor) Tan() *Tensor { return tan.Call(Tan{Unary{x}}) }

// F32 is the f32 kernel.
func (*Tan) F32(y, x []float32) { each(y, x, tanAt) }

// F64 is the f64 kernel.
func (*Tan) F64(y, x []float64) { each(y, x, tanAt) }

func tanAt(x float64) float64 {
	if math.Abs(x) < tiny {
		return x
	}
	quarter, r, low := reduceAngle(x)
	if quarter&1 != 0 {
		return -(cosNear(r, low) / sinNear(r, low))
	}
	return sinNear(r, low) / cosNear(r, low)
}

// Weight is what an element costs beside that of a usual operation.
func (*Tan) Weight() int { return 2 }

// Saves y.
func (*Tan) Saves(uint64) (in, out uint64) { return 0, 1 }

// VJP is gy · (1 + y²).
func (a *Tan) VJP(y, gy []*Tensor, g *Grads) {
	p := y[0].wide()
	g.Set(0, gy[0].wide().Mul(p.Mul(p).plus(1)))
}
