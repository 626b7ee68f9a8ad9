package gemm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/half"
	"github.com/fucina-go/fucina/kernels/num"
)

// halves returns rows of values of f16, with guard values between the rows, and what they stand for.
func halves(r *rand.Rand, rows, cols, stride int) ([]uint16, []float32) {
	wide := matrix[float32](r, rows, cols, stride)
	x := make([]uint16, len(wide))
	half.ToF16(x, wide)
	half.FromF16(wide, x)
	return x, wide
}

// checkHalf compares the products by a packed 16-bit matrix in every tier with the definition, bit by bit.
func checkHalf(t *testing.T, r *rand.Rand, m, n, k, pad int) {
	t.Helper()
	lda, ldb, ldc := k+pad, k+3*pad, n+2*pad
	a, start := matrix[float32](r, m, k, lda), matrix[float32](r, m, n, ldc)
	b, wide := halves(r, n, k, ldb)
	for _, add := range []bool{false, true} {
		want := append([]float32{}, start...)
		for i := range m {
			for j := range n {
				acc := float32(0)
				if add {
					acc = start[i*ldc+j]
				}
				for p := range k {
					acc = num.FMA(a[i*lda+p], wide[j*ldb+p], acc)
				}
				want[i*ldc+j] = acc
			}
		}
		for _, tier := range cpu.Tiers() {
			restore, _ := cpu.Force(tier)
			packed := make([]uint16, PackedLen(n, k)+16)
			for i := range packed {
				packed[i] = guard
			}
			PackHalf(packed[:PackedLen(n, k)], b, n, k, ldb)
			got := append([]float32{}, start...)
			PackedHalf(got, a, packed[:PackedLen(n, k)], m, n, k, lda, ldc, add)
			for i, w := range want {
				if got[i] != w {
					t.Fatalf("%s: m %d, n %d, k %d, padding %d, add %t: element %d is %v, want %v",
						tier, m, n, k, pad, add, i, got[i], w)
				}
			}
			checkPanels(t, packed, start, a, got, m, n, k, lda, ldc, add)
			if packed[PackedLen(n, k)] != guard {
				t.Fatalf("n %d, k %d: packing wrote behind the end", n, k)
			}
			restore()
		}
	}
}

// checkPanels multiplies by the packed matrix as panels further apart, as it is and widened.
func checkPanels(t *testing.T, packed []uint16, start, a, want []float32, m, n, k, lda, ldc int, add bool) {
	t.Helper()
	next := (k + 3) * Width
	b := Panels[float32]{Half: make([]uint16, (n+Width-1)/Width*next+Width), Next: next}
	for i := range b.Half {
		b.Half[i] = guard
	}
	for j := 0; j < n; j += Width {
		copy(b.Half[j/Width*next+Width:], packed[j*k:][:k*Width])
	}
	b = b.From(1, 0)
	wide := b.Widen(make([]float32, PackedLen(n, k)), n, k)
	for _, b := range []Panels[float32]{b, wide} {
		got := append([]float32{}, start...)
		b.Multiply(got, a, m, n, k, lda, ldc, add)
		for i, w := range want {
			if got[i] != w {
				t.Fatalf("panels: m %d, n %d, k %d, add %t: element %d is %v, want %v",
					m, n, k, add, i, got[i], w)
			}
		}
	}
	room := append(make([]float32, PackedLen(n, k)), guard)
	b.Ahead = 1 << 20
	got := append([]float32{}, start...)
	left := b.MultiplyWiden(room, got, a, m, n, k, lda, ldc, add)
	for i, w := range want {
		if got[i] != w {
			t.Fatalf("widening: m %d, n %d, k %d, add %t: element %d is %v, want %v", m, n, k, add, i, got[i], w)
		}
	}
	if !slices.Equal(left.At, wide.At) || left.Next != wide.Next || room[len(room)-1] != guard {
		t.Fatalf("widening: m %d, n %d, k %d: other panels are left behind than Widen makes", m, n, k)
	}
}

func TestPackedHalfEqualsTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	step := 1
	if testing.Short() {
		step = 5
	}
	for k := 0; k < 71; k += step {
		checkHalf(t, r, 1+k%6, 2+k%19, k, k%3)
	}
	for n := 0; n < 81; n += step {
		checkHalf(t, r, 1+n%5, n, 5+n%9, n%2)
	}
	for m := 0; m < 27; m++ {
		checkHalf(t, r, m, 33+m, 7, 1)
		checkHalf(t, r, m, 64+16*(m%5), 9, 0)
	}
	checkHalf(t, r, 100, 47, 261, 3) // more than one block of every kind
	checkHalf(t, r, 30, 300, 523, 0)
	checkHalf(t, r, 13, 33, unpreempted+37, 0)
	checkHalf(t, r, 5, 530, 40, 0)
	checkHalf(t, r, 2, 81, unpreempted+37, 0) // more than one call of assembly
}

