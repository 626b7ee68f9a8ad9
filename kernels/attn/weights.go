package attn

import (
	"unsafe"

	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/half"
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

// The bytes and the elements of a block of q8_0.
const (
	q8Bytes = 34
	q8Len   = 32
)

// WidenQ8 sets y to the numbers in whole blocks of q8_0: 34 bytes each, a factor of f16, the lower byte first, and 32
// signed integers. What lies ahead bytes behind them is fetched from memory meanwhile.
func WidenQ8(y []float32, x []byte, ahead int) {
	blocks := len(x) / q8Bytes
	y, x = y[:blocks*q8Len], x[:blocks*q8Bytes]
	if assembly() {
		const most = 512 // blocks of one call, which cannot be preempted
		for ; blocks > 0; blocks -= most {
			n := min(most, blocks)
			widenQ8F32(&y[0], &x[0], n, ahead)
			y, x = y[n*q8Len:], x[n*q8Bytes:]
		}
		return
	}
	for ; len(x) > 0; x, y = x[q8Bytes:], y[q8Len:] {
		d := half.Value(uint16(x[0]) | uint16(x[1])<<8)
		for i, q := range x[2:q8Bytes] {
			y[i] = float32(d * float32(int8(q)))
		}
	}
}
