package core

import "math"

// Std is the standard deviation along the named axes; without names, of all elements: the root of var.
//
// Shape: x[a, b, c] → y[a, c] for std("b").
// Numerics: as var, and one root. The gradient at 0 is 0, as in PyTorch.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([[1.0, 2.0], [3.0, 5.0]], "row col").std("col")
type Std struct {
	Reduce
	Correction int `arg:"correction=1"`
}

var std = Declare[Std]("std")

// Std is the standard deviation with a correction of 1 along the named axes, of all elements if none is named.
func (x *Tensor) Std(axes ...string) *Tensor {
	return std.Call(Std{Reduce: Reduce{X: x, Axes: some(axes)}, Correction: 1})
}

// Names drops the axes.
func (a *Std) Names(p *Plan) { a.keeps(p, p.Float(a.X)) }

// F32 is the f32 kernel.
func (a *Std) F32(x []float32) float32 {
	return float32(math.Sqrt(float64(variance(x, a.Correction))))
}

// F64 is the f64 kernel.
func (a *Std) F64(x []float64) float64 { return math.Sqrt(variance(x, a.Correction)) }

// Saves x and y.
func (*Std) Saves(uint64) (in, out uint64) { return 1, 1 }

// VJP is gy · (x - mean) / (y · (n - correction)).
func (a *Std) VJP(y, gy []*Tensor, g *Grads) {
	p := y[0].wide().times(float64(max(0, volume(a.X, a.reduced())-a.Correction)))
	q := gy[0].wide().Div(p).where(p.Ne(Number(p.env, 0, 0, true)))
	g.Set(0, a.X.centred(a.reduced()).Mul(q))
}
