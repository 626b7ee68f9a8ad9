package core

import "github.com/fucina-go/fucina/kernels/num"

// Neg is -x, element by element.
//
// Shape: x[axes] → y[axes]. Integers wrap around: the least one stays.
//
// Example:
//
//	tensor([1, -2], "a").neg()
type Neg struct{ Unary }

var neg = Declare[Neg]("neg")

// Neg is -x; see the Neg operation.
func (x *Tensor) Neg() *Tensor { return neg.Call(Neg{Unary{x}}) }

// F32 is the f32 kernel.
func (*Neg) F32(y, x []float32) { num.Neg(y, x) }

// F64 is the f64 kernel.
func (*Neg) F64(y, x []float64) { num.Neg(y, x) }

// I64 is the integer kernel.
func (*Neg) I64(y, x []int64) {
	x = x[:len(y)]
	for i := range y {
		y[i] = -x[i]
	}
}

// Saves nothing.
func (*Neg) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP is -gy.
func (a *Neg) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, gy[0].Neg()) }
