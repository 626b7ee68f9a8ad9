package core

import (
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Sum adds up the elements along the named axes; without names, all of them.
//
// Shape: x[a, b, c] → y[a, c] for sum("b").
// Numerics: floats are added in a fixed tree of 16 lanes, in blocks of 16384 elements (of a whole one the quarters
// are added first) whose sums are added likewise, in the order in which the axes are named; f16 and bf16 add in f32.
// Integers and bool give i64. An empty sum is 0.
//
// Example:
//
//	tensor([[1, 2], [3, 4]], "row col").sum("col")
type Sum struct{ Reduce }

var sum = Declare[Sum]("sum")

// Sum adds up along the named axes, all of them if none is named.
func (x *Tensor) Sum(axes ...string) *Tensor { return sum.Call(Sum{Reduce{X: x, Axes: some(axes)}}) }

// some is a list of names, or nil for none.
func some(names []string) Axes {
	if len(names) == 0 {
		return nil
	}
	return axisList(names...)
}

// Names drops the axes.
func (a *Sum) Names(p *Plan) {
	dt := a.X.dtype
	if !dt.IsFloat() {
		dt = dtype.I64
	}
	a.keeps(p, dt)
}

// F32 is the f32 kernel.
func (*Sum) F32(x []float32) float32 { return num.Sum(x) }

// F64 is the f64 kernel.
func (*Sum) F64(x []float64) float64 { return num.Sum(x) }

// I64 is the integer kernel.
func (*Sum) I64(x []int64) (s int64) {
	for _, v := range x {
		s += v
	}
	return s
}

// Divisor is none.
func (*Sum) Divisor(int) int { return 1 }

// Saves nothing.
func (*Sum) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP repeats the gradient along the axes.
func (a *Sum) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, gy[0]) }
