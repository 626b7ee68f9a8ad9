package core

import (
	"math"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// LayerNorm is x less its mean, divided by its standard deviation along the axes, times the weight, plus the
// bias: (x - mean) / sqrt(variance + eps) · weight + bias (Ba, Kiros and Hinton 2016).
//
// Without axes it normalizes along those of the weight. The variance is the biased one.
//
// Shape: x[…, embed], weight[embed], bias[embed] → y of x's axes. Weight and bias may have any of x's axes and
// may be left out.
// Numerics: sums run in a fixed tree of 16 lanes over the axes in the order given; the squares are those of
// x - mean; f16 and bf16 compute in f32 and round once.
//
// Errors: neither axes nor a weight; an axis that x lacks; integers.
//
// Example:
//
//	layer_norm(tensor([1.0, 2.0, 3.0], "embed"), ones(embed=3), zeros(embed=3))
type LayerNorm struct {
	X      *Tensor `arg:"x"`
	Weight *Tensor `arg:"weight?"`
	Bias   *Tensor `arg:"bias?"`
	Axes   Axes    `arg:"axes?"`
	Eps    float64 `arg:"eps=1e-05"`
}

var layerNorm = Declare[LayerNorm]("layer_norm")

// LayerNorm normalizes along the weight's axes; see the LayerNorm operation. The bias may be nil.
func (x *Tensor) LayerNorm(weight, bias *Tensor, eps float64) *Tensor {
	return layerNorm.Call(LayerNorm{X: x, Weight: weight, Bias: bias, Eps: eps})
}

// along is the axes of a run; nil if nothing names them.
func (a *LayerNorm) along() Axes {
	if a.Axes == nil && a.Weight != nil {
		return a.Weight.axes
	}
	return a.Axes
}

// Names keeps x's axes.
func (a *LayerNorm) Names(p *Plan) {
	along := a.along()
	if along == nil || along.Len() == 0 {
		p.Fail("nothing says along which axes to normalize "+p.Describe(a.X), p.c.hint(p.c.along(a.X)...))
	}
	p.NeedAll(a.X, along)
	p.Within(a.Weight, a.X.axes, "x")
	p.Within(a.Bias, a.X.axes, "x")
	p.Same(a.X, a.Weight, a.Bias)
	p.Out(a.X.axes, p.Float(a.X))
	p.Keep(a.X.axes.Without(along)) // the axes of a statistic
}

// Eval does every run.
func (a *LayerNorm) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		layerNormRuns[float64](c, a)
	} else {
		layerNormRuns[float32](c, a)
	}
}

func layerNormRuns[C float32 | float64](c *Ctx, a *LayerNorm) {
	kept, along := c.Data().(*axis.List), a.along()
	n := volume(a.X, along)
	sizes := a.X.permuted(kept).sizes
	mean, scale := c.Save(native[C](), kept, sizes), c.Save(native[C](), kept, sizes)
	w := runsBeside[C](c, a.Weight, a.X, kept, along, 1)
	b := runsBeside[C](c, a.Bias, a.X, kept, along, 0)
	eachRun(c, a.X, kept.Append(along), n, func(i int, y, x []C) {
		m, r := layerNormRow(c, y, x, w.row(i, n, nil), b.row(i, n, nil), C(a.Eps))
		if mean != nil {
			elementsOf[C](mean)[i], elementsOf[C](scale)[i] = m, r
		}
	})
}

// layerNormRow is num.LayerNormRow, with the same bits, in pieces if the row is long.
func layerNormRow[C float32 | float64](c *Ctx, y, x, w, b []C, eps C) (mean, r C) {
	if len(x) <= pauseLen {
		return num.LayerNormRow(y, x, w, b, eps)
	}
	n := C(len(x))
	mean = sumOf(c, x) / n
	var squares num.Lanes[C]
	c.pieces(len(x), func(lo, hi int) { squares.AddSquares(x[lo:hi], mean) })
	r = 1 / C(math.Sqrt(float64(squares.Fold()/n+eps)))
	c.pieces(len(x), func(lo, hi int) { num.ScaleLayer(y[lo:hi], x[lo:hi], w[lo:hi], b[lo:hi], mean, r) })
	return mean, r
}

// sumOf is num.Sum, with the same bits, in pieces.
func sumOf[C float32 | float64](c *Ctx, x []C) C {
	if len(x) <= num.Block {
		return num.Sum(x)
	}
	sums := make([]C, ceilDiv(len(x), num.Block))
	for i := range sums {
		c.Pause()
		sums[i] = num.Sum(x[i*num.Block : min(len(x), (i+1)*num.Block)])
	}
	return sumOf(c, sums)
}

