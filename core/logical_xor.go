package core

// LogicalXor is whether just one of x and y is true, element by element, as bool; aligned by axis name. A number is
// true unless it is 0; NaN is true. Either operand may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes] of bool.
//
// Example:
//
//	tensor([True, True, False], "a").logical_xor(tensor([True, False, False], "a"))
type LogicalXor struct{ Compare }

var logicalXor = Declare[LogicalXor]("logical_xor")

// LogicalXor is whether just one of x and y is true; see the LogicalXor operation.
func (x *Tensor) LogicalXor(y *Tensor) *Tensor {
	return logicalXor.Call(LogicalXor{Compare{X: x, Y: y}})
}

// F32 is the f32 kernel.
func (*LogicalXor) F32(z []bool, x, y []float32) { logicalXorOf(z, x, y) }

// F64 is the f64 kernel.
func (*LogicalXor) F64(z []bool, x, y []float64) { logicalXorOf(z, x, y) }

// I64 is the integer kernel.
func (*LogicalXor) I64(z []bool, x, y []int64) { logicalXorOf(z, x, y) }

func logicalXorOf[T number](z []bool, x, y []T) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = (x[i] != 0) != (y[i] != 0)
	}
}
