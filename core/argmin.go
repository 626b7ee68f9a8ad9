package core

import (
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// ArgMin is the place of the least element along one axis: the first of equals; NaN counts as least, as in
// PyTorch. Without an axis it is the place among all elements, counted in the order of x's axes.
//
// Shape: x[…, axis=n, …] → y[…] of i64.
//
// Errors: an axis that x lacks; an axis of size 0.
//
// Example:
//
//	tensor([[1, 5], [4, 3]], "row col").argmin("col")
type ArgMin struct {
	X    *Tensor `arg:"x"`
	Axis Axis    `arg:"axis?"`
}

var argmin = Declare[ArgMin]("argmin")

// ArgMin is the place of the least element along the axis, among all elements if it is "".
func (x *Tensor) ArgMin(axis string) *Tensor { return argmin.Call(ArgMin{X: x, Axis: Axis(axis)}) }

// Names drops the axis.
func (a *ArgMin) Names(p *Plan) { p.places(a.X, a.Axis) }

// Sizes insists on something to choose from.
func (a *ArgMin) Sizes(s *Sizes) { s.choice(a.X, a.Axis) }

// Eval looks for the first least.
func (a *ArgMin) Eval(c *Ctx) {
	switch order := c.Data().(*axis.List); classOf(a.X.dtype) {
	case dtype.F32:
		bestRows(c, c.Dense(a.X, order, dtype.F32), lesser[float32])
	case dtype.F64:
		bestRows(c, c.Dense(a.X, order, dtype.F64), lesser[float64])
	default:
		bestRows(c, c.Dense(a.X, order, dtype.I64), lesser[int64])
	}
}

func lesser[C number](row []C) (best int) {
	for j, v := range row {
		if v < row[best] || v != v {
			best = j
		}
		if v != v {
			break
		}
	}
	return best
}

// Samples covers the lengths of a run and the dtypes; the integers have ties.
func (*ArgMin) Samples(m *Maker) (list []ArgMin) {
	for _, n := range lengths[1:] {
		list = append(list, ArgMin{X: m.Tensor(dtype.F32, "row=3 col=%d", n), Axis: "col"})
	}
	list = append(list, ArgMin{X: m.Tensor(dtype.F32, "row=0 col=2"), Axis: "col"},
		ArgMin{X: m.Tensor(dtype.F32, "row=3 col=5")})
	for _, dt := range allDTypes {
		list = append(list, ArgMin{X: m.Tensor(dt, "row=3 col=17 batch=2"), Axis: "col"},
			ArgMin{X: m.Tensor(dt, "col=17"), Axis: "col"})
	}
	return list
}
