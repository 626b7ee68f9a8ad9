package core

import "math"

// Floor is the greatest integer not above x, element by element, in the dtype of x.
//
// Shape: x[axes] → y[axes]. Integers stay as they are.
//
// Example:
//
//	tensor([-1.5, 0.5, 1.5, 2.7], "a").floor()
type Floor struct{ Unary }

var floor = Declare[Floor]("floor")

// Floor is the greatest integer not above x; see the Floor operation.
func (x *Tensor) Floor() *Tensor { return floor.Call(Floor{Unary{x}}) }

// F32 is the f32 kernel.
func (*Floor) F32(y, x []float32) { floors(y, x) }

// F64 is the f64 kernel.
func (*Floor) F64(y, x []float64) { floors(y, x) }

// floors calls by name, which the compiler makes one instruction of.
func floors[T float32 | float64](y, x []T) {
	x = x[:len(y)]
	for i := range y {
		y[i] = T(math.Floor(float64(x[i])))
	}
}

// I64 is the integer kernel.
func (*Floor) I64(y, x []int64) { copy(y, x) }

// Saves nothing.
func (*Floor) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP is 0.
func (a *Floor) VJP(_, gy []*Tensor, g *Grads) { g.zero(0, gy[0]) }
