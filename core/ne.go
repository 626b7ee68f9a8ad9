package core

import "github.com/fucina-go/fucina/kernels/num"

// Ne is x != y, element by element, as bool; aligned by axis name. Either may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes] of bool.
// A NaN differs from everything.
//
// Example:
//
//	tensor([1, 2, 3], "a").ne(2)
type Ne struct{ Compare }

var ne = Declare[Ne]("ne")

// Ne is x != y; see the Ne operation.
func (x *Tensor) Ne(y *Tensor) *Tensor { return ne.Call(Ne{Compare{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*Ne) F32(z []bool, x, y []float32) { num.NotEqual(z, x, y) }

// F64 is the f64 kernel.
func (*Ne) F64(z []bool, x, y []float64) { num.NotEqual(z, x, y) }

// I64 is the integer kernel.
func (*Ne) I64(z []bool, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] != y[i]
	}
}
