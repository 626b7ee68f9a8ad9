package num

import (
	"unsafe"

	"github.com/fucina-go/fucina/kernels/cpu"
)

// The files simd_* are generated and hold the same functions in assembly, for
// whole groups of 16 elements.
//
//go:generate go run ../internal/gen ..

// simd reports whether a run of n elements goes to the assembly.
func simd(n int) bool { return n >= lanes && vectors() }

func vectors() bool { return hasSIMD && cpu.Current() != cpu.Generic }

// f32 and f64 are the start of a slice that is known to have that type.
func f32[T Float](x []T) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(x))) }
func f64[T Float](x []T) *float64 { return (*float64)(unsafe.Pointer(unsafe.SliceData(x))) }

// whole is how many of n elements are in whole groups.
func whole(n int) int { return n &^ (lanes - 1) }

// part is whole for one call of the assembly, which gets long runs in parts: in
// it a goroutine cannot be preempted, and the collector waits for it.
func part(n int) int { return min(whole(n), 1<<14) }

// An op names a function of one or two inputs that exists in assembly. The
// functions stand in a switch, not in a table: through a function value the
// arguments would escape to the heap.
type op int

const (
	opAdd op = iota
	opSub
	opMul
	opDiv
	opMaximum
	opMinimum
	opSwiGLU
	opNeg
	opAbs
	opSqrt
	opExp
	opLog
	opTanh
	opErf
	opSigmoid
	opSiLU
	opGELU
	opGELUTanh
)

// unary computes y = op(x) as far as the assembly goes and returns how many
// elements it has done.
func unary[T Float](o op, y, x []T) int {
	if !vectors() {
		return 0
	}
	n := 0
	for next := part(len(x)); next > 0; next = part(len(x) - n) {
		if wide[T]() {
			next = unary64(o, f64(y[n:]), f64(x[n:]), next)
		} else {
			next = unary32(o, f32(y[n:]), f32(x[n:]), next)
		}
		if next == 0 {
			break // there is none
		}
		n += next
	}
	if o > opSqrt && n < len(x) && !wide[T]() {
		// The rest costs less in one group with some idle lanes than one by one.
		var in, out [lanes]T
		copy(in[:], x[n:])
		unary32(o, f32(out[:]), f32(in[:]), lanes)
		copy(y[n:len(x)], out[:])
		n = len(x)
	}
	return n
}

func unary32(o op, y, x *float32, n int) int {
	switch o {
	case opNeg:
		negF32(y, x, n)
	case opAbs:
		absF32(y, x, n)
	case opSqrt:
		sqrtF32(y, x, n)
	case opExp:
		expF32(y, x, n)
	case opLog:
		logF32(y, x, n)
	case opTanh:
		tanhF32(y, x, n)
	case opErf:
		erfF32(y, x, n)
	case opSigmoid:
		sigmoidF32(y, x, n)
	case opSiLU:
		siluF32(y, x, n)
	case opGELU:
		geluF32(y, x, n)
	case opGELUTanh:
		geluTanhF32(y, x, n)
	default:
		return 0
	}
	return n
}

func unary64(o op, y, x *float64, n int) int {
	switch o {
	case opNeg:
		negF64(y, x, n)
	case opAbs:
		absF64(y, x, n)
	case opSqrt:
		sqrtF64(y, x, n)
	case opExp:
		expF64(y, x, n)
	default:
		return 0
	}
	return n
}

// binary is unary for z = x op y.
func binary[T Float](o op, z, x, y []T) int {
	n := 0
	for simd(len(x) - n) {
		next := part(len(x) - n)
		if wide[T]() {
			next = binary64(o, f64(z[n:]), f64(x[n:]), f64(y[n:]), next)
		} else {
			next = binary32(o, f32(z[n:]), f32(x[n:]), f32(y[n:]), next)
		}
		if next == 0 {
			break // there is none
		}
		n += next
	}
	return n
}

func binary32(o op, z, x, y *float32, n int) int {
	switch o {
	case opAdd:
		addF32(z, x, y, n)
	case opSub:
		subF32(z, x, y, n)
	case opMul:
		mulF32(z, x, y, n)
	case opDiv:
		divF32(z, x, y, n)
	case opMaximum:
		maximumF32(z, x, y, n)
	case opMinimum:
		minimumF32(z, x, y, n)
	case opSwiGLU:
		swigluF32(z, x, y, n)
	default:
		return 0
	}
	return n
}

func binary64(o op, z, x, y *float64, n int) int {
	switch o {
	case opAdd:
		addF64(z, x, y, n)
	case opSub:
		subF64(z, x, y, n)
	case opMul:
		mulF64(z, x, y, n)
	case opDiv:
		divF64(z, x, y, n)
	case opMaximum:
		maximumF64(z, x, y, n)
	case opMinimum:
		minimumF64(z, x, y, n)
	default:
		return 0
	}
	return n
}
