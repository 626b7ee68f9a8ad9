package core

import (
	"slices"

	"github.com/fucina-go/fucina/kernels/num"
)

// Min is the least element along the named axes; without names, of all. With initial, a number, it is initial
// where no element is less, as in NumPy: what there is to choose from is then never nothing.
//
// Shape: x[a, b, c] → y[a, c] for min("b").
// Numerics: NaN if any element is NaN.
//
// Errors: an axis of size 0, of which there is no least element, unless initial is given.
//
// Example:
//
//	tensor([[1, 5], [3, 4]], "row col").min("col")
type Min struct{ Extreme }

var minOp = Declare[Min]("min")

// Min is the least along the named axes, of all elements if none is named.
func (x *Tensor) Min(axes ...string) *Tensor {
	return minOp.Call(Min{Extreme{Reduce: Reduce{X: x, Axes: some(axes)}}})
}

// F32 is the f32 kernel.
func (a *Min) F32(x []float32) float32 { return extremeOf(a.Initial, x, num.Min, lesserOf) }

// F64 is the f64 kernel.
func (a *Min) F64(x []float64) float64 { return extremeOf(a.Initial, x, num.Min, lesserOf) }

// I64 is the integer kernel.
func (a *Min) I64(x []int64) int64 { return extremeOf(a.Initial, x, slices.Min, lesserOf) }

func lesserOf[C number](x, y C) C { return min(x, y) }

// VJP gives gy to the first of the least elements, or to initial where it is less than all, as that of max does.
func (a *Min) VJP(_, gy []*Tensor, g *Grads) {
	a.share(gy[0], g, (*Tensor).ArgMin, func() *Tensor { return minOp.Call(Min{Extreme{Reduce: a.Reduce}}) },
		func(initial, best *Tensor) *Tensor { return lt.Call(Lt{Compare{X: initial, Y: best}}) })
}

// Samples covers the lengths, axes, initial and the dtypes.
func (*Min) Samples(m *Maker) (list []Min) {
	for _, e := range m.extremes() {
		list = append(list, Min{e})
	}
	return list
}
