package core

import "math"

// Trunc is x without its fraction, element by element, in the dtype of x.
//
// Shape: x[axes] → y[axes]. Integers stay as they are.
//
// Example:
//
//	tensor([-1.5, 0.5, 1.5, 2.7], "a").trunc()
type Trunc struct{ Unary }

var trunc = Declare[Trunc]("trunc")

// Trunc is x without its fraction; see the Trunc operation.
func (x *Tensor) Trunc() *Tensor { return trunc.Call(Trunc{Unary{x}}) }

// F32 is the f32 kernel.
func (*Trunc) F32(y, x []float32) { truncs(y, x) }

// F64 is the f64 kernel.
func (*Trunc) F64(y, x []float64) { truncs(y, x) }

// truncs calls by name, which the compiler makes one instruction of.
func truncs[T float32 | float64](y, x []T) {
	x = x[:len(y)]
	for i := range y {
		y[i] = T(math.Trunc(float64(x[i])))
	}
}

// I64 is the integer kernel.
func (*Trunc) I64(y, x []int64) { copy(y, x) }

// Saves nothing.
func (*Trunc) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP is 0.
func (a *Trunc) VJP(_, gy []*Tensor, g *Grads) { g.zero(0, gy[0]) }
