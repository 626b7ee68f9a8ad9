package core

import (
	"math"

	"github.com/fucina-go/fucina/core/axis"
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
		p.Fail("want one axis in "+p.Describe(a.Weight), p.c.oneAxis("it is the one to normalize along", a.Weight, a.X))
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
		normalize[float64](c, a)
	} else {
		normalize[float32](c, a)
	}
}

func normalize[C float32 | float64](c *Ctx, a *RMSNorm) {
	w := elementsOf[C](c.Dense(a.Weight, a.Weight.axes, native[C]()))
	saved := savedRoots[C](c, a)
	if y, x, ok := atOnce[C](c, a.X, c.Data().(*axis.List)); ok {
		for i, n := 0, len(w); len(y) > 0; i++ {
			if r := num.RMSNormRow(y[:n], x[:n], w, C(a.Eps)); saved != nil {
				saved[i] = r
			}
			y, x = y[n:], x[n:]
		}
		return
	}
	eachRowAt(c, a.X, func(i int, y, x []C) {
		if r := rmsNormRow(c, y, x, w, C(a.Eps)); saved != nil {
			saved[i] = r
		}
	})
}

// rmsNormRow is num.RMSNormRow, with the same bits, in pieces if the row is long.
func rmsNormRow[C float32 | float64](c *Ctx, y, x, w []C, eps C) C {
	if len(x) <= pauseLen {
		return num.RMSNormRow(y, x, w, eps)
	}
	var squares num.Lanes[C]
	c.pieces(len(x), func(lo, hi int) { squares.AddProducts(x[lo:hi], x[lo:hi]) })
	r := 1 / C(math.Sqrt(float64(squares.Fold()/C(len(x))+eps)))
	c.pieces(len(x), func(lo, hi int) { num.ScaleRMS(y[lo:hi], x[lo:hi], w[lo:hi], r) })
	return r
}

// savedRoots is room for 1/√(mean(x²) + eps) of every row; nil if no gradient is wanted.
func savedRoots[C float32 | float64](c *Ctx, a *RMSNorm) []C {
	if !c.saves() {
		return nil
	}
	order := c.Data().(*axis.List).Without(a.Weight.axes)
	return elementsOf[C](c.Save(native[C](), order, a.X.permuted(order).sizes))
}

// Ref is the formula.
func (a *RMSNorm) Ref() *Tensor {
	x := a.X.wide()
	r := x.Mul(x).Mean(a.Weight.axes.At(0)).plus(a.Eps).Sqrt()
	return x.Div(r).Mul(a.Weight.wide()).Cast(a.X.dtype)
}

// VJP is r · (gw - xr · mean(gw · xr)), gw being gy · weight and r = 1/√(mean(x²) + eps), which Eval saved,
// and gy · xr for the weight.
func (a *RMSNorm) VJP(_, gy []*Tensor, g *Grads) {
	op := normGrad{X: a.X.wide(), Weight: a.Weight.wide(), GY: gy[0].wide(), R: g.State(0), Along: a.Weight.axes}
	for i, t := range normGrads.All(op)[:2] {
		g.Set(i, t)
	}
}

// Samples covers the lengths of a row and the dtypes.
func (*RMSNorm) Samples(m *Maker) (list []RMSNorm) {
	for _, n := range lengths {
		list = append(list, RMSNorm{X: m.Tensor(dtype.F32, "row=3 embed=%d", n),
			Weight: m.Tensor(dtype.F32, "embed=%d", n), Eps: 1e-5})
	}
	for _, dt := range floats {
		list = append(list, RMSNorm{X: m.Tensor(dt, "batch=2 embed=17 row=3"),
			Weight: m.Tensor(dt, "embed=17"), Eps: 1e-5},
			RMSNorm{X: m.Tensor(dt, "embed=5"), Weight: m.Tensor(dt, "embed=5"), Eps: 1e-5})
	}
	return list
}
