// Package gemm holds the matrix products of float32 and float64, and of bf16, whose chains are others: see BF16.
//
// The Go code is the specification: the assembly gives the same bits in every
// tier of kernels/cpu. Every element of the result is one chain,
// acc = FMA(a, b, acc) over the contracted index in order, from zero or from
// what c holds, whatever the tile it is computed in. So NN, NT and Packed agree,
// a row of a batch equals that row alone, and a product may be cut into blocks
// of any shape, the contracted index included.
//
// Matrices are slices of rows with a stride in elements between their starts:
// lda for a, ldb for b, ldc for c, at least the length of the row. c must not
// overlap a or b; nothing is written between its rows. No allocation, no
// goroutine, no error.
package gemm

import (
	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/num"
)

// The files simd_* are generated and hold the innermost loops in assembly.
//
//go:generate go run ../internal/gen ..

// NN computes c[m×n] = a[m×k]·b[k×n].
func NN[T num.Float](c, a, b []T, m, n, k, lda, ldb, ldc int) {
	if simd(m, n, k) {
		_, _, _ = c[(m-1)*ldc+n-1], a[(m-1)*lda+k-1], b[(k-1)*ldb+n-1] // the assembly checks no bounds
		rowMajor(c, a, b, m, n, k, lda, ldb, ldc, false)
		return
	}
	for i := range m {
		clear(c[i*ldc:][:n])
	}
	addNN(c, a, b, m, n, k, lda, ldb, ldc)
}

// AddNN computes c[m×n] += a[m×k]·b[k×n]: the chains go on from what c holds.
func AddNN[T num.Float](c, a, b []T, m, n, k, lda, ldb, ldc int) {
	if simd(m, n, k) {
		_, _, _ = c[(m-1)*ldc+n-1], a[(m-1)*lda+k-1], b[(k-1)*ldb+n-1] // the assembly checks no bounds
		rowMajor(c, a, b, m, n, k, lda, ldb, ldc, true)
		return
	}
	addNN(c, a, b, m, n, k, lda, ldb, ldc)
}

// NT computes c[m×n] = a[m×k]·bᵀ, b[n×k].
func NT[T num.Float](c, a, b []T, m, n, k, lda, ldb, ldc int) {
	if simd(m, n, k) {
		_, _, _ = c[(m-1)*ldc+n-1], a[(m-1)*lda+k-1], b[(n-1)*ldb+k-1]
		columnMajor(c, a, b, m, n, k, lda, ldb, ldc)
		return
	}
	plainNT(c, a, b, m, n, k, lda, ldb, ldc)
}

// simd reports whether a product goes to the assembly: not if it is so small
// that packing costs more.
func simd(m, n, k int) bool {
	return m*n*k >= 64 && assembly()
}

// Peak runs so many turns of a loop of nothing but float32 fused multiply-adds that wait for nothing, and returns how
// many operations that were, multiplications and additions: what no product can be faster than.
func Peak(turns int) (operations int) {
	if assembly() {
		const most = 4096 // a call of assembly cannot be preempted
		for left := turns; left > 0; left -= most {
			peakF32(min(left, most))
		}
		return 2 * peakPairs * turns
	}
	var acc [Width]float32
	for range turns * peakPairs / Width {
		for i := range acc {
			acc[i] = num.FMA(acc[i], 0.5, 1)
		}
	}
	if acc[0] > 2 { // never: it makes the compiler leave nothing out
		return 0
	}
	return 2 * peakPairs * turns
}

func assembly() bool { return hasSIMD && cpu.Current() != cpu.Generic }
