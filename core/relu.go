package core

// ReLU is x where it is above 0, else 0, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: NaN stays NaN.
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").relu()
type ReLU struct{ Unary }

var relu = Declare[ReLU]("relu")

// ReLU is max(x, 0); see the ReLU operation.
func (x *Tensor) ReLU() *Tensor { return relu.Call(ReLU{Unary{x}}) }

// F32 is the f32 kernel.
func (*ReLU) F32(y, x []float32) { rectify(y, x) }

// F64 is the f64 kernel.
func (*ReLU) F64(y, x []float64) { rectify(y, x) }

// I64 is the integer kernel.
func (*ReLU) I64(y, x []int64) { rectify(y, x) }

func rectify[T number](y, x []T) {
	x = x[:len(y)]
	for i, v := range x {
		if v <= 0 {
			v = 0
		}
		y[i] = v
	}
}

// Saves y.
func (*ReLU) Saves(uint64) (in, out uint64) { return 0, 1 }

// VJP is gy where y is above 0: at 0 there is none, as in PyTorch.
func (a *ReLU) VJP(y, gy []*Tensor, g *Grads) { g.Set(0, gy[0].where(y[0].above(0))) }
