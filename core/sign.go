package core

// Sign is -1, 0 or 1 as x is below, at or above 0, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: NaN gives NaN, as in NumPy (PyTorch gives 0).
//
// Example:
//
//	tensor([-1.5, 0.0, 2.0], "a").sign()
type Sign struct{ Unary }

var sign = Declare[Sign]("sign")

// Sign is -1, 0 or 1; see the Sign operation.
func (x *Tensor) Sign() *Tensor { return sign.Call(Sign{Unary{x}}) }

// F32 is the f32 kernel.
func (*Sign) F32(y, x []float32) { signs(y, x) }

// F64 is the f64 kernel.
func (*Sign) F64(y, x []float64) { signs(y, x) }

// I64 is the integer kernel.
func (*Sign) I64(y, x []int64) { signs(y, x) }

func signs[T number](y, x []T) {
	x = x[:len(y)]
	for i, v := range x {
		switch {
		case v > 0:
			y[i] = 1
		case v < 0:
			y[i] = -1
		default:
			y[i] = v
		}
	}
}

// Saves nothing.
func (*Sign) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP is 0.
func (a *Sign) VJP(_, gy []*Tensor, g *Grads) { g.zero(0, gy[0]) }
