package core

import "github.com/fucina-go/fucina/kernels/num"

// Gt is x > y, element by element, as bool; aligned by axis name. Either may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes] of bool.
// A NaN compares false.
//
// Example:
//
//	tensor([1, 2, 3], "a").gt(2)
type Gt struct{ Compare }

var gt = Declare[Gt]("gt")

// Gt is x > y; see the Gt operation.
func (x *Tensor) Gt(y *Tensor) *Tensor { return gt.Call(Gt{Compare{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*Gt) F32(z []bool, x, y []float32) { num.Less(z, y, x) }

// F64 is the f64 kernel.
func (*Gt) F64(z []bool, x, y []float64) { num.Less(z, y, x) }

// I64 is the integer kernel.
func (*Gt) I64(z []bool, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] > y[i]
	}
}
