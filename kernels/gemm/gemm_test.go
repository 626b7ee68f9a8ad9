package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

const guard = 12345

// matrix returns rows of random values, with guard values between and around
// the rows. The slice starts at the first row.
func matrix[T Float](r *rand.Rand, rows, cols, stride int) []T {
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

// check compares NN and NT with the definition, bit by bit.
func check[T Float](t rapid.TB, r *rand.Rand, m, n, k, pad int) {
	t.Helper()
	lda, ldb, ldt, ldc := k+pad, n+2*pad, k+3*pad, n+pad
	a, b, bT := matrix[T](r, m, k, lda), matrix[T](r, k, n, ldb), make([]T, n*ldt+17)
	want := matrix[T](r, m, 0, ldc)
	for j := range n {
		for p := range k {
			bT[j*ldt+p] = b[p*ldb+j]
		}
		for i := range m {
			var acc T
			for p := range k {
				acc = T(a[i*lda+p]*b[p*ldb+j]) + acc
			}
			want[i*ldc+j] = acc
		}
	}
	nn, nt := matrix[T](r, m, n, ldc), matrix[T](r, m, n, ldc)
	NN(nn, a, b, m, n, k, lda, ldb, ldc)
	NT(nt, a, bT, m, n, k, lda, ldt, ldc)
	for i, w := range want {
		if nn[i] != w || nt[i] != w {
			t.Fatalf("m %d, n %d, k %d, padding %d: element %d is %v (NN) and %v (NT), want %v",
				m, n, k, pad, i, nn[i], nt[i], w)
		}
	}
}

func TestProductsEqualTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for k := range 71 {
		check[float32](t, r, 3, 2+k%19, k, k%3)
		check[float64](t, r, 2, 2+k%19, k, k%3)
	}
	for n := range 71 {
		check[float32](t, r, 2, n, 5+n%9, n%2)
		check[float64](t, r, 1, n, 5+n%9, n%2)
	}
	check[float32](t, r, 3, 1031, 133, 0) // beyond one block of NN
	check[float64](t, r, 2, 2050, 65, 1)
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

func BenchmarkProduct(b *testing.B) {
	for _, s := range []struct{ m, n, k int }{{1, 1024, 1024}, {64, 1024, 1024}, {256, 256, 256}} {
		r := rand.New(rand.NewPCG(1, 2))
		x, y, c := matrix[float32](r, s.m, s.k, s.k), matrix[float32](r, s.n, s.k, s.k), make([]float32, s.m*s.n)
		for _, f := range []struct {
			name string
			f    func()
		}{
			{"NN", func() { NN(c, x, y, s.m, s.n, s.k, s.k, s.n, s.n) }},
			{"NT", func() { NT(c, x, y, s.m, s.n, s.k, s.k, s.k, s.n) }},
		} {
			b.Run(fmt.Sprintf("%s/%dx%dx%d", f.name, s.m, s.n, s.k), func(b *testing.B) {
				for b.Loop() {
					f.f()
				}
				flop := 2 * float64(s.m*s.n*s.k) * float64(b.N)
				b.ReportMetric(flop/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
