package core

// BitwiseOr is the bits that x or y has, element by element, aligned by axis name; the operator |. It takes
// integers and bool; either operand may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes].
//
// Errors: floating-point numbers.
//
// Example:
//
//	tensor([6, 5], "a").bitwise_or(3)
type BitwiseOr struct{ Binary }

var bitwiseOr = Declare[BitwiseOr]("bitwise_or")

// BitwiseOr is x | y; see the BitwiseOr operation.
func (x *Tensor) BitwiseOr(y *Tensor) *Tensor { return bitwiseOr.Call(BitwiseOr{Binary{X: x, Y: y}}) }

// I64 is the integer kernel.
func (*BitwiseOr) I64(z, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] | y[i]
	}
}
