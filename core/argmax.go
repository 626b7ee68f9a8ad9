package core

import (
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// ArgMax is the place of the greatest element along one axis: the first of equals; NaN counts as
// greatest, as in PyTorch. Without an axis it is the place among all elements, counted in the order of x's axes.
//
// Shape: x[…, axis=n, …] → y[…] of i64.
//
// Errors: an axis that x lacks; an axis of size 0.
//
// Example:
//
//	tensor([[1, 5], [4, 3]], "row col").argmax("col")
type ArgMax struct {
	X    *Tensor `arg:"x"`
	Axis Axis    `arg:"axis?"`
}

var argmax = Declare[ArgMax]("argmax")

// ArgMax is the place of the greatest element along the axis, among all elements if it is "".
func (x *Tensor) ArgMax(axis string) *Tensor { return argmax.Call(ArgMax{X: x, Axis: Axis(axis)}) }

// Names drops the axis.
func (a *ArgMax) Names(p *Plan) { p.places(a.X, a.Axis) }

// places declares an output of places along the axis of x, or of all places if there is none.
func (p *Plan) places(x *Tensor, name Axis) {
	axes := x.axes
	if name != "" {
		p.Need(x, name)
		axes = axisList(string(name))
	}
	kept := x.axes.Without(axes)
	p.Out(kept, dtype.I64)
	p.Keep(kept.Append(axes))
}

// Sizes insists on something to choose from.
func (a *ArgMax) Sizes(s *Sizes) { s.choice(a.X, a.Axis) }

// choice insists that the axis of t, or all of them if there is none, have elements.
func (s *Sizes) choice(t *Tensor, name Axis) {
	axes := t.axes
	if name != "" {
		axes = axisList(string(name))
	}
	s.notEmpty(t, axes)
}

// Eval looks for the first greatest.
func (a *ArgMax) Eval(c *Ctx) {
	switch order := c.Data().(*axis.List); classOf(a.X.dtype) {
	case dtype.F32:
		bestRows(c, c.Dense(a.X, order, dtype.F32), greater[float32])
	case dtype.F64:
		bestRows(c, c.Dense(a.X, order, dtype.F64), greater[float64])
	default:
		bestRows(c, c.Dense(a.X, order, dtype.I64), greater[int64])
	}
}

func greater[C number](row []C) (best int) {
	for j, v := range row {
		if v > row[best] || v != v {
			best = j
		}
		if v != v {
			break
		}
	}
	return best
}

// bestRows stores the place that best finds in each run of x, which is dense with the runs innermost.
func bestRows[C number](c *Ctx, x *Tensor, best func([]C) int) {
	out := c.Out(0)
	rows := out.Len()
	if rows == 0 {
		return
	}
	n := x.Len() / rows
	places := elementsOf[int64](out)
	c.Split(rows, max(1, pointGrain/n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			places[i] = int64(best(row[C](x, i, n)))
		}
	})
}

// Samples covers the lengths of a run and the dtypes; the integers have ties.
func (*ArgMax) Samples(m *Maker) (list []ArgMax) {
	for _, n := range lengths[1:] {
		list = append(list, ArgMax{X: m.Tensor(dtype.F32, "row=3 col=%d", n), Axis: "col"})
	}
	list = append(list, ArgMax{X: m.Tensor(dtype.F32, "row=0 col=2"), Axis: "col"},
		ArgMax{X: m.Tensor(dtype.F32, "row=3 col=5")})
	for _, dt := range allDTypes {
		list = append(list, ArgMax{X: m.Tensor(dt, "row=3 col=17 batch=2"), Axis: "col"},
			ArgMax{X: m.Tensor(dt, "col=17"), Axis: "col"})
	}
	return list
}
