package core

import "github.com/fucina-go/fucina/core/dtype"

// Unary is the argument struct of operations on one tensor, element by element: axes, sizes and
// dtype stay. An operation embeds it and says what it does by the methods
//
//	F32(y, x []float32)   also serves f16 and bf16, which compute in f32
//	F64(y, x []float64)
//	I64(y, x []int64)     serves every integer dtype and bool; results wrap
//
// of which it has those that make sense; a call with another dtype is an error that says so.
type Unary struct {
	X *Tensor `arg:"x"`
}

type (
	unaryF32 interface{ F32(y, x []float32) }
	unaryF64 interface{ F64(y, x []float64) }
	unaryI64 interface{ I64(y, x []int64) }
)

// Names gives the operand's axes and dtype.
func (a *Unary) Names(p *Plan) {
	p.Out(a.X.axes, p.computes(a.X))
}

// Eval calls the operation's kernel.
func (a *Unary) Eval(c *Ctx) {
	out := c.Out(0)
	switch classOf(a.X.dtype) {
	case dtype.F32:
		pointwise(c, out, func(op Op, y []float32, xs *[maxOperands][]float32) {
			op.(unaryF32).F32(y, xs[0])
		}, a.X)
	case dtype.F64:
		pointwise(c, out, func(op Op, y []float64, xs *[maxOperands][]float64) {
			op.(unaryF64).F64(y, xs[0])
		}, a.X)
	default:
		pointwise(c, out, func(op Op, y []int64, xs *[maxOperands][]int64) {
			op.(unaryI64).I64(y, xs[0])
		}, a.X)
	}
}

// Predicate is Unary with a bool result. An operation embeds it and has the methods
// F32(y []bool, x []float32), F64 and I64 likewise; the last serves bool operands too.
type Predicate struct {
	X *Tensor `arg:"x"`
}

type (
	predicateF32 interface{ F32(y []bool, x []float32) }
	predicateF64 interface{ F64(y []bool, x []float64) }
	predicateI64 interface{ I64(y []bool, x []int64) }
)

// Names gives the operand's axes.
func (a *Predicate) Names(p *Plan) {
	p.computes(a.X)
	p.Out(a.X.axes, dtype.Bool)
}

// Eval calls the operation's kernel.
func (a *Predicate) Eval(c *Ctx) {
	out := c.Out(0)
	switch classOf(a.X.dtype) {
	case dtype.F32:
		pointwise(c, out, func(op Op, y []bool, xs *[maxOperands][]float32) {
			op.(predicateF32).F32(y, xs[0])
		}, a.X)
	case dtype.F64:
		pointwise(c, out, func(op Op, y []bool, xs *[maxOperands][]float64) {
			op.(predicateF64).F64(y, xs[0])
		}, a.X)
	default:
		pointwise(c, out, func(op Op, y []bool, xs *[maxOperands][]int64) {
			op.(predicateI64).I64(y, xs[0])
		}, a.X)
	}
}

// each computes y[i] = f(x[i]), for f32 in f64 and rounded to it.
func each[T float32 | float64](y, x []T, f func(float64) float64) {
	x = x[:len(y)]
	for i := range y {
		y[i] = T(f(float64(x[i])))
	}
}

// classOf is the dtype that pointwise kernels compute dt in.
func classOf(dt dtype.Type) dtype.Type {
	switch dt {
	case dtype.F32, dtype.F16, dtype.BF16:
		return dtype.F32
	case dtype.F64:
		return dtype.F64
	}
	return dtype.I64
}

// computes insists that the operation has a kernel for t's dtype, and returns that dtype.
func (p *Plan) computes(t *Tensor) dtype.Type {
	ok := false
	switch op := p.c.op; classOf(t.dtype) {
	case dtype.F32:
		switch op.(type) {
		case unaryF32, binaryF32, compareF32, predicateF32:
			ok = true
		}
	case dtype.F64:
		switch op.(type) {
		case unaryF64, binaryF64, compareF64, predicateF64:
			ok = true
		}
	default:
		switch op.(type) {
		case unaryI64, binaryI64, compareI64, predicateI64:
			ok = true
		}
	}
	if !ok && !t.dtype.IsFloat() {
		p.Float(t)
	}
	if !ok {
		p.Integer(t)
	}
	return t.dtype
}
