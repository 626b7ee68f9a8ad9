package core

// LogicalNot is whether x is 0 or False, element by element, as bool. NaN is true, so its opposite is False.
//
// Shape: x[axes] → y[axes] of bool.
//
// Example:
//
//	tensor([0, 1, 2], "a").logical_not()
type LogicalNot struct{ Predicate }

var logicalNot = Declare[LogicalNot]("logical_not")

// LogicalNot is whether x is 0 or False; see the LogicalNot operation.
func (x *Tensor) LogicalNot() *Tensor { return logicalNot.Call(LogicalNot{Predicate{x}}) }

// F32 is the f32 kernel.
func (*LogicalNot) F32(y []bool, x []float32) { logicalNotOf(y, x) }

// F64 is the f64 kernel.
func (*LogicalNot) F64(y []bool, x []float64) { logicalNotOf(y, x) }

// I64 is the integer kernel.
func (*LogicalNot) I64(y []bool, x []int64) { logicalNotOf(y, x) }

func logicalNotOf[T number](y []bool, x []T) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] = v == 0
	}
}
