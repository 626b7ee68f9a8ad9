package core

// IsInf is whether x is inf or -inf, element by element, as bool. No integer is.
//
// Shape: x[axes] → y[axes] of bool.
//
// Example:
//
//	tensor([1.0, float("inf")], "a").isinf()
type IsInf struct{ Predicate }

var isInf = Declare[IsInf]("isinf")

// IsInf is whether x is inf or -inf; see the IsInf operation.
func (x *Tensor) IsInf() *Tensor { return isInf.Call(IsInf{Predicate{x}}) }

// F32 is the f32 kernel.
func (*IsInf) F32(y []bool, x []float32) { isInfOf(y, x) }

// F64 is the f64 kernel.
func (*IsInf) F64(y []bool, x []float64) { isInfOf(y, x) }

// I64 is the integer kernel.
func (*IsInf) I64(y []bool, _ []int64) { clear(y) }

func isInfOf[T float32 | float64](y []bool, x []T) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] = v-v != 0 && v == v
	}
}
