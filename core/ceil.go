package core

import "math"

// Ceil is the least integer not below x, element by element, in the dtype of x.
//
// Shape: x[axes] → y[axes]. Integers stay as they are.
//
// Example:
//
//	tensor([-1.5, 0.5, 1.5, 2.7], "a").ceil()
type Ceil struct{ Unary }

var ceil = Declare[Ceil]("ceil")

// Ceil is the least integer not below x; see the Ceil operation.
func (x *Tensor) Ceil() *Tensor { return ceil.Call(Ceil{Unary{x}}) }

// F32 is the f32 kernel.
func (*Ceil) F32(y, x []float32) { ceils(y, x) }

// F64 is the f64 kernel.
func (*Ceil) F64(y, x []float64) { ceils(y, x) }

// ceils calls by name, which the compiler makes one instruction of.
func ceils[T float32 | float64](y, x []T) {
	x = x[:len(y)]
	for i := range y {
		y[i] = T(math.Ceil(float64(x[i])))
	}
}

// I64 is the integer kernel.
func (*Ceil) I64(y, x []int64) { copy(y, x) }

// Saves nothing.
func (*Ceil) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP is 0.
func (a *Ceil) VJP(_, gy []*Tensor, g *Grads) { g.zero(0, gy[0]) }
