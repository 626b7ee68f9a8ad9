package core

// BitwiseAnd is the bits that both x and y have, element by element, aligned by axis name; the operator &. It takes
// integers and bool; either operand may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes].
//
// Errors: floating-point numbers.
//
// Example:
//
//	tensor([6, 5], "a").bitwise_and(3)
type BitwiseAnd struct{ Binary }

var bitwiseAnd = Declare[BitwiseAnd]("bitwise_and")

// BitwiseAnd is x & y; see the BitwiseAnd operation.
func (x *Tensor) BitwiseAnd(y *Tensor) *Tensor {
	return bitwiseAnd.Call(BitwiseAnd{Binary{X: x, Y: y}})
}

// I64 is the integer kernel.
func (*BitwiseAnd) I64(z, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] & y[i]
	}
}
