package core

import (
	"github.com/fucina-go/fucina/core/dtype"
)

// Cumsum is the running sum along an axis: of every element and those before it, or with reverse=True, those behind
// it.
//
// Shape: x[…, axis, …] → y of the same axes.
// Numerics: added one after another; f16 and bf16 add in f32. Integers and bool give i64, which wraps around.
//
// Errors: an axis that x lacks.
//
// Example:
//
//	tensor([1, 2, 3], "seq").cumsum("seq")
type Cumsum struct {
	X       *Tensor `arg:"x"`
	Axis    Axis    `arg:"axis"`
	Reverse bool    `arg:"reverse?"`
}

var cumsum = Declare[Cumsum]("cumsum")

// Cumsum is the running sum along the axis; see the Cumsum operation.
func (x *Tensor) Cumsum(axis string) *Tensor { return cumsum.Call(Cumsum{X: x, Axis: Axis(axis)}) }

// Names keeps the axes.
func (a *Cumsum) Names(p *Plan) { p.scan(a.X, a.Axis) }

// scan declares an output with the axes of x, and i64 for integers, computed row by row along the axis.
func (p *Plan) scan(x *Tensor, name Axis) {
	p.Need(x, name)
	dt := x.dtype
	if !dt.IsFloat() {
		dt = dtype.I64
	}
	p.Out(x.axes, dt)
	p.Keep(inner(x.axes, name))
}

// Eval does every row.
func (a *Cumsum) Eval(c *Ctx) {
	switch classOf(a.X.dtype) {
	case dtype.F32:
		eachRow(c, a.X, func(y, x []float32) { scan(c, y, x, a.Reverse, runSum, float32(0)) })
	case dtype.F64:
		eachRow(c, a.X, func(y, x []float64) { scan(c, y, x, a.Reverse, runSum, float64(0)) })
	default:
		eachRow(c, a.X, func(y, x []int64) { scan(c, y, x, a.Reverse, runSum, int64(0)) })
	}
}

// scan runs f along a row, or from its end, in pieces; f gets what the piece before left, at first s.
func scan[C number](c *Ctx, y, x []C, reverse bool, f func(y, x []C, reverse bool, s C) C, s C) {
	c.pieces(len(x), func(lo, hi int) {
		if reverse {
			lo, hi = len(x)-hi, len(x)-lo
		}
		s = f(y[lo:hi], x[lo:hi], reverse, s)
	})
}

func runSum[C number](y, x []C, reverse bool, s C) C {
	if reverse {
		for i := len(x) - 1; i >= 0; i-- {
			s += x[i]
			y[i] = s
		}
		return s
	}
	for i, v := range x {
		s += v
		y[i] = s
	}
	return s
}

// Saves nothing.
func (*Cumsum) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP is the running sum of gy from the other side.
func (a *Cumsum) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, cumsum.Call(Cumsum{X: gy[0], Axis: a.Axis, Reverse: !a.Reverse}))
}

// Samples covers the lengths, both directions, and the dtypes.
func (*Cumsum) Samples(m *Maker) (list []Cumsum) {
	for _, n := range lengths {
		list = append(list, Cumsum{m.Tensor(dtype.F32, "row=3 col=%d", n), "col", n%2 == 0})
	}
	for _, dt := range allDTypes {
		list = append(list, Cumsum{m.Tensor(dt, "row=3 col=17 batch=2"), "col", false},
			Cumsum{m.Tensor(dt, "col=17"), "col", true})
	}
	return list
}
