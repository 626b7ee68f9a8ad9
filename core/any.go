package core

import "github.com/fucina-go/fucina/core/dtype"

// Any is whether an element along the named axes is true; without names, of all. A number is true unless it is
// 0; NaN is true.
//
// Shape: x[a, b, c] → y[a, c] of bool for any("b"). Of no elements it is False.
//
// Example:
//
//	tensor([[True, False], [False, False]], "row col").any("col")
type Any struct{ Reduce }

var anyOp = Declare[Any]("any")

// Any is whether an element along the named axes is true, of all if none is named.
func (x *Tensor) Any(axes ...string) *Tensor {
	return anyOp.Call(Any{Reduce{X: x, Axes: some(axes)}})
}

// Names drops the axes.
func (a *Any) Names(p *Plan) { a.keeps(p, dtype.Bool) }

// F32 is the f32 kernel.
func (*Any) F32(x []float32) float32 { return anyOf(x) }

// F64 is the f64 kernel.
func (*Any) F64(x []float64) float64 { return anyOf(x) }

// I64 is the integer kernel.
func (*Any) I64(x []int64) int64 { return anyOf(x) }

func anyOf[C number](x []C) C {
	for _, v := range x {
		if v != 0 {
			return 1
		}
	}
	return 0
}
