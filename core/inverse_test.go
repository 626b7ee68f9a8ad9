package core

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLogarithmsOfPowers asks for the exact exponents.
func TestLogarithmsOfPowers(t *testing.T) {
	for k := -1074; k <= 1023; k++ {
		if got := log2At(math.Ldexp(1, k)); got != float64(k) {
			t.Errorf("log2 of 2 to the %d is %v", k, got)
		}
	}
	for k, x := 0, 1.0; k <= 22; k, x = k+1, x*10 {
		if got := log10At(x); got != float64(k) {
			t.Errorf("log10 of %v is %v", x, got)
		}
	}
}

// TestAnglesAndHyperbolas compares with Go's functions, which are some ulp from exact, but for logarithms and angles
// near 0, of which the numbers are differences; and special values with theirs.
func TestAnglesAndHyperbolas(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	inf := math.Inf(1)
	for _, f := range []struct {
		name      string
		got, want func(float64) float64
		span      float64
		apart     float64 // how far from exact Go's may be whatever the value
	}{
		{"log2", log2At, math.Log2, 100, 0x1p-50}, {"log10", log10At, math.Log10, 100, 0x1p-50},
		{"asin", asinAt, math.Asin, 1, 0}, {"acos", acosAt, math.Acos, 1, 0x1p-50}, {"atan", atanAt, math.Atan, 20, 0},
		{"sinh", sinhAt, math.Sinh, 40, 0}, {"cosh", coshAt, math.Cosh, 40, 0},
	} {
		xs := []float64{0, math.Copysign(0, -1), 1, -1, 2, -2, inf, -inf, math.NaN(), 1e-300, -1e-300, 1e300, -1e300,
			710.3, -710.3, 711, -711}
		for range 20000 {
			xs = append(xs, f.span*(2*draw.Float64()-1), f.span*1e-3*draw.NormFloat64())
		}
		for _, x := range xs {
			got, want := f.got(x), f.want(x)
			same := got == want && math.Signbit(got) == math.Signbit(want) || got != got && want != want
			if near := math.Abs(got-want) <= 8*0x1p-53*math.Abs(want)+f.apart; !same && !near {
				t.Fatalf("%s of %v is %v, Go's %v", f.name, x, got, want)
			}
		}
	}
}
