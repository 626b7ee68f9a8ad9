package gemm

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/half"
	"pgregory.net/rapid"
)

// exactly is x·y + z rounded once, as BF16 says, by numbers of any length: in exact arithmetic, to 24 bits of any
// exponent, and then to 0 if that is below the least normal number. None of the three is infinite or NaN.
func exactly(x, y, z float32) float32 {
	number := func(x float32) *big.Float {
		if math.Abs(float64(x)) < 0x1p-126 {
			x = float32(math.Copysign(0, float64(x)))
		}
		return new(big.Float).SetPrec(800).SetFloat64(float64(x))
	}
	product := number(x)
	product.Mul(product, number(y))
	sum := new(big.Float).SetPrec(800).SetMode(big.ToNearestEven).Add(product, number(z))
	rounded := new(big.Float).SetMode(big.ToNearestEven).SetPrec(24).Set(sum)
	if rounded.MantExp(nil) < -125 { // below 2⁻¹²⁶, 0 included
		if sum.Signbit() {
			return float32(math.Copysign(0, -1))
		}
		return 0
	}
	f, _ := rounded.Float32()
	return f
}

// bf16Tiers calls f in each tier, and in AVX-512 with and without the instruction for pairs.
func bf16Tiers(f func(name string)) {
	for _, tier := range cpu.Tiers() {
		restore, _ := cpu.Force(tier)
		f(tier.String())
		if cpu.Has(cpu.AVX512BF16) {
			regain := cpu.Forgo(cpu.AVX512BF16)
			f(tier.String() + " without VDPBF16PS")
			regain()
		}
		restore()
	}
}

// brink is values of which sums of products come near to 2⁻¹²⁶, and others at the ends of what there is.
func brink(r *rand.Rand) (a, b uint16) {
	sign := func() uint16 { return uint16(r.IntN(2)) << 15 }
	few := []uint16{0, 1, 0x7f, 0x40, 0x80, 0xff, 0x3f80, 0x3f81, 0x7f7f}
	if r.IntN(4) == 0 {
		return few[r.IntN(len(few))] | sign(), few[r.IntN(len(few))] | sign()
	}
	e := 1 + r.IntN(120)
	other := 127 + 127 - 126 - r.IntN(27) + r.IntN(3) - e // the product is from 2⁻¹⁵² to 2⁻¹²⁴ or so
	fraction := func() uint16 { return uint16(r.IntN(128)) & uint16(r.IntN(128)) & uint16(r.IntN(128)) }
	return uint16(e)<<7 | fraction() | sign(), uint16(max(0, other))<<7 | fraction() | sign()
}

func TestAddNormalIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	wide := func(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
	flushed, least := 0, 0
	try := func(x, y, z float32) {
		got := addNormal(normal(x), normal(y), normal(z))
		want := exactly(x, y, z)
		if math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%g · %g + %g is %g, want %g", x, y, z, got, want)
		}
		if want == 0 && x != 0 && y != 0 {
			flushed++
		}
		if math.Abs(float64(want)) == 0x1p-126 {
			least++
		}
	}
	for range 200_000 {
		a, b := brink(r)
		z := math.Float32frombits(uint32(r.IntN(2))<<31 | uint32(1+r.IntN(3))<<23 | uint32(r.IntN(4)))
		try(wide(a), wide(b), z)
		try(wide(a), wide(b), float32(math.Copysign(0, float64(z))))
		try(wide(a), wide(b), -float32(wide(a)*wide(b)))
	}
	// Just below 2⁻¹²⁶: what is nearer to it than to the number of 24 bits before it, the tie, and what is not.
	for _, below := range []float32{0x1p-152, 0x1p-151, 0x1.02p-151, 0x1.8p-151, 0x1p-150, 0x1p-149, 0x1p-140} {
		for _, sign := range []float32{1, -1} {
			try(float32(-sign*below*0x1p100), 0x1p-100, float32(sign*0x1p-126))
		}
	}
	if flushed < 1000 || least < 1000 {
		t.Errorf("%d sums became 0, %d the least number: the test misses its object", flushed, least)
	}
}

