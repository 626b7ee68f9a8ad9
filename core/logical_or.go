package core

// LogicalOr is whether x or y is true, element by element, as bool; aligned by axis name. A number is true unless
// it is 0; NaN is true. Either operand may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes] of bool.
//
// Example:
//
//	tensor([True, True, False], "a").logical_or(tensor([True, False, False], "a"))
type LogicalOr struct{ Compare }

var logicalOr = Declare[LogicalOr]("logical_or")

// LogicalOr is whether x or y is true; see the LogicalOr operation.
func (x *Tensor) LogicalOr(y *Tensor) *Tensor { return logicalOr.Call(LogicalOr{Compare{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*LogicalOr) F32(z []bool, x, y []float32) { logicalOrOf(z, x, y) }

// F64 is the f64 kernel.
func (*LogicalOr) F64(z []bool, x, y []float64) { logicalOrOf(z, x, y) }

// I64 is the integer kernel.
func (*LogicalOr) I64(z []bool, x, y []int64) { logicalOrOf(z, x, y) }

func logicalOrOf[T number](z []bool, x, y []T) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] != 0 || y[i] != 0
	}
}
