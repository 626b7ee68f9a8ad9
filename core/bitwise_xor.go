package core

// BitwiseXor is the bits that just one of x and y has, element by element, aligned by axis name; the operator ^.
// It takes integers and bool; either operand may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes].
//
// Errors: floating-point numbers.
//
// Example:
//
//	tensor([6, 5], "a").bitwise_xor(3)
type BitwiseXor struct{ Binary }

var bitwiseXor = Declare[BitwiseXor]("bitwise_xor")

// BitwiseXor is x ^ y; see the BitwiseXor operation.
func (x *Tensor) BitwiseXor(y *Tensor) *Tensor {
	return bitwiseXor.Call(BitwiseXor{Binary{X: x, Y: y}})
}

// I64 is the integer kernel.
func (*BitwiseXor) I64(z, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] ^ y[i]
	}
}
