package core

import "github.com/fucina-go/fucina/kernels/num"

// Lt is x < y, element by element, as bool; aligned by axis name. Either may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes] of bool.
// A NaN compares false.
//
// Example:
//
//	tensor([1, 2, 3], "a").lt(2)
type Lt struct{ Compare }

var lt = Declare[Lt]("lt")

// Lt is x < y; see the Lt operation.
func (x *Tensor) Lt(y *Tensor) *Tensor { return lt.Call(Lt{Compare{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*Lt) F32(z []bool, x, y []float32) { num.Less(z, x, y) }

// F64 is the f64 kernel.
func (*Lt) F64(z []bool, x, y []float64) { num.Less(z, x, y) }

// I64 is the integer kernel.
func (*Lt) I64(z []bool, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] < y[i]
	}
}
