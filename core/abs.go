package core

import "github.com/fucina-go/fucina/kernels/num"

// Abs is the absolute value of x, element by element.
//
// Shape: x[axes] → y[axes]. Integers wrap around: the least one stays.
//
// Example:
//
//	tensor([-1.5, 0.0, 2.0], "a").abs()
type Abs struct{ Unary }

var abs = Declare[Abs]("abs")

// Abs is |x|; see the Abs operation.
func (x *Tensor) Abs() *Tensor { return abs.Call(Abs{Unary{x}}) }

// F32 is the f32 kernel.
func (*Abs) F32(y, x []float32) { num.Abs(y, x) }

// F64 is the f64 kernel.
func (*Abs) F64(y, x []float64) { num.Abs(y, x) }

// I64 is the integer kernel.
func (*Abs) I64(y, x []int64) {
	for i, v := range x {
		y[i] = max(v, -v)
	}
}

// Saves x.
func (*Abs) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy · sign(x): 0 at 0, as in PyTorch.
func (a *Abs) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, gy[0].Mul(a.X.Sign())) }
