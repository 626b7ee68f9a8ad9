package core

// IsFinite is whether x is neither infinite nor NaN, element by element, as bool. Every integer is.
//
// Shape: x[axes] → y[axes] of bool.
//
// Example:
//
//	tensor([1.0, float("inf"), float("nan")], "a").isfinite()
type IsFinite struct{ Predicate }

var isFinite = Declare[IsFinite]("isfinite")

// IsFinite is whether x is neither infinite nor NaN; see the IsFinite operation.
func (x *Tensor) IsFinite() *Tensor { return isFinite.Call(IsFinite{Predicate{x}}) }

// F32 is the f32 kernel.
func (*IsFinite) F32(y []bool, x []float32) { isFiniteOf(y, x) }

// F64 is the f64 kernel.
func (*IsFinite) F64(y []bool, x []float64) { isFiniteOf(y, x) }

// I64 is the integer kernel.
func (*IsFinite) I64(y []bool, _ []int64) {
	for i := range y {
		y[i] = true
	}
}

func isFiniteOf[T float32 | float64](y []bool, x []T) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] = v-v == 0
	}
}
