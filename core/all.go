package core

import "github.com/fucina-go/fucina/core/dtype"

// AllTrue is whether every element along the named axes is true; without names, of all. A number is true unless it is
// 0; NaN is true.
//
// Shape: x[a, b, c] → y[a, c] of bool for all("b"). Of no elements it is True.
//
// Example:
//
//	tensor([[True, False], [False, False]], "row col").all("col")
type AllTrue struct{ Reduce }

var allOp = Declare[AllTrue]("all")

// All is whether every element along the named axes is true, of all if none is named.
func (x *Tensor) All(axes ...string) *Tensor {
	return allOp.Call(AllTrue{Reduce{X: x, Axes: some(axes)}})
}

// Names drops the axes.
func (a *AllTrue) Names(p *Plan) { a.keeps(p, dtype.Bool) }

// F32 is the f32 kernel.
func (*AllTrue) F32(x []float32) float32 { return allOf(x) }

// F64 is the f64 kernel.
func (*AllTrue) F64(x []float64) float64 { return allOf(x) }

// I64 is the integer kernel.
func (*AllTrue) I64(x []int64) int64 { return allOf(x) }

func allOf[C number](x []C) C {
	for _, v := range x {
		if v == 0 {
			return 0
		}
	}
	return 1
}
