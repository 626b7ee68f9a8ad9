package core

import "github.com/fucina-go/fucina/kernels/num"

// Maximum is the greater of x and y, element by element, aligned by axis name. Either may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes].
// Numerics: NaN if one of the two is NaN.
//
// Example:
//
//	tensor([1, 5], "a").maximum(tensor([3, 4], "a"))
type Maximum struct{ Binary }

var maximum = Declare[Maximum]("maximum")

// Maximum is the greater of the two; see the Maximum operation.
func (x *Tensor) Maximum(y *Tensor) *Tensor { return maximum.Call(Maximum{Binary{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*Maximum) F32(z, x, y []float32) { num.Maximum(z, x, y) }

// F64 is the f64 kernel.
func (*Maximum) F64(z, x, y []float64) { num.Maximum(z, x, y) }

// I64 is the integer kernel.
func (*Maximum) I64(z, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = max(x[i], y[i])
	}
}

// VJP gives gy to the greater one, half of it to each of equals, as in PyTorch.
func (a *Maximum) VJP(_, gy []*Tensor, g *Grads) {
	half := eq.Call(Eq{Compare{X: a.X, Y: a.Y, Outer: a.Outer}}).Where(gy[0].times(0.5), gy[0])
	if g.Wants(0) {
		g.Set(0, half.where(ge.Call(Ge{Compare{X: a.X, Y: a.Y, Outer: a.Outer}})))
	}
	if g.Wants(1) {
		g.Set(1, half.where(ge.Call(Ge{Compare{X: a.Y, Y: a.X, Outer: a.Outer}})))
	}
}
