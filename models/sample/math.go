package sample

import "math"

// exp is e^x, for x <= 0 within 2 ulp, and 0 below -708. math.Exp rounds differently on different architectures, and
// the last bit can decide a draw. With x = k ln 2 + r and |r| <= ln 2 / 2, e^r is its Taylor polynomial of degree 13,
// whose remainder is below 2⁻⁵⁷. The conversions keep compilers from fusing multiplications with additions.
func exp(x float64) float64 {
	const (
		ln2hi = 0x1.62e42fefap-1 // few bits, so that k*ln2hi is exact
		ln2lo = math.Ln2 - ln2hi
	)
	if x > 0 {
		return 1 / exp(-x)
	}
	if x != x {
		return x
	}
	if x < -708 {
		return 0
	}
	k := int64(float64(x*math.Log2E) - 0.5)
	r := (x - float64(float64(k)*ln2hi)) - float64(float64(k)*ln2lo)
	p := 1.0 / 6227020800
	p = float64(p*r) + 1.0/479001600
	p = float64(p*r) + 1.0/39916800
	p = float64(p*r) + 1.0/3628800
	p = float64(p*r) + 1.0/362880
	p = float64(p*r) + 1.0/40320
	p = float64(p*r) + 1.0/5040
	p = float64(p*r) + 1.0/720
	p = float64(p*r) + 1.0/120
	p = float64(p*r) + 1.0/24
	p = float64(p*r) + 1.0/6
	p = float64(p*r) + 1.0/2
	p = float64(p*r) + 1
	p = float64(p*r) + 1
	return math.Float64frombits(math.Float64bits(p) + uint64(k)<<52) // p * 2^k
}

// ln is the natural logarithm of x >= 0, within a few ulp and the same on every architecture. With x = 2ᵉ m
// and m in [√½, √2), ln m = 2 artanh s = 2 (s + s³/3 + s⁵/5 …) for s = (m-1)/(m+1); 12 terms.
func ln(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return math.Log(x)
	}
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	p := 0.0
	for i := 23; i >= 1; i -= 2 {
		p = float64(p*z) + 1/float64(i)
	}
	return float64(float64(e)*math.Ln2) + float64(2*float64(s*p))
}

// pow is x to the power of y, for x >= 0.
func pow(x, y float64) float64 {
	switch {
	case y == 0:
		return 1
	case y == 1:
		return x
	}
	return exp(float64(y * ln(x)))
}
