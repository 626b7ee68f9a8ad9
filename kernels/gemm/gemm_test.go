package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/num"
	"pgregory.net/rapid"
)

const guard = 12345

// matrix returns rows of random values, with guard values between and around
// the rows. The slice starts at the first row.
func matrix[T num.Float](r *rand.Rand, rows, cols, stride int) []T {
	x := make([]T, rows*stride+17)
	for i := range x {
		x[i] = guard
	}
	for i := range rows {
		for j := range cols {
			x[i*stride+j] = T(r.NormFloat64())
		}
	}
	return x
}

// check compares the products of every tier with the definition, bit by bit.
func check[T num.Float](t rapid.TB, r *rand.Rand, m, n, k, pad int) {
	t.Helper()
	lda, ldb, ldt, ldc := k+pad, n+2*pad, k+3*pad, n+pad
	a, b, bT := matrix[T](r, m, k, lda), matrix[T](r, k, n, ldb), make([]T, n*ldt+17)
	want := matrix[T](r, m, n, ldc)
	start := append([]T{}, want...)
	sum := append([]T{}, want...)
	for j := range n {
		for p := range k {
			bT[j*ldt+p] = b[p*ldb+j]
		}
		for i := range m {
			var acc T
			more := start[i*ldc+j]
			for p := range k {
				acc = num.FMA(a[i*lda+p], b[p*ldb+j], acc)
				more = num.FMA(a[i*lda+p], b[p*ldb+j], more)
			}
			want[i*ldc+j], sum[i*ldc+j] = acc, more
		}
	}
	for _, tier := range cpu.Tiers() {
		restore, _ := cpu.Force(tier)
		packed := guarded[T](PackedLen(n, k))
		again := guarded[T](PackedLen(n, k))
		for name, c := range map[string]struct {
			f    func(c []T)
			want []T
		}{
			"NN":    {func(c []T) { NN(c, a, b, m, n, k, lda, ldb, ldc) }, want},
			"NT":    {func(c []T) { NT(c, a, bT, m, n, k, lda, ldt, ldc) }, want},
			"AddNN": {func(c []T) { AddNN(c, a, b, m, n, k, lda, ldb, ldc) }, sum},
			"Packed": {func(c []T) {
				PackNN(packed, b, n, k, ldb, k*Width)
				Packed(c, a, packed, m, n, k, lda, ldc, false)
			}, want},
			"Packed, added": {func(c []T) {
				PackNT(again, bT, n, k, ldt, k*Width)
				Packed(c, a, again, m, n, k, lda, ldc, true)
			}, sum},
			"Panels": {func(c []T) {
				PackNN(packed, b, n, k, ldb, k*Width)
				spread(packed, n, k).From(2, 0).Multiply(c, a, m, n, k, lda, ldc, false)
			}, want},
			"Panels, added": {func(c []T) {
				PackNN(packed, b, n, k, ldb, k*Width)
				for j := 0; m > 0 && j < n; j += Width { // panel by panel
					spread(packed, n, k).From(2, j/Width).Multiply(c[j:], a, m, min(Width, n-j), k, lda, ldc, true)
				}
			}, sum},
		} {
			got := append([]T{}, start...)
			c.f(got)
			for i, w := range c.want {
				if got[i] != w {
					t.Fatalf("%s, %s: m %d, n %d, k %d, padding %d: element %d is %v, want %v",
						tier, name, m, n, k, pad, i, got[i], w)
				}
			}
		}
		for i, v := range packed {
			if again[i] != v {
				t.Fatalf("%s: n %d, k %d: element %d packed from rows is %v, from columns %v",
					tier, n, k, i, v, again[i])
			}
		}
		for _, x := range [][]T{packed, again} {
			if x := x[:cap(x)]; len(x) > PackedLen(n, k) && x[PackedLen(n, k)] != guard {
				t.Fatalf("%s: n %d, k %d: packing wrote behind the end", tier, n, k)
			}
		}
		restore()
	}
}

// spread is a packed matrix with rows of guard values around each panel.
func spread[T num.Float](packed []T, n, k int) Panels[T] {
	next := (k + 5) * Width
	b := Panels[T]{At: make([]T, (n+Width-1)/Width*next+2*Width), Next: next}
	for i := range b.At {
		b.At[i] = guard
	}
	for q := range (n + Width - 1) / Width {
		copy(b.At[q*next+2*Width:], packed[q*k*Width:][:k*Width])
	}
	return b
}

// guarded is a slice with guard values behind its end.
func guarded[T num.Float](n int) []T {
	x := make([]T, n+16)
	for i := range x {
		x[i] = guard
	}
	return x[:n]
}

func TestProductsEqualTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	step := 1
	if testing.Short() {
		step = 5
	}
	for k := 0; k < 71; k += step {
		check[float32](t, r, 3, 2+k%19, k, k%3)
		check[float64](t, r, 2, 2+k%19, k, k%3)
	}
	for n := range 71 {
		check[float32](t, r, 2, n, 5+n%9, n%2)
		check[float64](t, r, 1, n, 5+n%9, n%2)
	}
	for m := range 27 {
		check[float32](t, r, m, 33+m, 7, 1)
		check[float64](t, r, m, 33+m, 6, 1)
		check[float32](t, r, m, 64+16*(m%5), 9, 0)
		check[float64](t, r, m, 64+16*(m%5), 9, 0)
	}
	check[float32](t, r, 3, 1031, 133, 0) // beyond one block of NN
	check[float32](t, r, 1, 2100, 21, 0)
	check[float32](t, r, 14, 49, 531, 3)
	check[float32](t, r, 390, 35, 261, 0)
	check[float64](t, r, 390, 19, 259, 0)
	check[float32](t, r, 2, 81, unpreempted+37, 0) // more than one call of assembly
	check[float64](t, r, 2, 2050, 65, 1)
	check[float32](t, r, 1, 97, 2*packedAtOnce+3, 0)
	check[float64](t, r, 1, 23, packedAtOnce+3, 1)
	check[float32](t, r, 0, 8, 8, 0)
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		size := rapid.IntRange(0, 40)
		m, n, k, pad := size.Draw(t, "m"), size.Draw(t, "n"), size.Draw(t, "k"), rapid.IntRange(0, 3).Draw(t, "pad")
		check[float32](t, r, m, n, k, pad)
		check[float64](t, r, m, n, k, pad)
	})
}

func TestLastRowsNeedNoPadding(t *testing.T) {
	// The slices end with the last element of the last row.
	const m, n, k = 3, 11, 5
	r := rand.New(rand.NewPCG(3, 4))
	a, b, bT := matrix[float32](r, m, k, 7), matrix[float32](r, k, n, 13), matrix[float32](r, n, k, 6)
	c := make([]float32, 2*20+n)
	NN(c, a[:2*7+k], b[:4*13+n], m, n, k, 7, 13, 20)
	NT(c, a[:2*7+k], bT[:10*6+k], m, n, k, 7, 6, 20)
}

func TestShortSlicesPanic(t *testing.T) {
	const m, n, k = 4, 20, 30
	full := func(rows, cols int) []float32 { return make([]float32, rows*cols) }
	for name, f := range map[string]func(){
		"NN, a":     func() { NN(full(m, n), full(m, k)[1:], full(k, n), m, n, k, k, n, n) },
		"NN, b":     func() { NN(full(m, n), full(m, k), full(k, n)[1:], m, n, k, k, n, n) },
		"AddNN, c":  func() { AddNN(full(m, n)[1:], full(m, k), full(k, n), m, n, k, k, n, n) },
		"NT, b":     func() { NT(full(m, n), full(m, k), full(n, k)[1:], m, n, k, k, k, n) },
		"NT, c":     func() { NT(full(m, n)[1:], full(m, k), full(n, k), m, n, k, k, k, n) },
		"PackNN":    func() { PackNN(full(k, 2*Width), full(k, n)[1:], n, k, n, k*Width) },
		"PackNT":    func() { PackNT(full(k, 2*Width)[1:], full(n, k), n, k, k, k*Width) },
		"Packed":    func() { Packed(full(m, n), full(m, k), full(k, 2*Width)[1:], m, n, k, k, n, false) },
		"Packed, a": func() { Packed(full(m, n), full(m, k)[1:], full(k, 2*Width), m, n, k, k, n, false) },
	} {
		for _, tier := range cpu.Tiers() {
			restore, _ := cpu.Force(tier)
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s, tier %s: a slice that is too short does not panic", name, tier)
					}
				}()
				f()
			}()
			restore()
		}
	}
}

func TestNaNAndInfinityGoThrough(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, f := range []func(c, a, b []float32, m, n, k, lda, ldb, ldc int){NN[float32], NT[float32]} {
		c := make([]float32, 1)
		if f(c, []float32{0, 1}, []float32{inf, 1}, 1, 1, 2, 2, 1, 1); c[0] == c[0] {
			t.Errorf("0·∞ + 1 is %v", c[0])
		}
		if f(c, []float32{1, 1}, []float32{inf, 1}, 1, 1, 2, 2, 1, 1); c[0] != inf {
			t.Errorf("∞ + 1 is %v", c[0])
		}
	}
}

// TestPackPart packs every part of a panel's columns, alone and beside another one, from slices that end with it.
func TestPackPart(t *testing.T) {
	t.Run("float32", testPackPart[float32])
	t.Run("float64", testPackPart[float64])
}

