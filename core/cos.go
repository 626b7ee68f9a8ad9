package core

// Cos is the cosine of x, in radians, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: as sin.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([0.0, 3.1415927], "a").cos()
type Cos struct{ Unary }

var cos = Declare[Cos]("cos")

// Cos is the cosine of x; see the Cos operation.
func (x *Tensor) Cos() *Tensor { return cos.Call(Cos{Unary{x}}) }

// F32 is the f32 kernel.
func (*Cos) F32(y, x []float32) { waves(y, x, 1, cosAt) }

// F64 is the f64 kernel.
func (*Cos) F64(y, x []float64) { each(y, x, cosAt) }

func cosAt(x float64) float64 {
	quarter, r, low := reduceAngle(x)
	y := cosNear(r, low)
	if quarter&1 != 0 {
		y = sinNear(r, low)
	}
	if (quarter+1)&2 != 0 {
		return -y
	}
	return y
}

// Weight is what an element costs beside that of a usual operation.
func (*Cos) Weight() int { return 2 }

// Saves x.
func (*Cos) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is -gy · sin(x).
func (a *Cos) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, gy[0].Mul(a.X.Sin()).Neg()) }
