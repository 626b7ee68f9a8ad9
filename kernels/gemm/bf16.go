package gemm

import (
	"math"
	"unsafe"

	"github.com/fucina-go/fucina/kernels/num"
)

// Products of bf16 are what the instruction VDPBF16PS computes (Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 2). Two neighbours of the contracted index are a pair: first the product of the second ones is added
// to the chain, then that of the first ones, each by a multiply-add that rounds once, to nearest, ties to even. The
// last element of an odd number of them has 0 beside it. Numbers below the least normal one, 2⁻¹²⁶, do not exist:
// operands and what c holds count as 0 of their sign, and so does a sum that is below it after it has been rounded to
// 24 bits of any exponent.
//
// A panel has for each pair of rows of b 16 pairs, one for each column, side by side, and then, if the number of rows
// is odd, the 16 elements of the last.

const (
	bf16Depth = 1024 // of a block of the contracted index; even
	leastBits = 1 << 23
)

// PackBF16 packs bᵀ, b[n×k], into panels for BF16: PackedLen(n, k) elements, each as it was.
func PackBF16(dst, b []uint16, n, k, ldb int) {
	dst = dst[:PackedLen(n, k)]
	for j := 0; j < n; j += Width {
		panel, rows, w := dst[j*k:][:k*Width], b[j*ldb:], min(Width, n-j)
		_ = rows[:(w-1)*ldb+k]
		if w < Width {
			clear(panel)
		}
		pairs, from := k/2, 0
		if w == Width && pairs > 0 && ldb%2 == 0 && assembly() { // a pair is moved as a number of 32 bits
			packColumns(words32(panel[:pairs*2*Width]), words32(rows[:((w-1)*ldb+k)&^1]), w, pairs, ldb/2, 0)
			from = 2 * pairs
		}
		for r := range w {
			for i, v := range rows[r*ldb+from:][:k-from] {
				panel[placeBF16(from+i, r, k)] = v
			}
		}
	}
}

// words32 is pairs of elements as numbers that nobody computes with.
func words32(x []uint16) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(x))), len(x)/2)
}

// RowBF16 sets dst to the elements of a column of a panel of PackBF16.
func RowBF16(dst, panel []uint16, column int) {
	k := len(dst)
	panel = panel[:k*Width]
	for i := 0; i+1 < k; i += 2 {
		at := i*Width + 2*column
		dst[i], dst[i+1] = panel[at], panel[at+1]
	}
	if k%2 == 1 {
		dst[k-1] = panel[(k-1)*Width+column]
	}
}

// placeBF16 is where element i of k in a column of a panel is.
func placeBF16(i, column, k int) int {
	if i == k-1 && k%2 == 1 {
		return i*Width + column
	}
	return i&^1*Width + 2*column + i&1
}

// BF16 computes c[m×n] = a[m×k]·b, or c += a·b if add, of a and b in bf16, b in panels that begin next elements apart.
// If these have more than k rows, k must be even, and the panels are those from an even row on. The bits are the same
// for each way to cut m, n and, at even places, k. None of the three may lie in a mapped file: where it shrank, a fault
// would leave the thread in the mode in which numbers below the least normal one do not exist.
func BF16(c []float32, a, b []uint16, next, m, n, k, lda, ldc int, add bool) {
	if m == 0 || n == 0 {
		return
	}
	b = b[:(n-1)/Width*next+k*Width]
	if k == 0 || !assembly() {
		plainBF16(c, a, b, next, m, n, k, lda, ldc, add)
		return
	}
	_, _ = c[(m-1)*ldc+n-1], a[(m-1)*lda+k-1] // the assembly checks no bounds
	first := 0
	if quarter := n / Width / 4; m <= pairsRows(4) {
		for q := range quarter {
			for p := 0; p < k; p += unpreempted {
				tileBF16(c[q*Width:], a[p:], b[q*next+p*Width:], m, 4, min(unpreempted, k-p), lda, quarter*next, ldc,
					quarter*Width, add || p > 0)
			}
		}
		first = 4 * quarter * Width
	}
	most := max(pairsRows(2), pairsRows(1))
	tiles := (m + most - 1) / most
	for j := first; j < n; j += columns {
		w := min(columns, n-j)
		for p := 0; p < k; p += bf16Depth {
			for t := range tiles { // of nearly equal height: a low one is slow
				i, end := t*m/tiles, (t+1)*m/tiles
				acrossBF16(c[i*ldc+j:], a[i*lda+p:], b[j/Width*next+p*Width:], next, end-i, w, min(bf16Depth, k-p), lda,
					ldc, add || p > 0)
			}
		}
	}
}