func testPackPart[T num.Float](t *testing.T) {
	const rows, to, from = 3, 2*Width + 1, 20
	src := make([]T, rows*from)
	for i := range src {
		src[i] = T(i + 1)
	}
	for _, tier := range cpu.Tiers() {
		restore, _ := cpu.Force(tier)
		for at := range Width + 1 {
			for n := range Width + 1 - at {
				dst := make([]T, (rows-1)*to+Width+1)
				for i := range dst {
					dst[i] = guard
				}
				PackPart(dst, src[len(src)-(rows-1)*from-n:], n, rows, to, from, at, false)
				PackPart(dst, src[:(rows-1)*from+at], at, rows, to, from, 0, true)
				for i, v := range dst {
					want := T(guard)
					switch r, j := i/to, i%to; {
					case j >= Width:
					case j < at:
						want = src[r*from+j]
					case j < at+n:
						want = src[len(src)-(rows-1)*from-n+r*from+j-at]
					default:
						want = 0
					}
					if v != want {
						t.Fatalf("%s: %d columns from %d on: element %d is %v, want %v", tier, n, at, i, v, want)
					}
				}
			}
		}
		restore()
	}
}

// eachTier runs f as a benchmark in every tier, f does so many multiplications.
func eachTier(b *testing.B, name string, products int, f func()) {
	for _, tier := range cpu.Tiers() {
		b.Run(name+"/"+tier.String(), func(b *testing.B) {
			restore, _ := cpu.Force(tier)
			defer restore()
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
			b.ReportMetric(2*float64(products)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

// TestPeak runs the loop in every tier.
func TestPeak(t *testing.T) {
	for _, tier := range cpu.Tiers() {
		restore, _ := cpu.Force(tier)
		if n := Peak(3); n != 3*2*peakPairs {
			t.Errorf("%s: three turns are %d operations, want %d", tier, n, 3*2*peakPairs)
		}
		restore()
	}
}

// BenchmarkPeak is the inner loop on data of the first level cache: what the
// others may be compared with.
func BenchmarkPeak(b *testing.B) {
	b.Run("float32", benchmarkPeak[float32])
	b.Run("float64", benchmarkPeak[float64])
}

func benchmarkPeak[T num.Float](b *testing.B) {
	const m, n, k = 12, 32, 120
	a, packed, c := make([]T, m*k), make([]T, n*k), make([]T, m*n)
	eachTier(b, "", m*n*k, func() { Packed(c, a, packed, m, n, k, k, n, false) })
}

func BenchmarkProduct(b *testing.B) {
	for _, s := range []struct{ m, n, k int }{
		{1, 4096, 4096}, {4, 4096, 4096}, {8, 8, 8}, {64, 64, 64}, {256, 256, 256}, {512, 512, 512},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		x, y, c := matrix[float32](r, s.m, s.k, s.k), matrix[float32](r, s.n, s.k, s.k), make([]float32, s.m*s.n)
		packed := make([]float32, PackedLen(s.n, s.k))
		PackNT(packed, y, s.n, s.k, s.k, s.k*Width)
		size := fmt.Sprintf("%dx%dx%d", s.m, s.n, s.k)
		eachTier(b, "NN/"+size, s.m*s.n*s.k, func() { NN(c, x, y, s.m, s.n, s.k, s.k, s.n, s.n) })
		eachTier(b, "NT/"+size, s.m*s.n*s.k, func() { NT(c, x, y, s.m, s.n, s.k, s.k, s.k, s.n) })
		eachTier(b, "Packed/"+size, s.m*s.n*s.k, func() { Packed(c, x, packed, s.m, s.n, s.k, s.k, s.n, false) })
	}
}

func BenchmarkPack(b *testing.B) {
	const n, k = 512, 512
	src, dst := make([]float32, n*k), make([]float32, PackedLen(n, k))
	for _, tier := range cpu.Tiers() {
		for name, f := range map[string]func(){
			"NN": func() { PackNN(dst, src, n, k, n, k*Width) }, "NT": func() { PackNT(dst, src, n, k, k, k*Width) },
		} {
			b.Run(name+"/"+tier.String(), func(b *testing.B) {
				restore, _ := cpu.Force(tier)
				defer restore()
				b.SetBytes(4 * n * k)
				for b.Loop() {
					f()
				}
			})
		}
	}
}

func TestTranspose(t *testing.T) {
	t.Run("float32", testTranspose[float32])
	t.Run("float64", testTranspose[float64])
}

func testTranspose[T num.Float](t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, rows := range []int{0, 1, 15, 16, 17, 255, 257} {
		for _, cols := range []int{0, 1, 7, 16, 33} {
			src := matrix[T](r, cols, rows, rows+3)
			const guard = 777
			dst := make([]T, rows*(cols+2)+1)
			for i := range dst {
				dst[i] = guard
			}
			Transpose(dst, src, rows, cols, cols+2, rows+3)
			for i, v := range dst {
				want := T(guard)
				if r, c := i/(cols+2), i%(cols+2); r < rows && c < cols {
					want = src[c*(rows+3)+r]
				}
				if v != want {
					t.Fatalf("%d×%d: element %d is %v, want %v", rows, cols, i, v, want)
				}
			}
		}
	}
}
