package core

import "github.com/fucina-go/fucina/kernels/num"

// Minimum is the lesser of x and y, element by element, aligned by axis name. Either may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes].
// Numerics: NaN if one of the two is NaN.
//
// Example:
//
//	tensor([1, 5], "a").minimum(tensor([3, 4], "a"))
type Minimum struct{ Binary }

var minimum = Declare[Minimum]("minimum")

// Minimum is the lesser of the two; see the Minimum operation.
func (x *Tensor) Minimum(y *Tensor) *Tensor { return minimum.Call(Minimum{Binary{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*Minimum) F32(z, x, y []float32) { num.Minimum(z, x, y) }

// F64 is the f64 kernel.
func (*Minimum) F64(z, x, y []float64) { num.Minimum(z, x, y) }

// I64 is the integer kernel.
func (*Minimum) I64(z, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = min(x[i], y[i])
	}
}

// VJP gives gy to the lesser one, half of it to each of equals, as in PyTorch.
func (a *Minimum) VJP(_, gy []*Tensor, g *Grads) {
	half := eq.Call(Eq{Compare{X: a.X, Y: a.Y, Outer: a.Outer}}).Where(gy[0].times(0.5), gy[0])
	if g.Wants(0) {
		g.Set(0, half.where(le.Call(Le{Compare{X: a.X, Y: a.Y, Outer: a.Outer}})))
	}
	if g.Wants(1) {
		g.Set(1, half.where(le.Call(Le{Compare{X: a.Y, Y: a.X, Outer: a.Outer}})))
	}
}