// TestLeastNumbers takes the sums that come near to 2⁻¹²⁶ through every tier, and what is not finite.
func TestLeastNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	nan, inf := uint16(0x7fc0), uint16(0x7f80)
	for turn := range 300 {
		m, n, k := 1+r.IntN(13), 1+r.IntN(70), 1+r.IntN(9)
		a, b, start := make([]uint16, m*k), make([]uint16, n*k), make([]float32, m*n)
		for p := range k {
			for i := range m {
				a[i*k+p], _ = brink(r)
			}
			for j := range n { // what makes small products with some row
				x, y := brink(r)
				if b[j*k+p] = y; r.IntN(2) == 0 {
					e := int(a[r.IntN(m)*k+p] >> 7 & 255)
					b[j*k+p] = y&0x807f | uint16(min(254, max(0, 128-e-r.IntN(27)))<<7)
				}
				if turn%10 == 9 && r.IntN(50) == 0 {
					b[j*k+p] = []uint16{nan, inf, inf | 1<<15}[x%3]
				}
			}
		}
		for i := range start {
			start[i] = math.Float32frombits(uint32(r.IntN(2))<<31 | uint32(r.IntN(3))<<23 | uint32(r.IntN(3)))
		}
		for _, add := range []bool{false, true} {
			checkBF16(t, a, b, start, m, n, k, k, k, n, add)
		}
	}
}

// checkBF16 compares the products of every tier with the definition, element by element, bit by bit.
func checkBF16(t rapid.TB, a, b []uint16, start []float32, m, n, k, lda, ldb, ldc int, add bool) {
	t.Helper()
	want := append([]float32{}, start...)
	for i := range m {
		for j := range n {
			acc := float32(0)
			if add {
				acc = normal(start[i*ldc+j])
			}
			for p := 0; p < k; p += 2 {
				x, y := float32(0), float32(0)
				if p+1 < k {
					x, y = fromBF16(a[i*lda+p+1]), fromBF16(b[j*ldb+p+1])
				}
				acc = addNormal(fromBF16(a[i*lda+p]), fromBF16(b[j*ldb+p]), addNormal(x, y, acc))
			}
			want[i*ldc+j] = acc
		}
	}
	same := func(name string, got []float32) {
		for i, w := range want {
			if math.Float32bits(got[i]) != math.Float32bits(w) && (w == w || got[i] == got[i]) {
				t.Fatalf("%s: m %d, n %d, k %d, add %t: element %d is %g (%#x), want %g (%#x)", name, m, n, k, add, i,
					got[i], math.Float32bits(got[i]), w, math.Float32bits(w))
			}
		}
	}
	bf16Tiers(func(name string) {
		packed := make([]uint16, PackedLen(n, k)+16)
		for i := range packed {
			packed[i] = guard
		}
		size := PackedLen(n, k)
		PackBF16(packed[:size], b, n, k, ldb)
		for i, v := range packed[size:] {
			if v != guard {
				t.Fatalf("%s: n %d, k %d: packing wrote %d elements behind the end", name, n, k, i+1)
			}
		}
		row := make([]uint16, k)
		for j := range n {
			RowBF16(row, packed[j/Width*Width*k:], j%Width)
			for p, v := range row {
				if v != b[j*ldb+p] {
					t.Fatalf("%s: n %d, k %d: element %d of column %d is unpacked as %#x, want %#x", name, n, k, p, j,
						v, b[j*ldb+p])
				}
			}
		}
		got := append([]float32{}, start...)
		BF16(got, a, packed[:size], k*Width, m, n, k, lda, ldc, add)
		same(name, got)
		// In two parts, of panels further apart.
		if n == 0 || k < 3 {
			return
		}
		next := (k + 3) * Width
		far := make([]uint16, (n+Width-1)/Width*next)
		for j := 0; j < n; j += Width {
			copy(far[j/Width*next:], packed[j*k:][:k*Width])
		}
		got, half := append([]float32{}, start...), (k/2+1)&^1
		BF16(got, a, far, next, m, n, half, lda, ldc, add)
		BF16(got, a[min(half, len(a)):], far[half*Width:], next, m, n, k-half, lda, ldc, true)
		same(name+" in two parts", got)
	})
}

