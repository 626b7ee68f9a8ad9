package core

import (
	"slices"

	"github.com/fucina-go/fucina/kernels/num"
)

// Min is the least element along the named axes; without names, of all.
//
// Shape: x[a, b, c] → y[a, c] for min("b").
// Numerics: NaN if any element is NaN.
//
// Errors: an axis of size 0, of which there is no least element.
//
// Example:
//
//	tensor([[1, 5], [3, 4]], "row col").min("col")
type Min struct{ Reduce }

var minOp = Declare[Min]("min")

// Min is the least along the named axes, of all elements if none is named.
func (x *Tensor) Min(axes ...string) *Tensor { return minOp.Call(Min{Reduce{X: x, Axes: some(axes)}}) }

// Names drops the axes.
func (a *Min) Names(p *Plan) { a.keeps(p, a.X.dtype) }

// Sizes insists on something to choose from.
func (a *Min) Sizes(s *Sizes) { s.notEmpty(a.X, a.reduced()) }

// F32 is the f32 kernel.
func (*Min) F32(x []float32) float32 { return num.Min(x) }

// F64 is the f64 kernel.
func (*Min) F64(x []float64) float64 { return num.Min(x) }

// I64 is the integer kernel.
func (*Min) I64(x []int64) int64 { return slices.Min(x) }

// Divisor is none.
func (*Min) Divisor(int) int { return 1 }

// Saves x.
func (*Min) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP gives gy to the first of the least elements, as that of max does.
func (a *Min) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, a.toOne(gy[0], (*Tensor).ArgMin)) }
