// Package update holds one step of the optimizers on plain runs of float32 and float64: parameters, gradients and
// what the optimizer remembers are read once and written once.
//
// The Go code is the specification; assembly of every tier of kernels/cpu gives the same bits. No product is fused
// with an addition, so that plain Go is fast too and agrees with the frameworks that do not fuse either.
//
// All slices of a call have the length of the first, which is changed, as are those the method says. They must not
// overlap. What hyperparameters mean, and which step this is, is the business of grad/optim, and so are the rules
// that need more than one pass.
package update

import (
	"unsafe"

	"github.com/fucina-go/fucina/kernels/cpu"
)

// The files simd_* are generated; they treat whole groups of 16 elements.
//
//go:generate go run ../internal/gen ..

const lanes = 16

// Float is an element type.
type Float interface{ float32 | float64 }

// most is how many elements a call of the assembly gets at most: in it a goroutine cannot be preempted, and the
// collector waits for it.
const most = 1 << 14

// whole is how many of n elements go to the assembly.
func whole(n int) int {
	if !hasSIMD || n < lanes || cpu.Current() == cpu.Generic {
		return 0
	}
	return n &^ (lanes - 1)
}

// wide reports whether T is float64.
func wide[T Float]() bool {
	var x T
	return unsafe.Sizeof(x) == 8
}

// f32 and f64 are the start of a slice that is known to have that type.
func f32[T Float](x []T) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(x))) }
func f64[T Float](x []T) *float64 { return (*float64)(unsafe.Pointer(unsafe.SliceData(x))) }

// Combine sets z[i] to x[i]·a + y[i]·b, each product and the sum rounded. z may be x or y.
func Combine[T Float](z, x, y []T, a, b T) {
	x, y = x[:len(z)], y[:len(z)]
	for ; len(z) > most; z, x, y = z[most:], x[most:], y[most:] {
		Combine(z[:most], x, y, a, b)
	}
	n := whole(len(z))
	switch {
	case n == 0:
	case wide[T]():
		combineF64(f64(z), f64(x), f64(y), float64(a), float64(b), n)
	default:
		combineF32(f32(z), f32(x), f32(y), float32(a), float32(b), n)
	}
	for i := n; i < len(z); i++ {
		z[i] = T(x[i]*a) + T(y[i]*b)
	}
}
