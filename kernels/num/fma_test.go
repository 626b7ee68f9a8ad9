package num

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bigFMA rounds the exact x·y + z once. It knows no NaN and no infinity.
func bigFMA(x, y, z float32) float32 {
	p := new(big.Float).SetPrec(1000).SetFloat64(float64(x))
	p.Mul(p, new(big.Float).SetFloat64(float64(y)))
	p.Add(p, new(big.Float).SetFloat64(float64(z)))
	f, _ := p.Float32()
	return f
}

// hard makes three numbers whose sum needs all cases of rounding: the exponents
// of the product and of z lie together or far apart, the fractions are short.
func hard(r *rand.Rand) (x, y, z float32) {
	short := func(e int) float32 {
		f := float64(r.Uint32N(1<<24)>>r.UintN(24)<<r.UintN(12) | 1)
		f = math.Ldexp(f, e-23)
		if r.IntN(2) == 0 {
			f = -f
		}
		return float32(f)
	}
	if r.IntN(4) == 0 { // the product lies next to half a unit of z
		j := float32(r.IntN(64)) * 0x1p-23
		return 1 + j, 1 - j, float32(1<<24 + 2*r.IntN(1<<23))
	}
	ex, ey := r.IntN(120)-80, r.IntN(120)-80
	return short(ex), short(ey), short(ex + ey + r.IntN(60) - 30)
}

func TestFMAIsRoundedOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	twice, slow := 0, 0
	for range 400_000 {
		x, y, z := hard(r)
		want := bigFMA(x, y, z)
		if got := fma32(x, y, z); math.Float32bits(got) != math.Float32bits(want) && !(got == 0 && want == 0) {
			t.Fatalf("fma32(%x, %x, %x) = %x, want %x", x, y, z, got, want)
		}
		if float32(math.FMA(float64(x), float64(y), float64(z))) != want {
			twice++
		}
		if float32(oddSum(float64(float64(x)*float64(y)), float64(z))) != want {
			slow++
		}
	}
	if twice < 20 || slow > 0 {
		t.Errorf("%d cases go wrong by rounding twice, want some; %d by rounding to odd, want none", twice, slow)
	}
}

func TestFMASpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	minus := float32(math.Copysign(0, -1))
	values := []float32{0, minus, 1, -1, inf, -inf, nan, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32,
		-math.SmallestNonzeroFloat32, 0x1p-126, 0x1p-75, 1 + 0x1p-23}
	for _, x := range values {
		for _, y := range values {
			for _, z := range values {
				got, want := fma32(x, y, z), float32(math.FMA(float64(x), float64(y), float64(z)))
				if x-x == 0 && y-y == 0 && z-z == 0 && want != 0 {
					want = bigFMA(x, y, z)
				}
				if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
					t.Errorf("fma32(%v, %v, %v) = %v, want %v", x, y, z, got, want)
				}
			}
		}
	}
}