// acrossBF16 computes the rows of one tile, panel by panel.
func acrossBF16(c []float32, a, b []uint16, next, m, n, k, lda, ldc int, add bool) {
	count, q := n/Width, 0
	for ; q+2 <= count && m <= pairsRows(2); q += 2 {
		tileBF16(c[q*Width:], a, b[q*next:], m, 2, k, lda, next, ldc, Width, add)
	}
	for ; q < count; q++ {
		tileBF16(c[q*Width:], a, b[q*next:], m, 1, k, lda, next, ldc, Width, add)
	}
	w := n % Width
	if w == 0 {
		return
	}
	var part [maxRows * Width]float32 // a panel of which only w columns exist in c
	for r := 0; r < m && add; r++ {
		copy(part[r*Width:][:w], c[r*ldc+q*Width:])
	}
	tileBF16(part[:], a, b[q*next:], m, 1, k, lda, next, Width, Width, add)
	for r := range m {
		copy(c[r*ldc+q*Width:][:w], part[r*Width:])
	}
}

// tileBF16 computes a tile of so many panels, whose results begin cnext elements apart.
func tileBF16(c []float32, a, b []uint16, rows, count, k, lda, next, ldc, cnext int, add bool) {
	var left uint32
	pairs(rows, count, k, &a[0], lda, &b[0], next, &c[0], ldc, cnext, add, near, &left)
	for q := 0; q < count && left != 0; q++ {
		plainBF16(c[q*cnext:], a, b[q*next:], next, rows, Width, k, lda, ldc, add)
	}
}

// plainBF16 is the definition of BF16.
func plainBF16(c []float32, a, b []uint16, next, m, n, k, lda, ldc int, add bool) {
	for i := range m {
		row := c[i*ldc:][:n]
		if !add {
			clear(row)
		}
		x := a[i*lda:][:k]
		for j := 0; j < n; j += Width {
			y := row[j:min(j+Width, n)]
			for q, v := range y {
				y[q] = normal(v)
			}
			panel := b[j/Width*next:]
			for p := 0; p+1 < k; p += 2 {
				addPairs(y, fromBF16(x[p]), fromBF16(x[p+1]), panel[p*Width:][:2*Width])
			}
			if k%2 == 1 {
				var last [2 * Width]uint16
				for q := range Width {
					last[2*q] = panel[(k-1)*Width+q]
				}
				addPairs(y, fromBF16(x[k-1]), 0, last[:])
			}
		}
	}
}

// addPairs adds to each of y the products of the second and the first of a pair.
func addPairs(y []float32, first, second float32, pairs []uint16) {
	for q, v := range y {
		v = addNormal(second, fromBF16(pairs[2*q+1]), v)
		y[q] = addNormal(first, fromBF16(pairs[2*q]), v)
	}
}

// normal is x, or 0 of its sign if it is below the least normal number.
func normal(x float32) float32 {
	if b := math.Float32bits(x); b<<1 < leastBits<<1 {
		return math.Float32frombits(b & (1 << 31))
	}
	return x
}

// fromBF16 is the value of a bf16, or 0 of its sign if it is below the least normal number.
func fromBF16(h uint16) float32 { return normal(math.Float32frombits(uint32(h) << 16)) }

// addNormal is x·y + z rounded once, or 0 of its sign if it is then below the least normal number. It looks twice at
// what is not greater than that one: the unbounded exponent is had by a power of 2, which overflows nothing that comes
// so near to 0.
func addNormal(x, y, z float32) float32 {
	s := num.FMA(x, y, z)
	if b := math.Float32bits(s) << 1; b-1 < leastBits<<1 {
		const scale, least = 1 << 64, 0x1p-62
		if t := num.FMA(float32(x*scale), y, float32(z*scale)); -least < t && t < least {
			return math.Float32frombits(math.Float32bits(s) & (1 << 31))
		}
	}
	return s
}
