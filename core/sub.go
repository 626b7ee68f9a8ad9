package core

import "github.com/fucina-go/fucina/kernels/num"

// Sub is the elementwise difference x - y, aligned by axis name.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes].
// Integers wrap around. f16 and bf16 compute in f32 and round once.
//
// Example:
//
//	tensor([1, 2], "a").sub(tensor([10, 20], "a"))
type Sub struct{ Binary }

var sub = Declare[Sub]("sub")

// Sub is the elementwise difference; see the Sub operation.
func (x *Tensor) Sub(y *Tensor) *Tensor { return sub.Call(Sub{Binary{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*Sub) F32(z, x, y []float32) { num.Sub(z, x, y) }

// F64 is the f64 kernel.
func (*Sub) F64(z, x, y []float64) { num.Sub(z, x, y) }

// I64 is the integer kernel.
func (*Sub) I64(z, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] - y[i]
	}
}

// Saves nothing.
func (*Sub) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP is gy and -gy.
func (a *Sub) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0])
	if g.Wants(1) {
		g.Set(1, gy[0].Neg())
	}
}
