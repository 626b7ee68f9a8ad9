package num

import "math"

// Exp sets y[i] to the exponential of x[i], within 1 ulp.
func Exp[T Float](y, x []T) {
	y = y[:len(x)]
	for i := unary(opExp, y, x); i < len(x); i++ {
		y[i] = exp(x[i])
	}
}

// exp splits x = n·ln 2 + r with |r| ≤ ln 2 / 2. Then eˣ = 2ⁿ(1 + r + r²Q(r)),
// with a minimax polynomial Q. The high part of ln 2 is so short that n times
// it is exact; 2ⁿ is applied in two steps, so that a subnormal result is
// rounded once and 2ⁿ itself stays in range.
func exp[T Float](x T) T {
	if wide[T]() {
		return T(exp64(float64(x)))
	}
	return T(exp32(float32(x)))
}

func exp32(x float32) float32 {
	const (
		ln2Hi = 0x1.63p-1
		ln2Lo = -0x1.bd0106p-13
		round = 0x1.8p23 // adding and subtracting it rounds to an integer, ties to even
	)
	switch {
	case x != x:
		return x
	case x > 89:
		return float32(math.Inf(1))
	case x < -104:
		return 0
	}
	n := fma32(x, math.Log2E, round) - round
	r := fma32(-n, ln2Lo, x-float32(n*ln2Hi)) // as with an FMA: n·ln2Hi is exact
	q := float32(0x1.6ab89ep-10)              // relative error 2⁻²⁸
	q = fma32(q, r, 0x1.123d70p-7)
	q = fma32(q, r, 0x1.55585ap-5)
	q = fma32(q, r, 0x1.55548cp-3)
	q = fma32(q, r, 0x1.fffffcp-2)
	p := 1 + fma32(float32(r*r), q, r)
	i := int32(n)
	return float32(float32(p*pow32(i>>1)) * pow32(i-i>>1))
}

// pow32 returns 2ⁿ for n in [-126, 127].
func pow32(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

func exp64(x float64) float64 {
	const (
		ln2Hi = 0x1.62e42ffp-1
		ln2Lo = -0x1.718432a1b0e26p-35
		round = 0x1.8p52
	)
	switch {
	case x != x:
		return x
	case x > 710:
		return math.Inf(1)
	case x < -746:
		return 0
	}
	n := math.FMA(x, math.Log2E, round) - round
	r := math.FMA(-n, ln2Lo, x-float64(n*ln2Hi))
	q := 0x1.48cb53f91ecccp-33 // relative error 2⁻⁶¹
	q = math.FMA(q, r, 0x1.1f8f7ddbe7182p-29)
	q = math.FMA(q, r, 0x1.ae785857f618ap-26)
	q = math.FMA(q, r, 0x1.27e4c90f74178p-22)
	q = math.FMA(q, r, 0x1.71de341e669c5p-19)
	q = math.FMA(q, r, 0x1.a01a01ae78684p-16)
	q = math.FMA(q, r, 0x1.a01a01a1e2601p-13)
	q = math.FMA(q, r, 0x1.6c16c16c14e67p-10)
	q = math.FMA(q, r, 0x1.1111111110d5ep-7)
	q = math.FMA(q, r, 0x1.5555555555558p-5)
	q = math.FMA(q, r, 0x1.5555555555556p-3)
	q = math.FMA(q, r, 0.5)
	p := 1 + math.FMA(float64(r*r), q, r)
	i := int64(n)
	return float64(float64(p*pow64(i>>1)) * pow64(i-i>>1))
}

// pow64 returns 2ⁿ for n in [-1022, 1023].
func pow64(n int64) float64 { return math.Float64frombits(uint64(n+1023) << 52) }
