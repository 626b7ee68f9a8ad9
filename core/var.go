package core

import "github.com/fucina-go/fucina/kernels/num"

// Var is the variance along the named axes; without names, of all elements: the sum of the squared distances
// from the mean, divided by the number of elements less correction. A correction of 1 estimates the variance of
// what the elements are a sample of (Bessel), as in PyTorch; 0 is that of the elements, NumPy's default.
//
// Shape: x[a, b, c] → y[a, c] for var("b").
// Numerics: in two passes, each a sum as in sum. NaN where nothing is left to divide by.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([[1.0, 2.0], [3.0, 5.0]], "row col").var("col")
type Var struct {
	Reduce
	Correction int `arg:"correction=1"`
}

var varOp = Declare[Var]("var")

// Var is the variance with a correction of 1 along the named axes, of all elements if none is named.
func (x *Tensor) Var(axes ...string) *Tensor {
	return varOp.Call(Var{Reduce: Reduce{X: x, Axes: some(axes)}, Correction: 1})
}

// Names drops the axes.
func (a *Var) Names(p *Plan) { a.keeps(p, p.Float(a.X)) }

// F32 is the f32 kernel.
func (a *Var) F32(x []float32) float32 { return variance(x, a.Correction) }

// F64 is the f64 kernel.
func (a *Var) F64(x []float64) float64 { return variance(x, a.Correction) }

func variance[T float32 | float64](x []T, correction int) T {
	n := len(x)
	return num.Squares(x, num.Sum(x)/T(n)) / T(max(0, n-correction))
}

// Saves x.
func (*Var) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy · 2(x - mean) / (n - correction).
func (a *Var) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, a.X.centred(a.reduced()).Mul(gy[0].wide()).times(2/float64(max(0, volume(a.X, a.reduced())-a.Correction))))
}

// centred is x less its mean along the axes.
func (x *Tensor) centred(axes Axes) *Tensor {
	x = x.wide()
	return x.Sub(mean.Call(Mean{Reduce{X: x, Axes: axes}}))
}
