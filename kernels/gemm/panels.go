package gemm

import (
	"unsafe"

	"github.com/fucina-go/fucina/kernels/half"
	"github.com/fucina-go/fucina/kernels/num"
)

// Panels is some rows of a packed matrix b: element j of row p of panel q is element q·Next + p·Width + j. They lie in
// At, or, as f16, in Half; then T is float32.
type Panels[T num.Float] struct {
	At   []T
	Half []uint16
	Next int

	// Ahead is how many bytes behind what few rows multiply memory is fetched meanwhile: the way to what will be
	// multiplied next. 0 stands for a little further on.
	Ahead int
}

// Stride is how far from one another, in elements of so many bytes, rows of k should begin if many of them are to stay
// in the cache together: k, or a line more.
func Stride(k, size int) int {
	const line, set = 64, 1024 // bytes of the cache; what is so far apart falls into a few places of it
	if k == 0 || k*size%set != 0 {
		return k
	}
	return k + line/size
}

// From is the panels from row p on, and from panel q on.
func (b Panels[T]) From(p, q int) Panels[T] {
	if i := q*b.Next + p*Width; b.Half != nil {
		b.Half = b.Half[i:]
	} else {
		b.At = b.At[i:]
	}
	return b
}

// Multiply computes c[m×n] = a[m×k]·b, or c += a·b if add, with the first k rows of b: the bits are those of Packed
// and PackedHalf.
func (b Panels[T]) Multiply(c, a []T, m, n, k, lda, ldc int, add bool) {
	if m == 0 || n == 0 {
		return
	}
	end := (n-1)/Width*b.Next + k*Width
	switch {
	case k > 0 && assembly():
		_, _ = c[(m-1)*ldc+n-1], a[(m-1)*lda+k-1] // the assembly checks no bounds
		all := panels[T]{step: Width, next: b.Next, ahead: b.Ahead}
		if all.ahead == 0 {
			all.ahead = near
		}
		if b.Half != nil {
			all.half = b.Half[:end]
		} else {
			all.at = b.At[:end]
		}
		multiplyPacked(c, a, all, m, n, k, lda, ldc, add)
	case b.Half != nil:
		plainHalf(singles(c), singles(a), b.Half[:end], b.Next, m, n, k, lda, ldc, add)
	default:
		plainPacked(c, a, b.At[:end], b.Next, m, n, k, lda, ldc, add)
	}
}

// Widen is the first k rows of n columns as numbers of T, exactly: as they lie, or, those of f16, in room, which
// has PackedLen(n, k) elements.
func (b Panels[T]) Widen(room []T, n, k int) Panels[T] {
	if b.Half == nil {
		return b
	}
	for j := 0; j < n; j += Width {
		half.FromF16(singles(room[j*k:][:k*Width]), b.Half[j/Width*b.Next:][:k*Width])
	}
	return Panels[T]{At: room, Next: k * Width}
}

// singles is x, whose elements are float32.
func singles[T num.Float](x []T) []float32 {
	if wide[T]() {
		panic("gemm: 16-bit elements by float64")
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}
