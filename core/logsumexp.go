package core

import (
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// LogSumExp is the logarithm of the sum of exp(x) along the named axes; without names, of all elements.
//
// Shape: x[a, b, c] → y[a, c] for logsumexp("b").
// Numerics: m + log(sum of exp(x - m)), m being the greatest element, summed as in sum; f16 and bf16 compute in
// f32 and round once. -inf of nothing.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([[1.0, 2.0], [1000.0, 1000.0]], "row col").logsumexp("col")
type LogSumExp struct{ Reduce }

var logSumExpOp = Declare[LogSumExp]("logsumexp")

// LogSumExp is the logarithm of the sum of exp(x) along the named axes, of all elements if none is named.
func (x *Tensor) LogSumExp(axes ...string) *Tensor {
	return logSumExpOp.Call(LogSumExp{Reduce{X: x, Axes: some(axes)}})
}

// Names drops the axes.
func (a *LogSumExp) Names(p *Plan) { a.keeps(p, p.Float(a.X)) }

// Eval does every run.
func (a *LogSumExp) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		logSumExpRows[float64](c, a.X)
	} else {
		logSumExpRows[float32](c, a.X)
	}
}

func logSumExpRows[T float32 | float64](c *Ctx, x *Tensor) {
	out, order := c.Out(0), c.Data().(*axis.List)
	rows := out.Len()
	if rows == 0 {
		return
	}
	src := c.Dense(x, order, native[T]())
	tmp := c.Scratch(native[T](), order, src.sizes)
	n := src.Len() / rows
	c.Split(rows, max(1, pointGrain/max(1, n)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			xs := row[T](src, i, n)
			y := [1]T{maxOf(c, xs)}
			if m := y[0]; m-m == 0 { // finite
				y[0] = m + logSumExp(c, row[T](tmp, i, n), xs, m)
			}
			store(out, i, y[:])
		}
	})
}

// Saves x and y.
func (*LogSumExp) Saves(uint64) (in, out uint64) { return 1, 1 }

// VJP is gy · exp(x - y), 0 where y is -inf.
func (a *LogSumExp) VJP(y, gy []*Tensor, g *Grads) {
	x, p, gp := a.X.wide(), y[0].wide(), gy[0].wide()
	g.Set(0, x.Sub(p.where(p.IsInf().LogicalNot())).Exp().Mul(gp))
}
