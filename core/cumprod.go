package core

import "github.com/fucina-go/fucina/core/dtype"

// Cumprod is the running product along an axis: of every element and those before it, or with reverse=True, those
// behind it.
//
// Shape: x[…, axis, …] → y of the same axes.
// Numerics: multiplied one after another; f16 and bf16 multiply in f32. Integers and bool give i64, which wraps
// around. A gradient of the gradient is not exact for a run with several zeros.
//
// Errors: an axis that x lacks.
//
// Example:
//
//	tensor([1, 2, 3], "seq").cumprod("seq")
type Cumprod struct {
	X       *Tensor `arg:"x"`
	Axis    Axis    `arg:"axis"`
	Reverse bool    `arg:"reverse?"`
}

var cumprod = Declare[Cumprod]("cumprod")

// Cumprod is the running product along the axis; see the Cumprod operation.
func (x *Tensor) Cumprod(axis string) *Tensor {
	return cumprod.Call(Cumprod{X: x, Axis: Axis(axis)})
}

// Names keeps the axes.
func (a *Cumprod) Names(p *Plan) { p.scan(a.X, a.Axis) }

// Eval does every row.
func (a *Cumprod) Eval(c *Ctx) {
	switch classOf(a.X.dtype) {
	case dtype.F32:
		eachRow(c, a.X, func(y, x []float32) { scan(c, y, x, a.Reverse, runProduct, float32(1)) })
	case dtype.F64:
		eachRow(c, a.X, func(y, x []float64) { scan(c, y, x, a.Reverse, runProduct, float64(1)) })
	default:
		eachRow(c, a.X, func(y, x []int64) { scan(c, y, x, a.Reverse, runProduct, int64(1)) })
	}
}

func runProduct[C number](y, x []C, reverse bool, s C) C {
	if reverse {
		for i := len(x) - 1; i >= 0; i-- {
			s *= x[i]
			y[i] = s
		}
		return s
	}
	for i, v := range x {
		s *= v
		y[i] = s
	}
	return s
}

// Saves x and y.
func (*Cumprod) Saves(uint64) (in, out uint64) { return 1, 1 }

// VJP is the running sum of gy · y from the other side, divided by x. At the first 0 of a run it is that with the 0
// left out of the products; what lies behind it has none but through that.
func (a *Cumprod) VJP(y, gy []*Tensor, g *Grads) {
	x, p, gp := a.X.wide(), y[0].wide(), gy[0].wide()
	back := func(t *Tensor) *Tensor { return cumsum.Call(Cumsum{X: t, Axis: a.Axis, Reverse: !a.Reverse}) }
	zero, one := x.Eq(Number(x.env, 0, 0, true)), Number(x.env, 1, 0, false)
	zeros := cumsum.Call(Cumsum{X: zero, Axis: a.Axis, Reverse: a.Reverse})
	first := zero.LogicalAnd(zeros.Eq(Number(x.env, 0, 1, true)))
	without := cumprod.Call(Cumprod{X: first.Where(one, x), Axis: a.Axis, Reverse: a.Reverse})
	beside := back(gp.Mul(p)).Div(zero.Where(Number(x.env, 1, 0, false), x))
	g.Set(0, zero.Where(back(gp.Mul(without)).where(first), beside))
}

// Samples covers the lengths, both directions, and the dtypes.
func (*Cumprod) Samples(m *Maker) (list []Cumprod) {
	for _, n := range lengths {
		list = append(list, Cumprod{m.Tensor(dtype.F32, "row=3 col=%d", n), "col", n%2 == 0})
	}
	for _, dt := range allDTypes {
		list = append(list, Cumprod{m.Tensor(dt, "row=3 col=17 batch=2"), "col", false},
			Cumprod{m.Tensor(dt, "col=17"), "col", true})
	}
	return list
}
