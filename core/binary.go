package core

import "github.com/fucina-go/fucina/core/dtype"

// Binary is the argument struct of operations on two tensors, element by element, aligned by axis
// name under the subset rule. Either operand may be a plain number. An operation embeds it and has
// those of the methods
//
//	F32(z, x, y []float32)   also serves f16 and bf16, which compute in f32
//	F64(z, x, y []float64)
//	I64(z, x, y []int64)     serves every integer dtype; results wrap
//
// that make sense.
type Binary struct {
	X     *Tensor `arg:"x,number"`
	Y     *Tensor `arg:"y,number"`
	Outer bool    `arg:"outer?"`
}

type (
	binaryF32 interface{ F32(z, x, y []float32) }
	binaryF64 interface{ F64(z, x, y []float64) }
	binaryI64 interface{ I64(z, x, y []int64) }
)

// Names broadcasts by name; both operands have one dtype, which is the result's.
func (a *Binary) Names(p *Plan) {
	axes := p.Broadcast(a.Outer, a.X, a.Y)
	p.Same(a.X, a.Y)
	p.Out(axes, p.computes(a.X))
}

// Eval calls the operation's kernel.
func (a *Binary) Eval(c *Ctx) {
	out := c.Out(0)
	switch classOf(a.X.dtype) {
	case dtype.F32:
		pointwise(c, out, func(op Op, z []float32, xs *[maxOperands][]float32) {
			op.(binaryF32).F32(z, xs[0], xs[1])
		}, a.X, a.Y)
	case dtype.F64:
		pointwise(c, out, func(op Op, z []float64, xs *[maxOperands][]float64) {
			op.(binaryF64).F64(z, xs[0], xs[1])
		}, a.X, a.Y)
	default:
		pointwise(c, out, func(op Op, z []int64, xs *[maxOperands][]int64) {
			op.(binaryI64).I64(z, xs[0], xs[1])
		}, a.X, a.Y)
	}
}

// Compare is Binary with a bool result. An operation embeds it and has the methods
// F32(z []bool, x, y []float32), F64 and I64 likewise; the last serves bool operands too.
type Compare struct {
	X     *Tensor `arg:"x,number"`
	Y     *Tensor `arg:"y,number"`
	Outer bool    `arg:"outer?"`
}

type (
	compareF32 interface {
		F32(z []bool, x, y []float32)
	}
	compareF64 interface {
		F64(z []bool, x, y []float64)
	}
	compareI64 interface{ I64(z []bool, x, y []int64) }
)

// Names broadcasts by name; both operands have one dtype.
func (a *Compare) Names(p *Plan) {
	axes := p.Broadcast(a.Outer, a.X, a.Y)
	p.Same(a.X, a.Y)
	p.computes(a.X)
	p.Out(axes, dtype.Bool)
}

// Eval calls the operation's kernel.
func (a *Compare) Eval(c *Ctx) {
	out := c.Out(0)
	switch classOf(a.X.dtype) {
	case dtype.F32:
		pointwise(c, out, func(op Op, z []bool, xs *[maxOperands][]float32) {
			op.(compareF32).F32(z, xs[0], xs[1])
		}, a.X, a.Y)
	case dtype.F64:
		pointwise(c, out, func(op Op, z []bool, xs *[maxOperands][]float64) {
			op.(compareF64).F64(z, xs[0], xs[1])
		}, a.X, a.Y)
	default:
		pointwise(c, out, func(op Op, z []bool, xs *[maxOperands][]int64) {
			op.(compareI64).I64(z, xs[0], xs[1])
		}, a.X, a.Y)
	}
}
