package core

import (
	"slices"

	"github.com/fucina-go/fucina/kernels/num"
)

// Max is the greatest element along the named axes; without names, of all. With initial, a number, it is initial
// where no element is greater, as in NumPy: what there is to choose from is then never nothing.
//
// Shape: x[a, b, c] → y[a, c] for max("b").
// Numerics: NaN if any element is NaN.
//
// Errors: an axis of size 0, of which there is no greatest element, unless initial is given.
//
// Example:
//
//	tensor([[1, 5], [3, 4]], "row col").max("col")
type Max struct{ Extreme }

var maxOp = Declare[Max]("max")

// Max is the greatest along the named axes, of all elements if none is named.
func (x *Tensor) Max(axes ...string) *Tensor {
	return maxOp.Call(Max{Extreme{Reduce: Reduce{X: x, Axes: some(axes)}}})
}

// F32 is the f32 kernel.
func (a *Max) F32(x []float32) float32 { return extremeOf(a.Initial, x, num.Max, greaterOf) }

// F64 is the f64 kernel.
func (a *Max) F64(x []float64) float64 { return extremeOf(a.Initial, x, num.Max, greaterOf) }

// I64 is the integer kernel.
func (a *Max) I64(x []int64) int64 { return extremeOf(a.Initial, x, slices.Max, greaterOf) }

func greaterOf[C number](x, y C) C { return max(x, y) }

// VJP gives gy to the first of the greatest elements, counted in the order in which the call names the
// axes, or to initial where it is greater than all. (PyTorch does so along one axis, but shares gy among all the
// greatest of a whole tensor.)
func (a *Max) VJP(_, gy []*Tensor, g *Grads) {
	a.share(gy[0], g, (*Tensor).ArgMax, func() *Tensor { return maxOp.Call(Max{Extreme{Reduce: a.Reduce}}) },
		func(initial, best *Tensor) *Tensor { return gt.Call(Gt{Compare{X: initial, Y: best}}) })
}

// Samples covers the lengths, axes, initial and the dtypes.
func (*Max) Samples(m *Maker) (list []Max) {
	for _, e := range m.extremes() {
		list = append(list, Max{e})
	}
	return list
}
