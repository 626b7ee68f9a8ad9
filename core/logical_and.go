package core

// LogicalAnd is whether both x and y are true, element by element, as bool; aligned by axis name. A number is true
// unless it is 0; NaN is true. Either operand may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes] of bool.
//
// Example:
//
//	tensor([True, True, False], "a").logical_and(tensor([True, False, False], "a"))
type LogicalAnd struct{ Compare }

var logicalAnd = Declare[LogicalAnd]("logical_and")

// LogicalAnd is whether both x and y are true; see the LogicalAnd operation.
func (x *Tensor) LogicalAnd(y *Tensor) *Tensor {
	return logicalAnd.Call(LogicalAnd{Compare{X: x, Y: y}})
}

// F32 is the f32 kernel.
func (*LogicalAnd) F32(z []bool, x, y []float32) { logicalAndOf(z, x, y) }

// F64 is the f64 kernel.
func (*LogicalAnd) F64(z []bool, x, y []float64) { logicalAndOf(z, x, y) }

// I64 is the integer kernel.
func (*LogicalAnd) I64(z []bool, x, y []int64) { logicalAndOf(z, x, y) }

func logicalAndOf[T number](z []bool, x, y []T) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] != 0 && y[i] != 0
	}
}
