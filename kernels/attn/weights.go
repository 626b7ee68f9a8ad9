package attn

import (
	"unsafe"

	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/num"
)

// The files simd_* are generated; see kernels/internal/gen.
//
//go:generate go run ../internal/gen ..

func assembly() bool { return hasSIMD && cpu.Current() != cpu.Generic }

// scalePeaks multiplies the first n elements of so many rows of x, which begin ld apart, by a, and makes peak[r] the
// largest of them and of what it was. If there is a NaN among them it need not be NaN.
func scalePeaks[T num.Float](x []T, rows, ld, n int, a T, peak []T) {
	whole := 0
	if unsafe.Sizeof(a) == 4 && assembly() {
		if whole = n &^ (gemm.Width - 1); whole > 0 {
			_, _ = x[(rows-1)*ld+n-1], peak[rows-1]
			scalePeaksF32(rows, (*float32)(unsafe.Pointer(&x[0])), ld, whole, float32(a),
				(*float32)(unsafe.Pointer(&peak[0])))
		}
	}
	for r := range rows {
		top := peak[r]
		for i, v := range x[r*ld+whole : r*ld+n] {
			v = T(v * a)
			x[r*ld+whole+i] = v
			top = max(top, v)
		}
		peak[r] = top
	}
}
