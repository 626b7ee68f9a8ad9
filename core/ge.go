package core

import "github.com/fucina-go/fucina/kernels/num"

// Ge is x >= y, element by element, as bool; aligned by axis name. Either may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes] of bool.
// A NaN compares false.
//
// Example:
//
//	tensor([1, 2, 3], "a").ge(2)
type Ge struct{ Compare }

var ge = Declare[Ge]("ge")

// Ge is x >= y; see the Ge operation.
func (x *Tensor) Ge(y *Tensor) *Tensor { return ge.Call(Ge{Compare{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*Ge) F32(z []bool, x, y []float32) { num.LessEqual(z, y, x) }

// F64 is the f64 kernel.
func (*Ge) F64(z []bool, x, y []float64) { num.LessEqual(z, y, x) }

// I64 is the integer kernel.
func (*Ge) I64(z []bool, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] >= y[i]
	}
}
