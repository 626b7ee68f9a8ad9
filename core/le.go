package core

import "github.com/fucina-go/fucina/kernels/num"

// Le is x <= y, element by element, as bool; aligned by axis name. Either may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes] of bool.
// A NaN compares false.
//
// Example:
//
//	tensor([1, 2, 3], "a").le(2)
type Le struct{ Compare }

var le = Declare[Le]("le")

// Le is x <= y; see the Le operation.
func (x *Tensor) Le(y *Tensor) *Tensor { return le.Call(Le{Compare{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*Le) F32(z []bool, x, y []float32) { num.LessEqual(z, x, y) }

// F64 is the f64 kernel.
func (*Le) F64(z []bool, x, y []float64) { num.LessEqual(z, x, y) }

// I64 is the integer kernel.
func (*Le) I64(z []bool, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] <= y[i]
	}
}
