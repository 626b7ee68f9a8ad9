package core

import (
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// ArgSort is the places of the elements along an axis in ascending order: x.gather(x.argsort(axis), axis) is sorted.
// Equals keep their order; NaN counts as greatest, as in NumPy and PyTorch.
//
// Shape: x[…, axis, …] → y of the same axes of i64.
//
// Errors: an axis that x lacks.
//
// Example:
//
//	tensor([3, 1, 2], "row").argsort("row")
type ArgSort struct {
	X          *Tensor `arg:"x"`
	Axis       Axis    `arg:"axis"`
	Descending bool    `arg:"descending?"`
}

var argsort = Declare[ArgSort]("argsort")

// ArgSort is the places of the elements along the axis in ascending order; see the ArgSort operation.
func (x *Tensor) ArgSort(axis string) *Tensor { return argsort.Call(ArgSort{X: x, Axis: Axis(axis)}) }

// Names keeps the axes.
func (a *ArgSort) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	p.Out(a.X.axes, dtype.I64)
	p.Keep(inner(a.X.axes, a.Axis))
}

// Eval sorts the places.
func (a *ArgSort) Eval(c *Ctx) {
	if a.X.Len() > 0 {
		c.sortPlaces(c.Out(0), a.X, c.Data().(*axis.List), a.Descending)
	}
}

// Samples covers those of sort.
func (*ArgSort) Samples(m *Maker) (list []ArgSort) {
	for _, a := range (*Sort)(nil).Samples(m) {
		list = append(list, ArgSort(a))
	}
	return list
}
