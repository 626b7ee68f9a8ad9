package gemm

import (
	"unsafe"

	"github.com/fucina-go/fucina/kernels/half"
)

// Half is a format of 16 bits that a packed matrix may have. Its elements are
// widened, exactly, where they are read; the product is float32's, with the bits
// of the product by the widened matrix.
type Half uint8

// The formats of kernels/half.
const (
	F16 Half = iota
	BF16
)

const (
	fewHalf   = 4  // rows that read the panels as they are; for more, blocks are widened first
	halfRows  = 96 // that use a block once it is widened
	halfBlock = 2 * Width
)

// widen converts packed elements.
func (h Half) widen(dst []float32, src []uint16) {
	if h == BF16 {
		half.FromBF16(dst, src)
	} else {
		half.FromF16(dst, src)
	}
}

// PackHalf packs bᵀ, b[n×k] of 16-bit elements, into panels: PackedLen(n, k) of
// them, each as it was.
func PackHalf(dst, b []uint16, n, k, ldb int) {
	const deep = 32 // elements of a line of the cache
	dst = dst[:PackedLen(n, k)]
	for j := 0; j < n; j += Width {
		panel, w := dst[j*k:][:k*Width], min(Width, n-j)
		if w < Width {
			clear(panel)
		}
		for p := 0; p < k; p += deep {
			d := min(deep, k-p)
			block := panel[p*Width:][:d*Width]
			for r := range w {
				to := block[r:]
				for i, v := range b[(j+r)*ldb+p:][:d] {
					to[i*Width] = v
				}
			}
		}
	}
}

// PackedHalf computes c[m×n] = a[m×k]·b, or c += a·b if add, with b packed by
// PackHalf. It reads as Packed does, half the bytes.
func PackedHalf(c, a []float32, packed []uint16, kind Half, m, n, k, lda, ldc int, add bool) {
	packed = packed[:PackedLen(n, k)]
	switch {
	case m == 0 || n == 0:
	case k == 0 || !assembly():
		plainHalf(c, a, packed, kind, m, n, k, lda, ldc, add)
	default:
		_, _ = c[(m-1)*ldc+n-1], a[(m-1)*lda+k-1] // the assembly checks no bounds
		if m <= fewHalf {
			halfStreams(c, a, packed, kind, m, n, k, lda, ldc, add)
		} else {
			halfBlocks(c, a, packed, kind, m, n, k, lda, ldc, add)
		}
	}
}

// plainHalf is the definition of PackedHalf.
func plainHalf(c, a []float32, packed []uint16, kind Half, m, n, k, lda, ldc int, add bool) {
	const deep = 64
	var wide [deep * Width]float32
	for i := 0; i < m && !add; i++ {
		clear(c[i*ldc:][:n])
	}
	for j := 0; j < n; j += Width {
		for p := 0; p < k; p += deep {
			d := min(deep, k-p)
			kind.widen(wide[:], packed[j*k+p*Width:][:d*Width])
			for i := range m {
				addRows(c[i*ldc+j:][:min(Width, n-j)], a[i*lda+p:][:d], wide[:], Width)
			}
		}
	}
}

// halfStreams is the product of a few rows, which is bound by memory: four
// panels are read at a time, from four distant places.
func halfStreams(c, a []float32, packed []uint16, kind Half, m, n, k, lda, ldc int, add bool) {
	quarter := 0
	if m <= kind.tileRows(4) {
		quarter = n / Width / 4
	}
	for p := 0; p < k; p += unpreempted {
		d := min(unpreempted, k-p)
		for q := range quarter {
			kind.tile(m, 4, d, a[p:], lda, packed[(q*k+p)*Width:], quarter*k*Width, c[q*Width:], ldc, quarter*Width,
				add || p > 0)
		}
		for j := 4 * quarter * Width; j < n; j += Width {
			b := packed[j*k+p*Width:]
			w := min(Width, n-j)
			if w == Width {
				kind.tile(m, 1, d, a[p:], lda, b, 0, c[j:], ldc, Width, add || p > 0)
				continue
			}
			var part [fewHalf * Width]float32
			for r := range m {
				copy(part[r*Width:][:w], c[r*ldc+j:])
			}
			kind.tile(m, 1, d, a[p:], lda, b, 0, part[:], Width, Width, add || p > 0)
			for r := range m {
				copy(c[r*ldc+j:][:w], part[r*Width:])
			}
		}
	}
}

// tile computes one tile of the current tier.
func (h Half) tile(rows, count, k int, a []float32, lda int, b []uint16, bnext int, c []float32, ldc, cnext int, add bool) {
	at := unsafe.SliceData(b)
	if h == BF16 {
		tileBF16(rows, count, k, &a[0], lda, at, Width, bnext, &c[0], ldc, cnext, add)
	} else {
		tileF16(rows, count, k, &a[0], lda, at, Width, bnext, &c[0], ldc, cnext, add)
	}
}

// tileRows is how many rows a tile of so many panels has, 0 if there is none.
func (h Half) tileRows(count int) int {
	if h == BF16 {
		return tileRowsBF16(count)
	}
	return tileRowsF16(count)
}

// halfBlocks widens two panels at a time, some of the contracted index, for many
// rows of a, which lie side by side in the second level cache.
func halfBlocks(c, a []float32, packed []uint16, kind Half, m, n, k, lda, ldc int, add bool) {
	const stride = depth + Width
	var wide [halfBlock * depth]float32
	var rows [halfRows * stride]float32
	for j := 0; j < n; j += columns {
		for p := 0; p < k; p += depth {
			d := min(depth, k-p)
			for i := 0; i < m; i += halfRows {
				height := min(halfRows, m-i)
				for r := range height {
					copy(rows[r*stride:][:d], a[(i+r)*lda+p:])
				}
				for q := j; q < min(j+columns, n); q += halfBlock {
					w := min(halfBlock, n-q)
					for s := 0; s < w; s += Width {
						kind.widen(wide[s*d:], packed[(q+s)*k+p*Width:][:d*Width])
					}
					multiply(c[i*ldc+q:], rows[:], panels[float32]{wide[:], Width, d * Width}, height, w, d, stride, ldc,
						add || p > 0)
				}
			}
		}
	}
}
