package core

import "github.com/fucina-go/fucina/core/dtype"

// BitwiseNot is x with every bit turned, element by element; the operator ~. It takes integers, for which it is
// -x - 1 (255 - x for u8), and bool.
//
// Shape: x[axes] → y[axes].
//
// Errors: floating-point numbers.
//
// Example:
//
//	tensor([True, False], "a").bitwise_not()
type BitwiseNot struct{ Unary }

var bitwiseNot = Declare[BitwiseNot]("bitwise_not")

// BitwiseNot is x with every bit turned; see the BitwiseNot operation.
func (x *Tensor) BitwiseNot() *Tensor { return bitwiseNot.Call(BitwiseNot{Unary{x}}) }

// I64 is the integer kernel.
func (a *BitwiseNot) I64(y, x []int64) {
	all := int64(-1)
	if a.X.dtype == dtype.Bool {
		all = 1
	}
	for i, v := range x {
		y[i] = v ^ all
	}
}
