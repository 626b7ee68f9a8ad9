package gemm

import (
	"unsafe"

	"github.com/fucina-go/fucina/kernels/half"
)

// A packed matrix may be of f16. Its elements are widened, exactly, where they are read; the product is float32's, with
// the bits of the product by the widened matrix. Matrices of bf16 have products of their own; see BF16.

// PackHalf packs bᵀ, b[n×k] of f16, into panels: PackedLen(n, k) of
// them, each as it was.
func PackHalf(dst, b []uint16, n, k, ldb int) {
	const deep = 256 // a panel's part of that depth stays in the first level cache while its columns come
	dst = dst[:PackedLen(n, k)]
	for j := 0; j < n; j += Width {
		panel, w := dst[j*k:][:k*Width], min(Width, n-j)
		if w < Width {
			clear(panel)
		}
		for p := 0; p < k; p += deep {
			d := min(deep, k-p)
			block, done := panel[p*Width:][:d*Width], 0
			if w == Width && assembly() {
				done = d &^ 3
				for r := 0; r < Width; r += 4 {
					packFour(block[r:], b[(j+r)*ldb+p:], done, ldb)
				}
			}
			for r := range w {
				to := block[r:]
				for i, v := range b[(j+r)*ldb+p+done:][:d-done] {
					to[(done+i)*Width] = v
				}
			}
		}
	}
}

// packFour sets four elements of n rows of a panel, n a multiple of 4, to the elements of four rows of src: squares of
// four by four, each row one word, whose first element is the lowest.
func packFour(dst, src []uint16, n, lds int) {
	if n == 0 {
		return
	}
	const low = 0x0000ffff0000ffff
	_, _ = dst[(n-1)*Width+3], src[3*lds+n-1]
	to, from, next := unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), 2*lds
	for i := 0; i < n; i += 4 {
		row := unsafe.Add(from, 2*i)
		a, b := *(*uint64)(row), *(*uint64)(unsafe.Add(row, next))
		c, d := *(*uint64)(unsafe.Add(row, 2*next)), *(*uint64)(unsafe.Add(row, 3*next))
		a, b = a&low|b&low<<16, a>>16&low|b&^low
		c, d = c&low|d&low<<16, c>>16&low|d&^low
		at := unsafe.Add(to, 2*Width*i)
		*(*uint64)(at) = a&0xffffffff | c<<32
		*(*uint64)(unsafe.Add(at, 2*Width)) = b&0xffffffff | d<<32
		*(*uint64)(unsafe.Add(at, 4*Width)) = a>>32 | c>>32<<32
		*(*uint64)(unsafe.Add(at, 6*Width)) = b>>32 | d>>32<<32
	}
}

// PackedHalf computes c[m×n] = a[m×k]·b, or c += a·b if add, with b packed by
// PackHalf. It reads as Packed does, half the bytes.
func PackedHalf(c, a []float32, packed []uint16, m, n, k, lda, ldc int, add bool) {
	packed = packed[:PackedLen(n, k)]
	switch {
	case m == 0 || n == 0:
	case k == 0 || !assembly():
		plainHalf(c, a, packed, k*Width, m, n, k, lda, ldc, add)
	default:
		_, _ = c[(m-1)*ldc+n-1], a[(m-1)*lda+k-1] // the assembly checks no bounds
		b := panels[float32]{half: packed, step: Width, next: k * Width, ahead: near}
		multiplyPacked(c, a, b, m, n, k, lda, ldc, add)
	}
}

// plainHalf is the definition of PackedHalf, with panels that begin at multiples of next.
func plainHalf(c, a []float32, packed []uint16, next, m, n, k, lda, ldc int, add bool) {
	const deep = 64
	var wide [deep * Width]float32
	for i := 0; i < m && !add; i++ {
		clear(c[i*ldc:][:n])
	}
	for j := 0; j < n; j += Width {
		for p := 0; p < k; p += deep {
			d := min(deep, k-p)
			half.FromF16(wide[:], packed[j/Width*next+p*Width:][:d*Width])
			for i := range m {
				addRows(c[i*ldc+j:][:min(Width, n-j)], a[i*lda+p:][:d], wide[:], Width)
			}
		}
	}
}

// MultiplyWiden computes what b.Multiply does, b being of f16, and meanwhile widens the first k rows of n columns of b
// into room, as Widen does, whose result it returns, for more rows of a. b.Ahead is where the panels lie that are
// multiplied next, in bytes from b.
func (b Panels[T]) MultiplyWiden(room, c, a []T, m, n, k, lda, ldc int, add bool) Panels[T] {
	wide := Panels[T]{At: room[:PackedLen(n, k)], Next: k * Width}
	if m == 0 || n == 0 || k == 0 || !assembly() {
		b.Widen(room, n, k)
		wide.Multiply(c, a, m, n, k, lda, ldc, add)
		return wide
	}
	_, _ = c[(m-1)*ldc+n-1], a[(m-1)*lda+k-1] // the assembly checks no bounds
	_ = b.Half[(n-1)/Width*b.Next+k*Width-1]
	rows, count := widenShape()
	first := 0 // columns that rows rows of a have met
	if m >= rows {
		first = n / (count * Width) * (count * Width)
	}
	for j := 0; j < first; j += count * Width {
		for p := 0; p < k; p += unpreempted {
			tileWiden(min(unpreempted, k-p), f32(a[p:]), lda, &b.Half[j/Width*b.Next+p*Width], b.Next,
				f32(room[j*k+p*Width:]), k*Width, f32(c[j:]), ldc, add || p > 0, b.Ahead)
		}
	}
	if first < n {
		b.From(0, first/Width).Widen(room[first*k:], n-first, k)
		wide.From(0, first/Width).Multiply(c[first:], a, min(m, rows), n-first, k, lda, ldc, add)
	}
	if m > rows {
		wide.Multiply(c[rows*ldc:], a[rows*lda:], m-rows, n, k, lda, ldc, add)
	}
	return wide
}
