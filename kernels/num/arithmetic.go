package num

import "math"

// Add sets z[i] to x[i] + y[i].
func Add[T Float](z, x, y []T) {
	z, y = z[:len(x)], y[:len(x)]
	for i := binary(opAdd, z, x, y); i < len(x); i++ {
		z[i] = x[i] + y[i]
	}
}

// Sub sets z[i] to x[i] - y[i].
func Sub[T Float](z, x, y []T) {
	z, y = z[:len(x)], y[:len(x)]
	for i := binary(opSub, z, x, y); i < len(x); i++ {
		z[i] = x[i] - y[i]
	}
}

// Mul sets z[i] to x[i]·y[i].
func Mul[T Float](z, x, y []T) {
	z, y = z[:len(x)], y[:len(x)]
	for i := binary(opMul, z, x, y); i < len(x); i++ {
		z[i] = T(x[i] * y[i])
	}
}

// Div sets z[i] to x[i] / y[i].
func Div[T Float](z, x, y []T) {
	z, y = z[:len(x)], y[:len(x)]
	for i := binary(opDiv, z, x, y); i < len(x); i++ {
		z[i] = x[i] / y[i]
	}
}

// Maximum sets z[i] to the larger of x[i] and y[i], NaN if one of them is, +0 of
// two different zeros.
func Maximum[T Float](z, x, y []T) {
	z, y = z[:len(x)], y[:len(x)]
	for i := binary(opMaximum, z, x, y); i < len(x); i++ {
		z[i] = max(x[i], y[i])
	}
}

// Minimum sets z[i] to the smaller of x[i] and y[i], NaN if one of them is, -0
// of two different zeros.
func Minimum[T Float](z, x, y []T) {
	z, y = z[:len(x)], y[:len(x)]
	for i := binary(opMinimum, z, x, y); i < len(x); i++ {
		z[i] = min(x[i], y[i])
	}
}

// Neg sets y[i] to -x[i].
func Neg[T Float](y, x []T) {
	y = y[:len(x)]
	for i := unary(opNeg, y, x); i < len(x); i++ {
		y[i] = -x[i]
	}
}

// Abs sets y[i] to |x[i]|.
func Abs[T Float](y, x []T) {
	y = y[:len(x)]
	for i := unary(opAbs, y, x); i < len(x); i++ {
		y[i] = T(math.Abs(float64(x[i])))
	}
}

// Sqrt sets y[i] to the square root of x[i], rounded once. That of f64, rounded to f32, is the same.
func Sqrt[T Float](y, x []T) {
	y = y[:len(x)]
	for i := unary(opSqrt, y, x); i < len(x); i++ {
		y[i] = T(math.Sqrt(float64(x[i])))
	}
}

// MulAdd sets z[i] to a[i]·b[i] + c[i], rounded once.
func MulAdd[T Float](z, a, b, c []T) {
	z, b, c = z[:len(a)], b[:len(a)], c[:len(a)]
	for simd(len(a)) {
		n := part(len(a))
		if wide[T]() {
			fmaF64(f64(z), f64(a), f64(b), f64(c), n)
		} else {
			fmaF32(f32(z), f32(a), f32(b), f32(c), n)
		}
		z, a, b, c = z[n:], a[n:], b[n:], c[n:]
	}
	for i := range a {
		z[i] = FMA(a[i], b[i], c[i])
	}
}

// Scale sets y[i] to x[i]·a.
func Scale[T Float](y, x []T, a T) {
	y = y[:len(x)]
	for simd(len(x)) {
		n := part(len(x))
		if wide[T]() {
			scaleF64(f64(y), f64(x), float64(a), n)
		} else {
			scaleF32(f32(y), f32(x), float32(a), n)
		}
		x, y = x[n:], y[n:]
	}
	for i := range x {
		y[i] = T(x[i] * a)
	}
}

// AddScaled adds x[i]·a to y[i], rounded once.
func AddScaled[T Float](y, x []T, a T) {
	y = y[:len(x)]
	for simd(len(x)) {
		n := part(len(x))
		if wide[T]() {
			axpyF64(f64(y), f64(x), float64(a), n)
		} else {
			axpyF32(f32(y), f32(x), float32(a), n)
		}
		x, y = x[n:], y[n:]
	}
	for i := range x {
		y[i] = FMA(x[i], a, y[i])
	}
}

// Quotient sets y[i] to x[i] / a.
func Quotient[T Float](y, x []T, a T) {
	y = y[:len(x)]
	for simd(len(x)) {
		n := part(len(x))
		if wide[T]() {
			quotientF64(f64(y), f64(x), float64(a), n)
		} else {
			quotientF32(f32(y), f32(x), float32(a), n)
		}
		x, y = x[n:], y[n:]
	}
	for i := range x {
		y[i] = x[i] / a
	}
}

// A comparison is one that exists in assembly.
type comparison int

const (
	isEqual comparison = iota
	isNotEqual
	isLess
	isLessEqual
)

// compare is unary for z = x c y.
func compare[T Float](c comparison, z []bool, x, y []T) int {
	done := 0
	for !wide[T]() && simd(len(x)) {
		n := part(len(x))
		switch c {
		case isEqual:
			equalF32(&z[0], f32(x), f32(y), n)
		case isNotEqual:
			notEqualF32(&z[0], f32(x), f32(y), n)
		case isLess:
			lessF32(&z[0], f32(x), f32(y), n)
		case isLessEqual:
			lessEqualF32(&z[0], f32(x), f32(y), n)
		}
		x, y, z, done = x[n:], y[n:], z[n:], done+n
	}
	return done
}

// Equal sets z[i] to x[i] == y[i].
func Equal[T Float](z []bool, x, y []T) {
	z, y = z[:len(x)], y[:len(x)]
	for i := compare(isEqual, z, x, y); i < len(x); i++ {
		z[i] = x[i] == y[i]
	}
}

// NotEqual sets z[i] to x[i] != y[i].
func NotEqual[T Float](z []bool, x, y []T) {
	z, y = z[:len(x)], y[:len(x)]
	for i := compare(isNotEqual, z, x, y); i < len(x); i++ {
		z[i] = x[i] != y[i]
	}
}

// Less sets z[i] to x[i] < y[i].
func Less[T Float](z []bool, x, y []T) {
	z, y = z[:len(x)], y[:len(x)]
	for i := compare(isLess, z, x, y); i < len(x); i++ {
		z[i] = x[i] < y[i]
	}
}

// LessEqual sets z[i] to x[i] <= y[i].
func LessEqual[T Float](z []bool, x, y []T) {
	z, y = z[:len(x)], y[:len(x)]
	for i := compare(isLessEqual, z, x, y); i < len(x); i++ {
		z[i] = x[i] <= y[i]
	}
}