// bf16s is rows of random values with guard values between them.
func bf16s(r *rand.Rand, rows, cols, stride int) []uint16 {
	wide := matrix[float32](r, rows, cols, stride)
	x := make([]uint16, len(wide))
	half.ToBF16(x, wide)
	return x
}

func TestBF16EqualsTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	try := func(m, n, k, pad int) {
		lda, ldb, ldc := k+pad, k+3*pad, n+2*pad
		a, b, start := bf16s(r, m, k, lda), bf16s(r, n, k, ldb), matrix[float32](r, m, n, ldc)
		for _, add := range []bool{false, true} {
			checkBF16(t, a, b, start, m, n, k, lda, ldb, ldc, add)
		}
	}
	step := 1
	if testing.Short() {
		step = 5
	}
	for k := 0; k < 71; k += step {
		try(1+k%6, 2+k%19, k, k%3)
	}
	for n := 0; n < 81; n += step {
		try(1+n%5, n, 5+n%9, n%2)
	}
	for m := 0; m < 27; m++ {
		try(m, 33+m, 7, 1)
		try(m, 64+16*(m%5), 9, 0)
	}
	try(100, 47, bf16Depth+261, 3) // more than one block of every kind
	try(5, 530, 40, 0)
	try(2, 81, unpreempted+37, 0) // more than one call of assembly
}

// TestEveryBF16InAProduct takes every bf16 through the panels of all ways to read them, as both of a pair.
func TestEveryBF16InAProduct(t *testing.T) {
	const n = 1 << 16
	b := make([]uint16, 2*n)
	for i := range n {
		b[2*i], b[2*i+1] = uint16(i), uint16(i)
	}
	packed := make([]uint16, PackedLen(n, 2))
	PackBF16(packed, b, n, 2, 2)
	for _, at := range []int{0, 1} {
		bf16Tiers(func(name string) {
			for _, m := range []int{1, 5} {
				got, a := make([]float32, m*n), make([]uint16, 2*m)
				for i := range m {
					a[2*i+at] = 0x3f80
				}
				BF16(got, a, packed, 2*Width, m, n, 2, 2, n, false)
				for i, v := range got {
					h := uint16(i % n)
					want := fromBF16(h)
					if h&0x7f80 == 0x7f80 {
						want = float32(math.NaN()) // the other of the pair is 0 times what is not finite
					}
					if v != want && (v == v || want == want) {
						t.Fatalf("%s, %d rows: %#04x is %v, want %v", name, m, h, v, want)
					}
				}
			}
		})
	}
}

func TestBF16NeedsWholeSlices(t *testing.T) {
	const m, n, k = 2, 20, 30
	for name, f := range map[string]func(c []float32, a, b, packed []uint16){
		"b":      func(_ []float32, _, b, packed []uint16) { PackBF16(packed, b[1:], n, k, k) },
		"dst":    func(_ []float32, _, b, packed []uint16) { PackBF16(packed[1:], b, n, k, k) },
		"row":    func(_ []float32, a, _, packed []uint16) { RowBF16(a[:k], packed[:k*Width-1:k*Width-1], 3) },
		"c":      func(c []float32, a, _, packed []uint16) { BF16(c[1:], a, packed, k*Width, m, n, k, k, n, false) },
		"a":      func(c []float32, a, _, packed []uint16) { BF16(c, a[1:], packed, k*Width, m, n, k, k, n, false) },
		"packed": func(c []float32, a, _, packed []uint16) { BF16(c, a, packed[1:], k*Width, m, n, k, k, n, false) },
	} {
		bf16Tiers(func(tier string) {
			defer func() {
				if recover() == nil {
					t.Errorf("%s, tier %s: a slice that is too short does not panic", name, tier)
				}
			}()
			size := PackedLen(n, k)
			f(make([]float32, m*n), make([]uint16, m*k), make([]uint16, n*k), make([]uint16, size)[:size:size])
		})
	}
}

func TestStride(t *testing.T) {
	for _, size := range []int{2, 4, 8} {
		for k := range 5000 {
			s := Stride(k, size)
			if s < k || s > k+64/size || s*size%1024 == 0 && k > 0 || s != k && (s*size)%64 != 0 {
				t.Fatalf("rows of %d elements of %d bytes are %d apart", k, size, s)
			}
		}
	}
}
