package core

// IsNaN is whether x is not a number, element by element, as bool. No integer is.
//
// Shape: x[axes] → y[axes] of bool.
//
// Example:
//
//	tensor([1.0, float("nan")], "a").isnan()
type IsNaN struct{ Predicate }

var isNaNOp = Declare[IsNaN]("isnan")

// IsNaN is whether x is not a number; see the IsNaN operation.
func (x *Tensor) IsNaN() *Tensor { return isNaNOp.Call(IsNaN{Predicate{x}}) }

// F32 is the f32 kernel.
func (*IsNaN) F32(y []bool, x []float32) { isNaNOpOf(y, x) }

// F64 is the f64 kernel.
func (*IsNaN) F64(y []bool, x []float64) { isNaNOpOf(y, x) }

// I64 is the integer kernel.
func (*IsNaN) I64(y []bool, _ []int64) { clear(y) }

func isNaNOpOf[T float32 | float64](y []bool, x []T) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] = v != v
	}
}
