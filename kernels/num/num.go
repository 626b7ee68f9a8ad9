// Package num holds the kernels on plain runs of float32 and float64:
// elementwise functions, reductions, and the rows of softmax, RMS norm and
// rotary embedding. Matrix products are in package gemm.
//
// The Go code is the specification: the assembly gives the same bits in every
// tier of kernels/cpu. So every sum has a stated order, exp and log are our own,
// a fused multiply-add is written FMA, and every other product is converted,
// T(x*y), which forbids the compiler to fuse it with an addition.
//
// Slices in, slices out: no allocation, no goroutine, no error, no shape. The
// output comes first. It has at least the length of the first input, and only
// that many elements are written; it may be the same memory as an input, not
// shifted against it. NaN in gives NaN out, with an unspecified payload.
package num

import "unsafe"

// Float is an element type that arithmetic is done in.
type Float interface{ float32 | float64 }

// wide reports whether T is float64. It costs nothing: each instantiation of a
// caller keeps only the branch taken.
func wide[T Float]() bool {
	var x T
	return unsafe.Sizeof(x) == 8
}

func abs[T Float](x T) T {
	if x < 0 {
		return -x
	}
	return x
}
