package core

import "github.com/fucina-go/fucina/kernels/num"

// Mean is the arithmetic mean along the named axes; without names, of all elements.
//
// Shape: x[a, b, c] → y[a, c] for mean("b").
// Numerics: the sum as in sum, divided once. The mean of nothing is NaN.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([[1, 2], [3, 4]], "row col", dtype="f32").mean("col")
type Mean struct{ Reduce }

var mean = Declare[Mean]("mean")

// Mean averages along the named axes, all of them if none is named.
func (x *Tensor) Mean(axes ...string) *Tensor { return mean.Call(Mean{Reduce{X: x, Axes: some(axes)}}) }

// Names drops the axes.
func (a *Mean) Names(p *Plan) { a.keeps(p, p.Float(a.X)) }

// Divisor is the number of elements.
func (*Mean) Divisor(n int) int { return n }

// F32 is the f32 kernel of the sum.
func (*Mean) F32(x []float32) float32 { return num.Sum(x) }

// F64 is the f64 kernel of the sum.
func (*Mean) F64(x []float64) float64 { return num.Sum(x) }

// Saves nothing.
func (*Mean) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP repeats gy / n along the axes.
func (a *Mean) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0].times(1/float64(volume(a.X, a.reduced()))))
}
