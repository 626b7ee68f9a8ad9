package core

import (
	"slices"

	"github.com/fucina-go/fucina/kernels/num"
)

// Max is the greatest element along the named axes; without names, of all.
//
// Shape: x[a, b, c] → y[a, c] for max("b").
// Numerics: NaN if any element is NaN.
//
// Errors: an axis of size 0, of which there is no greatest element.
//
// Example:
//
//	tensor([[1, 5], [3, 4]], "row col").max("col")
type Max struct{ Reduce }

var maxOp = Declare[Max]("max")

// Max is the greatest along the named axes, of all elements if none is named.
func (x *Tensor) Max(axes ...string) *Tensor { return maxOp.Call(Max{Reduce{X: x, Axes: some(axes)}}) }

// Names drops the axes.
func (a *Max) Names(p *Plan) { a.keeps(p, a.X.dtype) }

// Sizes insists on something to choose from.
func (a *Max) Sizes(s *Sizes) { s.notEmpty(a.X, a.reduced()) }

// notEmpty insists that the named axes of t have elements.
func (s *Sizes) notEmpty(t *Tensor, names Axes) {
	for _, n := range names.Names() {
		if t.Size(n) == 0 {
			s.Fail("axis "+quoted([]string{n})+" of "+s.Describe(t)+" is empty", s.c.unlessEmpty(n))
		}
	}
}

// F32 is the f32 kernel.
func (*Max) F32(x []float32) float32 { return num.Max(x) }

// F64 is the f64 kernel.
func (*Max) F64(x []float64) float64 { return num.Max(x) }

// I64 is the integer kernel.
func (*Max) I64(x []int64) int64 { return slices.Max(x) }

// Divisor is none.
func (*Max) Divisor(int) int { return 1 }

// Saves x.
func (*Max) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP gives gy to the first of the greatest elements, counted in the order in which the call names the
// axes. (PyTorch does so along one axis, but shares gy among all the greatest of a whole tensor.)
func (a *Max) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, a.toOne(gy[0], (*Tensor).ArgMax)) }

// toOne gives gy to one element of each run: that at the place of the merged axis.
func (a *Reduce) toOne(gy *Tensor, place func(x *Tensor, axis string) *Tensor) *Tensor {
	const run = "reduced_run"
	axes := a.reduced()
	if axes.Len() == 0 {
		return gy
	}
	x := merge.Call(Merge{X: a.X, Into: Map[Axes]{axisList(run), []Axes{axes}}})
	gx := x.zerosIn(gy.env).IndexAdd(place(x, run), gy, run)
	return split.Call(Split{X: gx, Axis: run, Into: a.X.sized(axes)})
}
