package gemm

import (
	"unsafe"

	"github.com/fucina-go/fucina/kernels/num"
)

// Width is the number of columns of a panel, in every tier.
const Width = 16

const (
	depth   = 256 // of a block of the contracted index
	deepest = 512 // the same where rows of a need not be copied and elements have 4 bytes: more of it finds no room
	columns = 256 // whose panels of that depth take half of a second level cache

	// unpreempted is how much of the contracted index one call of assembly takes at most: in it a goroutine
	// cannot be preempted, and the collector waits for it. With four panels that is 1 MB to read.
	unpreempted = 4096
	rawRows     = 8  // up to so many rows, copying b costs more than it saves
	maxRows     = 12 // of a tile
)

func wide[T num.Float]() bool {
	var x T
	return unsafe.Sizeof(x) == 8
}

func f32[T num.Float](x []T) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(x))) }
func f64[T num.Float](x []T) *float64 { return (*float64)(unsafe.Pointer(unsafe.SliceData(x))) }

// panels is how b lies: element (p, j) of panel q is at q·next + p·step + j of at, or, as f16, of half.
// What lies ahead bytes behind the reading of four panels is fetched meanwhile.
type panels[T num.Float] struct {
	at         []T
	half       []uint16
	step, next int
	ahead      int
}

// near is how many bytes ahead the memory that is read is fetched. More disturbs the processor, which fetches ahead by
// itself.
const near = 256

// from is the panels whose first element is element i.
func (b panels[T]) from(i int) panels[T] {
	if b.half != nil {
		b.half = b.half[i:]
	} else {
		b.at = b.at[i:]
	}
	return b
}

// tileOf computes one tile of the current tier.
func tileOf[T num.Float](rows, count, k int, a []T, lda int, b panels[T], c []T, ldc, cnext int, add bool) {
	switch {
	case wide[T]():
		tileF64(rows, count, k, f64(a), lda, f64(b.at), b.step, b.next, f64(c), ldc, cnext, add, b.ahead)
	case b.half == nil:
		tileF32(rows, count, k, f32(a), lda, f32(b.at), b.step, b.next, f32(c), ldc, cnext, add, b.ahead)
	default:
		tileF16(rows, count, k, f32(a), lda, &b.half[0], b.step, b.next, f32(c), ldc, cnext, add, b.ahead)
	}
}

// mostRows is how many rows a tile of so many panels has, 0 if there is none.
func mostRows[T num.Float](count int) int {
	if wide[T]() {
		return tileRowsF64(count)
	}
	return tileRowsF32(count)
}

// crowded tells whether rows so far apart fall into a few sets of the cache.
func crowded[T num.Float](lda int) bool {
	var x T
	return Stride(lda, int(unsafe.Sizeof(x))) != lda
}

// multiply computes n columns of a block, the last panel being padded; k is at
// most depth, or more if rows of a are not copied. A tile of rows of a stays in the first level cache while the
// panels pass, which come from the second.
func multiply[T num.Float](c, a []T, b panels[T], m, n, k, lda, ldc int, add bool) {
	most := max(mostRows[T](2), mostRows[T](1))
	tiles := (m + most - 1) / most
	if n <= 2*Width || m < 3 || !crowded[T](lda) {
		for t := range tiles { // of nearly equal height: a low one is slow
			i, end := t*m/tiles, (t+1)*m/tiles
			across(c[i*ldc:], a[i*lda:], b, end-i, n, k, lda, ldc, add)
		}
		return
	}
	// Put the rows side by side.
	const stride = depth + Width
	var rows [maxRows * stride]T
	for t := range tiles {
		i, end := t*m/tiles, (t+1)*m/tiles
		for r := i; r < end; r++ {
			copy(rows[(r-i)*stride:][:k], a[r*lda:])
		}
		across(c[i*ldc:], rows[:], b, end-i, n, k, stride, ldc, add)
	}
}

// across computes the rows of one tile, panel by panel.
func across[T num.Float](c, a []T, b panels[T], m, n, k, lda, ldc int, add bool) {
	count, q := n/Width, 0
	for ; q+4 <= count && m <= mostRows[T](4); q += 4 {
		tileOf(m, 4, k, a, lda, b.from(q*b.next), c[q*Width:], ldc, Width, add)
	}
	for ; q+2 <= count && m <= mostRows[T](2); q += 2 {
		tileOf(m, 2, k, a, lda, b.from(q*b.next), c[q*Width:], ldc, Width, add)
	}
	for ; q < count; q++ {
		tileOf(m, 1, k, a, lda, b.from(q*b.next), c[q*Width:], ldc, Width, add)
	}
	if w := n % Width; w > 0 {
		edge(c[q*Width:], a, b.from(q*b.next), m, w, k, lda, ldc, add)
	}
}

