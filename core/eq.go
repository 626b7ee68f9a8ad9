package core

import "github.com/fucina-go/fucina/kernels/num"

// Eq is x == y, element by element, as bool; aligned by axis name. Either may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes] of bool.
// A NaN equals nothing.
//
// Example:
//
//	tensor([1, 2, 3], "a").eq(2)
type Eq struct{ Compare }

var eq = Declare[Eq]("eq")

// Eq is x == y; see the Eq operation.
func (x *Tensor) Eq(y *Tensor) *Tensor { return eq.Call(Eq{Compare{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*Eq) F32(z []bool, x, y []float32) { num.Equal(z, x, y) }

// F64 is the f64 kernel.
func (*Eq) F64(z []bool, x, y []float64) { num.Equal(z, x, y) }

// I64 is the integer kernel.
func (*Eq) I64(z []bool, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] == y[i]
	}
}