// runsBeside is t, or the number absent if it is nil, along with the runs of x over the axes along; kept is
// x's other axes in order. It is gathered as far as it does not repeat over kept.
func runsBeside[C number](c *Ctx, t, x *Tensor, kept, along *axis.List, absent float64) *besides[C] {
	own := axis.Empty
	if t != nil {
		own = kept.Shared(t.axes)
	}
	axes := own.Append(along)
	d := c.Scratch(native[C](), axes, x.permuted(axes).sizes)
	if t != nil {
		c.copyInto(d, t)
	} else {
		values := elementsOf[C](d)
		c.Split(len(values), pointGrain, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				values[i] = C(absent)
			}
		})
	}
	b := beside[C](d.permuted(own), x, kept)
	b.sizes, b.steps = append(b.sizes, volume(x, along)), append(b.steps, 1)
	return b
}

// Ref is the formula.
func (a *LayerNorm) Ref() *Tensor {
	x, along := a.X.wide(), a.along()
	d := x.Sub(x.meanOver(along))
	y := d.Div(d.Mul(d).meanOver(along).plus(a.Eps).Sqrt())
	if a.Weight != nil {
		y = y.Mul(a.Weight.wide())
	}
	if a.Bias != nil {
		y = y.Add(a.Bias.wide())
	}
	return y.narrow(a.X.dtype)
}

// meanOver is the mean over the named axes.
func (t *Tensor) meanOver(names Axes) *Tensor { return mean.Call(Mean{Reduce{X: t, Axes: names}}) }

// Saves the operands; the output is not needed.
func (*LayerNorm) Saves(uint64) (in, out uint64) { return 7, 0 }

// VJP is r · (gw - mean(gw) - xr · mean(gw · xr)), gw being gy · weight and xr = (x - mean) · r; the mean and
// r = 1/√(variance + eps) are what Eval saved. It is gy · xr for the weight and gy for the bias.
func (a *LayerNorm) VJP(_, gy []*Tensor, g *Grads) {
	r, gw, along := g.State(1), gy[0].wide(), a.along()
	if sameAxes(a.Weight, along) && sameAxes(a.Bias, along) {
		op := normGrad{X: a.X.wide(), GY: gw, Mean: g.State(0), R: r, Along: along}
		if a.Weight != nil {
			op.Weight = a.Weight.wide()
		}
		for i, t := range normGrads.All(op) {
			g.Set(i, t)
		}
		return
	}
	xr := a.X.wide().Sub(g.State(0)).Mul(r)
	g.Set(1, gw.Mul(xr))
	g.Set(2, gw)
	if !g.Wants(0) {
		return
	}
	if a.Weight != nil {
		gw = gw.Mul(a.Weight.wide())
	}
	g.Set(0, gw.Sub(gw.meanOver(along)).Sub(xr.Mul(gw.Mul(xr).meanOver(along))).Mul(r))
}

// sameAxes tells whether t, if there is one, has just the named axes.
func sameAxes(t *Tensor, names Axes) bool {
	return t == nil || t.Rank() == names.Len() && t.axes.Without(names).Len() == 0
}

// Samples covers the lengths of a run, runs over several axes, weights and biases with other axes or none,
// and the dtypes.
func (*LayerNorm) Samples(m *Maker) (list []LayerNorm) {
	for _, n := range lengths {
		list = append(list, LayerNorm{X: m.Tensor(dtype.F32, "row=3 embed=%d", n),
			Weight: m.Tensor(dtype.F32, "embed=%d", n), Bias: m.Tensor(dtype.F32, "embed=%d", n), Eps: 1e-5},
			LayerNorm{X: m.Tensor(dtype.F32, "a=3 row=2 embed=%d", n), Weight: m.Tensor(dtype.F32, "a=3"),
				Axes: axisList("embed"), Eps: 1e-3})
	}
	for _, dt := range floats {
		list = append(list,
			LayerNorm{X: m.Tensor(dt, "batch=2 embed=17 row=3"), Weight: m.Tensor(dt, "embed=17"), Eps: 1e-5},
			LayerNorm{X: m.Tensor(dt, "a=5"), Axes: axisList("a"), Bias: m.Tensor(dt, ""), Eps: 1e-5},
			LayerNorm{X: m.Tensor(dt, "a=2 row=3 b=4 c=5"), Axes: axisList("c", "a"), Weight: m.Tensor(dt, "c=5 b=4"),
				Bias: m.Tensor(dt, "a=2 c=5"), Eps: 1e-5})
	}
	return list
}
