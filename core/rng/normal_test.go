package rng

import (
	"math"
	"math/big"
	"testing"
)

const prec = 200

func number(x float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(x) }

// sum adds first·Π ratio(1)…ratio(k) over k until the terms no longer matter.
func sum(first *big.Float, ratio func(k int) *big.Float) *big.Float {
	s, term := number(0), new(big.Float).Set(first)
	for k := 1; term.Sign() != 0 && (s.Sign() == 0 || term.MantExp(nil) > s.MantExp(nil)-prec); k++ {
		s.Add(s, term)
		term.Mul(term, ratio(k))
	}
	return s
}

// bigLn is ln u = 2 artanh((u-1)/(u+1)) after halving the exponent away.
func bigLn(u float64) *big.Float {
	artanh2 := func(x *big.Float) *big.Float { // ln x
		s := new(big.Float).Quo(new(big.Float).Sub(x, number(1)), new(big.Float).Add(x, number(1)))
		z := new(big.Float).Mul(s, s)
		return sum(new(big.Float).Mul(s, number(2)), func(k int) *big.Float {
			r := new(big.Float).Quo(number(float64(2*k-1)), number(float64(2*k+1)))
			return r.Mul(r, z)
		})
	}
	m, e := math.Frexp(u)
	l := new(big.Float).Mul(artanh2(number(2)), number(float64(e)))
	return l.Add(l, artanh2(number(m)))
}

// turn is 2π to 200 bits.
var turn, _, _ = big.ParseFloat("6.28318530717958647692528676655900576839433879875021164194988918461563281257242",
	10, prec, big.ToNearestEven)

// bigSinCos sums the Taylor series.
func bigSinCos(v float64) (sin, cos *big.Float) {
	x := new(big.Float).Mul(turn, number(v))
	z := new(big.Float).Mul(x, x)
	z.Neg(z)
	series := func(first *big.Float, n int) *big.Float {
		return sum(first, func(k int) *big.Float {
			d := number(float64((2*k + n - 1) * (2*k + n)))
			return d.Quo(z, d)
		})
	}
	return series(x, 1), series(number(1), 0)
}

// ulps is the distance of got from want in units of the last place of want.
func ulps(got float64, want *big.Float) float64 {
	w, _ := want.Float64()
	if math.Abs(w) < 1e-40 { // a zero of the function, met exactly or not
		return math.Abs(got) * 1e40
	}
	d, _ := new(big.Float).Sub(number(got), want).Float64()
	return math.Abs(d) / (math.Nextafter(math.Abs(w), math.Inf(1)) - math.Abs(w))
}

func TestLnIsWithin1Ulp(t *testing.T) {
	check := func(u float64) {
		if d := ulps(ln(u), bigLn(u)); d > 1 {
			t.Errorf("ln(%v) = %v is off by %.2f ulp", u, ln(u), d)
		}
	}
	for i := range uint64(4000) {
		check((float64(Uint64(11, 0, i)>>11) + 1) * 0x1p-53)
		check(math.Ldexp(1-Float64(11, 1, i)/2, -int(i%53)))
	}
	for _, u := range []float64{1 - 0x1p-53, 1 - 0x1p-52, 0.5, math.Sqrt2 / 2, 0x1p-53, 0x1p-32, 0x1.6a09e667f3bccp-1} {
		check(u)
	}
	if ln(1) != 0 || math.Signbit(ln(1)) {
		t.Errorf("ln(1) = %v", ln(1))
	}
}

func TestSinCosAreWithin2Ulp(t *testing.T) {
	check := func(v float64) {
		sin, cos := sincos(v)
		wantSin, wantCos := bigSinCos(v)
		if d := ulps(sin, wantSin); d > 2 {
			t.Errorf("sin 2π·%v = %v is off by %.2f ulp", v, sin, d)
		}
		if d := ulps(cos, wantCos); d > 2 {
			t.Errorf("cos 2π·%v = %v is off by %.2f ulp", v, cos, d)
		}
	}
	for i := range uint64(4000) {
		check(Float64(12, 0, i))
	}
	for k := range 16 {
		v := float64(k) / 16
		check(v)
		check(v + 0x1p-53)
		check(math.Abs(v - 0x1p-53))
	}
	check(0x1p-60)
}

func TestNormalExtremes(t *testing.T) {
	if x := pair(0x1p-53, 0)[0]; x < 8.5 || x > 8.6 {
		t.Errorf("largest float64 value is %v", x)
	}
	if x := pair(0x1p-32, 0.5)[0]; x > -6.6 || x < -6.7 {
		t.Errorf("smallest float32 value is %v", x)
	}
	if x := pair(1, 0.3)[1]; x != 0 {
		t.Errorf("value for u = 1 is %v", x)
	}
}