// edge computes a panel of which only w columns exist in c.
func edge[T num.Float](c, a []T, b panels[T], m, w, k, lda, ldc int, add bool) {
	var part [maxRows * Width]T
	for r := 0; r < m && add; r++ {
		copy(part[r*Width:][:w], c[r*ldc:])
	}
	tileOf(m, 1, k, a, lda, b, part[:], Width, Width, add)
	for r := range m {
		copy(c[r*ldc:][:w], part[r*Width:])
	}
}

// rowMajor is a·b with b[k×n].
func rowMajor[T num.Float](c, a, b []T, m, n, k, lda, ldb, ldc int, add bool) {
	whole := 0
	switch {
	case m <= rawRows && n*k >= streamed:
		whole = n &^ (Width - 1)
		for i := 0; i < m && !add; i++ {
			clear(c[i*ldc:][:whole])
		}
		addStream(c, a, b, m, whole, k, lda, ldb, ldc)
	case m <= rawRows && k > 0:
		whole = n &^ (Width - 1)
		for p := 0; p < k && whole > 0; p += depth {
			d := min(depth, k-p)
			raw := panels[T]{at: b[p*ldb:], step: ldb, next: Width, ahead: near}
			multiply(c, a[p:], raw, m, whole, d, lda, ldc, add || p > 0)
		}
	}
	if whole < n || k == 0 {
		packBlocks(c[min(whole, len(c)):], a, b[min(whole, len(b)):], m, n-whole, k, lda, ldb, ldc, false, add)
	}
}

// streamed is from how many elements on b should be read row after row, as it
// lies in memory.
const streamed = 1 << 16

// addStream adds a·b to c, n a multiple of Width: four rows of b at a time, over
// so many columns that they stay in the first level cache for all rows of a.
func addStream[T num.Float](c, a, b []T, m, n, k, lda, ldb, ldc int) {
	most := 4096
	if m > 1 {
		most = 1024
	}
	for j := 0; j < n; j += most {
		w := min(most, n-j)
		p := 0
		for ; p+4 <= k; p += 4 {
			b0, b1, b2, b3 := b[p*ldb+j:], b[(p+1)*ldb+j:], b[(p+2)*ldb+j:], b[(p+3)*ldb+j:]
			_ = b3[w-1]
			for i := range m {
				x, y := a[i*lda+p:][:4], c[i*ldc+j:][:w]
				if wide[T]() {
					addRowsF64(f64(y), f64(b0), f64(b1), f64(b2), f64(b3),
						float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3]), w)
				} else {
					addRowsF32(f32(y), f32(b0), f32(b1), f32(b2), f32(b3),
						float32(x[0]), float32(x[1]), float32(x[2]), float32(x[3]), w)
				}
			}
		}
		for ; p < k; p++ {
			for i := range m {
				num.AddScaled(c[i*ldc+j:], b[p*ldb+j:][:w], a[i*lda+p])
			}
		}
	}
}

// columnMajor is a·bᵀ with b[n×k].
func columnMajor[T num.Float](c, a, b []T, m, n, k, lda, ldb, ldc int) {
	whole := 0
	if m <= rawRows && !wide[T]() {
		whole = n &^ (Width - 1)
		for j := 0; j < whole; j += Width {
			for i := 0; i < m; i += dotRows {
				dot16(c[i*ldc+j:], a[i*lda:], b[j*ldb:], min(dotRows, m-i), k, lda, ldb, ldc)
			}
		}
	}
	if whole < n {
		packBlocks(c[whole:], a, b[min(whole*ldb, len(b)):], m, n-whole, k, lda, ldb, ldc, true, false)
	}
}

// dotRows is how many rows of a share the transposed elements of b.
const dotRows = 4

// dot16 multiplies up to dotRows rows of a by 16 rows of b, a whole row at a time.
func dot16[T num.Float](c, a, b []T, m, k, lda, ldb, ldc int) {
	var part [dotRows * Width]T
	whole := k &^ 15
	_, _ = a[(m-1)*lda+k-1], b[(Width-1)*ldb+k-1]
	for p := 0; p < whole; p += unpreempted {
		n := min(unpreempted, whole-p)
		switch x, w := f32(a[p:]), f32(b[p:]); m {
		case 1:
			dot16x1F32(n, x, lda, w, ldb, f32(part[:]), p > 0)
		case 2:
			dot16x2F32(n, x, lda, w, ldb, f32(part[:]), p > 0)
		case 3:
			dot16x3F32(n, x, lda, w, ldb, f32(part[:]), p > 0)
		case 4:
			dot16x4F32(n, x, lda, w, ldb, f32(part[:]), p > 0)
		}
	}
	if rest := k - whole; rest > 0 {
		var panel [Width * Width]T
		packColumns(panel[:], b[whole:], Width, rest, ldb, 0)
		tileOf(m, 1, rest, a[whole:], lda, panels[T]{at: panel[:], step: Width}, part[:], Width, Width, true)
	}
	for i := range m {
		copy(c[i*ldc:][:Width], part[i*Width:])
	}
}

