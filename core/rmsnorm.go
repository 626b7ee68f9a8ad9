package core

import (
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// RMSNorm is x divided by the root of its mean square along the axis of the weight, times the
// weight: x / sqrt(mean(x²) + eps) · weight (Zhang and Sennrich 2019).
//
// Shape: x[…, axis, …], weight[axis] → y of x's axes.
// Numerics: the squares are added in a fixed tree of 16 lanes; f16 and bf16 compute in f32.
//
// Errors: a weight with other than one axis; an axis that x lacks; sizes that differ.
//
// Example:
//
//	rms_norm(tensor([3.0, 4.0], "embed"), ones(embed=2))
type RMSNorm struct {
	X      *Tensor `arg:"x"`
	Weight *Tensor `arg:"weight"`
	Eps    float64 `arg:"eps=1e-05"`
}

var rmsNorm = Declare[RMSNorm]("rms_norm")

// RMSNorm normalizes along the weight's axis; see the RMSNorm operation.
func (x *Tensor) RMSNorm(weight *Tensor, eps float64) *Tensor {
	return rmsNorm.Call(RMSNorm{X: x, Weight: weight, Eps: eps})
}

// Names keeps x's axes.
func (a *RMSNorm) Names(p *Plan) {
	if a.Weight.Rank() != 1 {
		p.Fail("want one axis in "+p.Describe(a.Weight), "the weight's axis is the one to normalize along")
	}
	axis := Axis(a.Weight.axes.At(0))
	p.Need(a.X, axis)
	p.Same(a.X, a.Weight)
	p.Out(a.X.axes, p.Float(a.X))
	p.Keep(inner(a.X.axes, axis))
}

// Eval does every row.
func (a *RMSNorm) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		w := row[float64](c.Dense(a.Weight, a.Weight.axes, dtype.F64), 0, a.Weight.sizes[0])
		eachRow(c, a.X, func(y, x []float64) { num.RMSNormRow(y, x, w, a.Eps) })
		return
	}
	w := row[float32](c.Dense(a.Weight, a.Weight.axes, dtype.F32), 0, a.Weight.sizes[0])
	eachRow(c, a.X, func(y, x []float32) { num.RMSNormRow(y, x, w, float32(a.Eps)) })
}
