package core

import (
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// ArgMax is the place of the greatest element along one axis: the first of equals; NaN counts as
// greatest, as in PyTorch.
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
	Axis Axis    `arg:"axis"`
}

var argmax = Declare[ArgMax]("argmax")

// ArgMax is the place of the greatest element along the axis.
func (x *Tensor) ArgMax(axis string) *Tensor { return argmax.Call(ArgMax{X: x, Axis: Axis(axis)}) }

// Names drops the axis.
func (a *ArgMax) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	one := axisList(string(a.Axis))
	kept := a.X.axes.Without(one)
	p.Out(kept, dtype.I64)
	p.Keep(kept.Append(one))
}

// Sizes insists on something to choose from.
func (a *ArgMax) Sizes(s *Sizes) { s.notEmpty(a.X, axisList(string(a.Axis))) }

// Eval looks for the first greatest.
func (a *ArgMax) Eval(c *Ctx) {
	order := c.Data().(*axis.List)
	switch classOf(a.X.dtype) {
	case dtype.F32:
		argMaxRows[float32](c, c.Dense(a.X, order, dtype.F32))
	case dtype.F64:
		argMaxRows[float64](c, c.Dense(a.X, order, dtype.F64))
	default:
		argMaxRows[int64](c, c.Dense(a.X, order, dtype.I64))
	}
}

func argMaxRows[C number](c *Ctx, x *Tensor) {
	out := c.Out(0)
	rows, n := out.Len(), x.sizes[len(x.sizes)-1]
	places := unsafe.Slice((*int64)(out.data), rows)
	c.Split(rows, max(1, pointGrain/n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := unsafe.Slice((*C)(unsafe.Add(x.data, i*n*x.dtype.Size())), n)
			best := 0
			for j, v := range row {
				if v > row[best] || v != v {
					best = j
				}
				if v != v {
					break
				}
			}
			places[i] = int64(best)
		}
	})
}

// Samples covers the lengths of a run and the dtypes; the integers have ties.
func (*ArgMax) Samples(m *Maker) (list []ArgMax) {
	for _, n := range lengths[1:] {
		list = append(list, ArgMax{X: m.Tensor(dtype.F32, "row=3 col=%d", n), Axis: "col"})
	}
	list = append(list, ArgMax{X: m.Tensor(dtype.F32, "row=0 col=2"), Axis: "col"})
	for _, dt := range allDTypes {
		list = append(list, ArgMax{X: m.Tensor(dt, "row=3 col=17 batch=2"), Axis: "col"}, ArgMax{X: m.Tensor(dt, "col=17"), Axis: "col"})
	}
	return list
}