// packBlocks copies b block by block into panels and multiplies by these. b is
// n×k if transposed, else k×n.
func packBlocks[T num.Float](c, a, b []T, m, n, k, lda, ldb, ldc int, transposed, add bool) {
	if k == 0 {
		for i := 0; i < m && !add; i++ {
			clear(c[i*ldc:][:n])
		}
		return
	}
	// Clearing the buffer must not cost more than a small product.
	d := min(k, depth)
	switch all := PackedLen(n, d); {
	case all <= 1<<10:
		var buffer [1 << 10]T
		packBlocksIn(buffer[:], n, c, a, b, m, n, k, lda, ldb, ldc, transposed, add)
	case all <= 1<<13:
		var buffer [1 << 13]T
		packBlocksIn(buffer[:], n, c, a, b, m, n, k, lda, ldb, ldc, transposed, add)
	default:
		var buffer [1 << 14]T
		most := len(buffer) / d &^ (Width - 1)
		packBlocksIn(buffer[:], most, c, a, b, m, n, k, lda, ldb, ldc, transposed, add)
	}
}

// packBlocksIn is packBlocks with a buffer for so many columns.
func packBlocksIn[T num.Float](buffer []T, most int, c, a, b []T, m, n, k, lda, ldb, ldc int, transposed, add bool) {
	for j := 0; j < n; j += most {
		w := min(most, n-j)
		for p := 0; p < k; p += depth {
			d := min(depth, k-p)
			packed := panels[T]{at: buffer, step: Width, next: d * Width, ahead: near}
			if transposed {
				packColumns(buffer, b[j*ldb+p:], w, d, ldb, d*Width)
			} else {
				packRows(buffer, b[p*ldb+j:], w, d, ldb, d*Width)
			}
			multiply(c[j:], a[p:], packed, m, w, d, lda, ldc, add || p > 0)
		}
	}
}

// packedAtOnce is how many rows one call of assembly packs at most, for the reason that unpreempted has.
const packedAtOnce = 1024

// packRows copies the k×n matrix b into panels, which begin at multiples of
// next. The last one is padded with zeros.
func packRows[T num.Float](dst, b []T, n, k, ldb, next int) {
	for ; k > packedAtOnce; k -= packedAtOnce {
		packRows(dst, b, n, packedAtOnce, ldb, next)
		dst, b = dst[packedAtOnce*Width:], b[packedAtOnce*ldb:]
	}
	for n > 0 && k > 0 {
		w := Width
		switch {
		case n >= 4*Width && assembly():
			w = 4 * Width
			_, _ = dst[3*next+k*Width-1], b[(k-1)*ldb+w-1]
			if wide[T]() {
				packRows4F64(k, f64(dst), next, f64(b), ldb)
			} else {
				packRows4F32(k, f32(dst), next, f32(b), ldb)
			}
		case n >= Width && assembly():
			_, _ = dst[k*Width-1], b[(k-1)*ldb+w-1]
			if wide[T]() {
				packRows1F64(k, f64(dst), next, f64(b), ldb)
			} else {
				packRows1F32(k, f32(dst), next, f32(b), ldb)
			}
		default:
			w = min(n, Width)
			p := 0
			for ; p < k && p*ldb+Width <= len(b); p++ { // one copy of a known size, then zeros over what is too much
				row := (*[Width]T)(dst[p*Width:])
				*row = *(*[Width]T)(b[p*ldb:])
				for j := w; j < Width; j++ {
					row[j] = 0
				}
			}
			for ; p < k; p++ {
				row := dst[p*Width:][:Width]
				clear(row[copy(row, b[p*ldb:][:w]):])
			}
		}
		if n -= w; n > 0 {
			b, dst = b[w:], dst[w/Width*next:]
		}
	}
}

// packColumns copies the n×k matrix b, transposed, into panels.
func packColumns[T num.Float](dst, b []T, n, k, ldb, next int) {
	for n > 0 && k > 0 {
		w := min(n, Width)
		done := 0
		if !wide[T]() && w == Width && assembly() {
			done = k &^ 15
			_, _ = dst[k*Width-1], b[(Width-1)*ldb+k-1]
			for p := 0; p < done; p += unpreempted {
				pack16F32(min(unpreempted, done-p), f32(dst[p*Width:]), f32(b[p:]), ldb)
			}
		}
		for p := done; p < k; p++ {
			row := dst[p*Width:][:Width]
			for j := range w {
				row[j] = b[j*ldb+p]
			}
			clear(row[w:])
		}
		if n -= w; n > 0 {
			b, dst = b[Width*ldb:], dst[next:]
		}
	}
}