// TestEveryHalfInAProduct takes every value of f16 but NaN through the panels of both ways to read them.
func TestEveryHalfInAProduct(t *testing.T) {
	const n = 1 << 16
	b := make([]uint16, n)
	for i := range b {
		b[i] = uint16(i)
	}
	want := make([]float32, n)
	half.FromF16(want, b)
	packed := make([]uint16, PackedLen(n, 1))
	PackHalf(packed, b, n, 1, 1)
	for _, tier := range cpu.Tiers() {
		restore, _ := cpu.Force(tier)
		for _, m := range []int{1, 5} {
			got := make([]float32, m*n)
			PackedHalf(got, []float32{1, 1, 1, 1, 1}, packed, m, n, 1, 1, n, false)
			for i, v := range got {
				if w := want[i%n]; v != w && (v == v || w == w) {
					t.Fatalf("%s, %d rows: %#04x is %v, want %v", tier, m, i%n, v, w)
				}
			}
		}
		restore()
	}
}

func TestPackedHalfNeedsWholeSlices(t *testing.T) {
	const m, n, k = 2, 20, 30
	for name, f := range map[string]func(c, a []float32, b, packed []uint16){
		"b":      func(_, _ []float32, b, packed []uint16) { PackHalf(packed, b[1:], n, k, k) },
		"dst":    func(_, _ []float32, b, packed []uint16) { PackHalf(packed[1:], b, n, k, k) },
		"c":      func(c, a []float32, _, packed []uint16) { PackedHalf(c[1:], a, packed, m, n, k, k, n, false) },
		"a":      func(c, a []float32, _, packed []uint16) { PackedHalf(c, a[1:], packed, m, n, k, k, n, false) },
		"packed": func(c, a []float32, _, packed []uint16) { PackedHalf(c, a, packed[1:], m, n, k, k, n, false) },
	} {
		for _, tier := range cpu.Tiers() {
			restore, _ := cpu.Force(tier)
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s, tier %s: a slice that is too short does not panic", name, tier)
					}
				}()
				size := PackedLen(n, k)
				f(make([]float32, m*n), make([]float32, m*k), make([]uint16, n*k), make([]uint16, size)[:size:size])
			}()
			restore()
		}
	}
}

// BenchmarkHalf multiplies by 16-bit matrices, beside float32 ones. The matrices of one row come from memory.
func BenchmarkHalf(b *testing.B) {
	const n, k, matrices = 4096, 4096, 6
	r := rand.New(rand.NewPCG(1, 2))
	weights, wide := make([]uint16, matrices*n*k), make([]float32, matrices/2*n*k)
	for i := range weights {
		weights[i] = 0x3c00 + uint16(i&0xff)
	}
	for i := range wide {
		wide[i] = float32(i & 0xff)
	}
	for _, m := range []int{1, 4, 8, 48, 240} {
		a, c, rounded := matrix[float32](r, m, k, k), make([]float32, m*n), make([]uint16, m*Stride(k, 2))
		for i := range m {
			half.ToBF16(rounded[i*Stride(k, 2):], a[i*k:][:k])
		}
		i := 0
		name := fmt.Sprintf("%dx%dx%d", m, n, k)
		run := func(name string, bytes int, f func(i int)) {
			b.Run(name, func(b *testing.B) {
				b.SetBytes(int64(bytes))
				for b.Loop() {
					f(i)
					i++
				}
				b.ReportMetric(2*float64(m)*n*k*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
		for _, tier := range cpu.Tiers()[1:] {
			restore, _ := cpu.Force(tier)
			run(fmt.Sprintf("f16/%s/%s", name, tier), 2*n*k, func(i int) {
				PackedHalf(c, a, weights[i%matrices*n*k:][:n*k], m, n, k, k, n, false)
			})
			run(fmt.Sprintf("bf16/%s/%s", name, tier), 2*n*k, func(i int) {
				BF16(c, rounded, weights[i%matrices*n*k:][:n*k], k*Width, m, n, k, Stride(k, 2), n, false)
			})
			run(fmt.Sprintf("f32/%s/%s", name, tier), 4*n*k, func(i int) {
				Packed(c, a, wide[i%(matrices/2)*n*k:][:n*k], m, n, k, k, n, false)
			})
			restore()
		}
	}
	b.Run("pack", func(b *testing.B) {
		b.SetBytes(2 * n * k)
		for b.Loop() {
			PackHalf(weights[:n*k], weights[n*k:], n, k, k)
		}
	})
}
