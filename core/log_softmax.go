package core

import (
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// LogSoftmax is the logarithm of softmax: z - max z - log(sum(exp(z - max z))) along the axis; z is x · scale
// + mask, where the mask means what it does in softmax.
//
// Shape: x[…, axis, …], mask[any of these axes] → y of x's axes.
// Numerics: the sum runs in a fixed tree of 16 lanes; f16 and bf16 compute in f32 and round once.
// A row that is -inf throughout gives NaN.
//
// Errors: an axis that x lacks; integers; a mask with other axes or another dtype.
//
// Example:
//
//	tensor([1.0, 2.0, 3.0], "vocab").log_softmax("vocab")
type LogSoftmax struct {
	X     *Tensor `arg:"x"`
	Axis  Axis    `arg:"axis"`
	Scale float64 `arg:"scale=1"`
	Mask  *Tensor `arg:"mask?"`
}

var logSoftmax = Declare[LogSoftmax]("log_softmax")

// LogSoftmax is the logarithm of softmax along the axis; see the LogSoftmax operation.
func (x *Tensor) LogSoftmax(axis string) *Tensor {
	return logSoftmax.Call(LogSoftmax{X: x, Axis: Axis(axis), Scale: 1})
}

// Names keeps the axes.
func (a *LogSoftmax) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	p.Masks(a.X, a.Mask)
	p.Out(a.X.axes, p.Float(a.X))
	p.Keep(inner(a.X.axes, a.Axis))
}

// Eval does every row.
func (a *LogSoftmax) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		logSoftmaxRows[float64](c, a)
	} else {
		logSoftmaxRows[float32](c, a)
	}
}

func logSoftmaxRows[C float32 | float64](c *Ctx, a *LogSoftmax) {
	m := masking[C]{scale: C(a.Scale), mask: beside[C](a.Mask, a.X, c.Data().(*axis.List))}
	plain := a.Mask == nil && a.Scale == 1
	eachRowAt(c, a.X, func(i int, y, x []C) {
		z := x
		if !plain {
			m.apply(c, i, y, x)
			z = y
		}
		top := maxOf(c, z)
		shift := logSumExp(c, y, z, top)
		if !plain {
			m.apply(c, i, y, x) // y was overwritten
		}
		for lo, hi := range c.c.env.scan(len(z)) {
			y := y[lo:hi]
			for j, v := range z[lo:hi] {
				y[j] = v - top - shift
			}
		}
	})
}

// logSumExp is log(sum(exp(x - top))). It overwrites y, which may be x.
func logSumExp[C float32 | float64](c *Ctx, y, x []C, top C) C {
	s := [1]C{expSum(c, y, x, top)}
	num.Log(s[:], s[:])
	return s[0]
}

// Samples covers the lengths of a row, masks of both kinds, and the dtypes.
func (*LogSoftmax) Samples(m *Maker) (list []LogSoftmax) {
	for _, s := range (*Softmax)(nil).Samples(m) {
		list = append(list, LogSoftmax(s))
	}
	return list
}

// Saves y.
func (*LogSoftmax) Saves(uint64) (in, out uint64) { return 0, 1 }

// VJP is gy - exp(y) · sum(gy) for the mask, and that times scale for x.
func (a *LogSoftmax) VJP(y, gy []*Tensor, g *Grads) {
	gz := gy[0].wide()
	g.setScores(gz.Sub(y[0].wide().Exp().Mul(gz.Sum(string(a.Axis)))), a.Scale)
}
