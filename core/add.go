package core

import (
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Add is the elementwise sum x + y, aligned by axis name.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes].
// Integers wrap around. f16 and bf16 compute in f32 and round once.
//
// Example:
//
//	tensor([1, 2], "a").add(tensor([10, 20], "a"))
type Add struct{ Binary }

var add = Declare[Add]("add")

// Add is the elementwise sum; see the Add operation.
func (x *Tensor) Add(y *Tensor) *Tensor { return add.Call(Add{Binary{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*Add) F32(z, x, y []float32) { num.Add(z, x, y) }

// F64 is the f64 kernel.
func (*Add) F64(z, x, y []float64) { num.Add(z, x, y) }

// I64 is the integer kernel.
func (*Add) I64(z, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] + y[i]
	}
}

// plus computes out = x + y, as Add does, for an operation of which that is the end. y may be out itself.
func (c *Ctx) plus(out, x, y *Tensor) {
	switch classOf(out.dtype) {
	case dtype.F32:
		pointwise(c, out, func(_ Op, z []float32, xs *[maxOperands][]float32) { new(Add).F32(z, xs[0], xs[1]) }, x, y)
	case dtype.F64:
		pointwise(c, out, func(_ Op, z []float64, xs *[maxOperands][]float64) { new(Add).F64(z, xs[0], xs[1]) }, x, y)
	default:
		pointwise(c, out, func(_ Op, z []int64, xs *[maxOperands][]int64) { new(Add).I64(z, xs[0], xs[1]) }, x, y)
	}
}

// Saves nothing.
func (*Add) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP passes the gradient on to both.
func (a *Add) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0])
	g.Set(1, gy[0])
}
