package core

import "github.com/fucina-go/fucina/kernels/num"

// Mul is the elementwise product x * y, aligned by axis name.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes].
// Integers wrap around. f16 and bf16 compute in f32 and round once.
//
// Example:
//
//	tensor([1, 2], "a").mul(tensor([10, 20], "a"))
type Mul struct{ Binary }

var mul = Declare[Mul]("mul")

// Mul is the elementwise product; see the Mul operation.
func (x *Tensor) Mul(y *Tensor) *Tensor { return mul.Call(Mul{Binary{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*Mul) F32(z, x, y []float32) { num.Mul(z, x, y) }

// F64 is the f64 kernel.
func (*Mul) F64(z, x, y []float64) { num.Mul(z, x, y) }

// I64 is the integer kernel.
func (*Mul) I64(z, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] * y[i]
	}
}

// Saves the other operand of each that wants a gradient.
func (*Mul) Saves(want uint64) (in, out uint64) { return want&1<<1 | want>>1&1, 0 }

// VJP is gy times the other operand.
func (a *Mul) VJP(_, gy []*Tensor, g *Grads) {
	if g.Wants(0) {
		g.Set(0, gy[0].Mul(a.Y))
	}
	if g.Wants(1) {
		g.Set(1, gy[0].Mul(a.X))
	}
}
