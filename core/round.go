package core

import "math"

// Round is the integer nearest to x, of two the even one, element by element, in the dtype of x.
//
// Shape: x[axes] → y[axes]. Integers stay as they are.
//
// Example:
//
//	tensor([-1.5, 0.5, 1.5, 2.7], "a").round()
type Round struct{ Unary }

var round = Declare[Round]("round")

// Round is the integer nearest to x, of two the even one; see the Round operation.
func (x *Tensor) Round() *Tensor { return round.Call(Round{Unary{x}}) }

// F32 is the f32 kernel.
func (*Round) F32(y, x []float32) { rounds(y, x) }

// F64 is the f64 kernel.
func (*Round) F64(y, x []float64) { rounds(y, x) }

// rounds calls by name, which the compiler makes one instruction of.
func rounds[T float32 | float64](y, x []T) {
	x = x[:len(y)]
	for i := range y {
		y[i] = T(math.RoundToEven(float64(x[i])))
	}
}

// I64 is the integer kernel.
func (*Round) I64(y, x []int64) { copy(y, x) }

// Saves nothing.
func (*Round) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP is 0.
func (a *Round) VJP(_, gy []*Tensor, g *Grads) { g.zero(0, gy[0]) }
