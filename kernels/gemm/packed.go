package gemm

import "github.com/fucina-go/fucina/kernels/num"

// A packed matrix b[k×n] consists of panels of Width columns, one after
// another, each with Width elements for each of its k rows; the last panel is
// padded with zeros. That is the order in which a product reads it, and it is
// the same in every tier. The panel of column j, a multiple of Width, begins at
// element j·k, so a part of the columns is a slice.

// PackedLen returns the number of elements of a packed matrix.
func PackedLen(n, k int) int { return (n + Width - 1) / Width * Width * k }

// PackNN packs b[k×n]. Panels begin next elements apart: k·Width, or more if b is a part of what they will hold.
func PackNN[T num.Float](dst, b []T, n, k, ldb, next int) {
	packRows(dst[:partLen(n, k, next)], b, n, k, ldb, next)
}

// PackNT packs bᵀ, b[n×k], into panels as PackNN does.
func PackNT[T num.Float](dst, b []T, n, k, ldb, next int) {
	packColumns(dst[:partLen(n, k, next)], b, n, k, ldb, next)
}

// partLen is how far k rows of the panels of n columns reach.
func partLen(n, k, next int) int {
	if n == 0 {
		return 0
	}
	return (n-1)/Width*next + k*Width
}

// ones are lanes of a mask: those from at on begin at Width-at, those below n at 2·Width-n.
var ones = [3 * Width]uint32{Width: on, on, on, on, on, on, on, on, on, on, on, on, on, on, on, on}

const on = 1<<32 - 1

// PackPart packs a part of a panel's columns: in each of so many rows of dst, which
// begin to elements apart, elements at … at+n-1 become n elements of src, whose rows
// begin from apart. The other elements of the Width in a row become 0, or stay if
// merge is set; then those that are set must have been 0.
func PackPart[T num.Float](dst, src []T, n, rows, to, from, at int, merge bool) {
	for ; rows > packedAtOnce; rows -= packedAtOnce {
		PackPart(dst, src, n, packedAtOnce, to, from, at, merge)
		dst, src = dst[packedAtOnce*to:], src[min(len(src), packedAtOnce*from):]
	}
	if n == 0 && merge || rows == 0 {
		return
	}
	_, _ = dst[(rows-1)*to+Width-1], (*[Width]T)(dst)[at:at+n]
	if n > 0 {
		_ = src[(rows-1)*from+n-1]
		if hasMasks && !wide[T]() && assembly() {
			packPartF32(rows, f32(dst), to, f32(src), from, at, &ones[Width-at], &ones[2*Width-at-n], merge)
			return
		}
	}
	for r := range rows {
		row := dst[r*to:][:Width]
		if !merge {
			clear(row)
		}
		copy(row[at:at+n], src[r*from:])
	}
}

// Packed computes c[m×n] = a[m×k]·b, or c += a·b if add, with b packed.
//
// Few rows are bound by memory: four panels are read at a time, from four
// distant places. More rows go in blocks that suit the caches.
func Packed[T num.Float](c, a, packed []T, m, n, k, lda, ldc int, add bool) {
	packed = packed[:PackedLen(n, k)]
	if m == 0 || n == 0 || k == 0 || !assembly() {
		plainPacked(c, a, packed, k*Width, m, n, k, lda, ldc, add)
		return
	}
	_, _ = c[(m-1)*ldc+n-1], a[(m-1)*lda+k-1] // the assembly checks no bounds
	multiplyPacked(c, a, panels[T]{at: packed, step: Width, next: k * Width, ahead: near}, m, n, k, lda, ldc, add)
}

// multiplyPacked is Packed by assembly; b begins with the first panel.
func multiplyPacked[T num.Float](c, a []T, b panels[T], m, n, k, lda, ldc int, add bool) {
	first, deep := 0, depth
	if !wide[T]() && !crowded[T](lda) {
		deep = deepest
	}
	if k > deep { // blocks of equal depth: a shallow one is slow
		blocks := (k + deep - 1) / deep
		deep = (k + blocks - 1) / blocks
	}
	if quarter := n / Width / 4; m <= mostRows[T](4) {
		far := b
		far.next *= quarter
		for q := range quarter {
			for p := 0; p < k; p += unpreempted {
				tileOf(m, 4, min(unpreempted, k-p), a[p:], lda, far.from(q*b.next+p*Width),
					c[q*Width:], ldc, quarter*Width, add || p > 0)
			}
		}
		first = 4 * quarter * Width
	}
	for j := first; j < n; j += columns {
		w := min(columns, n-j)
		for p := 0; p < k; p += deep {
			multiply(c[j:], a[p:], b.from(j/Width*b.next+p*Width), m, w, min(deep, k-p), lda, ldc, add || p > 0)
		}
	}
}

// plainPacked is the definition of Packed, with panels that begin at multiples of next.
func plainPacked[T num.Float](c, a, packed []T, next, m, n, k, lda, ldc int, add bool) {
	for i := range m {
		row := c[i*ldc:][:n]
		if !add {
			clear(row)
		}
		for j := 0; j < n; j += Width {
			addRows(row[j:min(j+Width, n)], a[i*lda:][:k], packed[j/Width*next:], Width)
		}
	}
}

// Transpose sets dst[i·ldd + j] to src[j·lds + i], for i below rows and j below cols.
func Transpose[T num.Float](dst, src []T, rows, cols, ldd, lds int) {
	const deep = 256
	var panel [deep * Width]T
	for j := 0; j < cols; j += Width {
		w := min(Width, cols-j)
		for i := 0; i < rows; i += deep {
			d := min(deep, rows-i)
			packColumns(panel[:], src[j*lds+i:], w, d, lds, 0)
			for r := range d {
				if to := dst[(i+r)*ldd+j:]; w == Width {
					*(*[Width]T)(to) = *(*[Width]T)(panel[r*Width:])
				} else {
					copy(to[:w], panel[r*Width:])
				}
			}
		}
	}
}
