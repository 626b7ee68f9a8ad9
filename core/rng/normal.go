package rng

import "math"

// The transform of Box and Muller, A note on the generation of random normal
// deviates (1958), turns two uniform values u and v into two independent
// normal ones, √(-2 ln u) times cos 2πv (even index) and sin 2πv (odd index).
// math.Log, math.Sin and math.Cos differ in the last bit between
// architectures, so ln and sincos below take their place; math.Sqrt is exact.
// The compiler may fuse a product with an addition, even of a later statement;
// float64(x*y) forbids it.

// Normal returns a value of the normal distribution with mean 0 and variance
// 1. It is below 8.6 in magnitude, because u has 53 bits.
func Normal(seed, stream, index uint64) float64 {
	b := Block(seed, stream, index/2)
	u := float64(float64(half(&b, 0)>>11+1) * 0x1p-53)
	return pair(u, unit64(half(&b, 1)))[index%2]
}

// FillNormal32 sets dst[i] to what Normal(seed, stream, index+i) is of half as many
// random bits: u and v have 32, and the value, computed in float64 and rounded, is
// below 6.7 in magnitude.
func FillNormal32(dst []float32, seed, stream, index uint64) {
	for len(dst) > 0 {
		b := Block(seed, stream, index/4)
		p, q := pair32(&b, 0), pair32(&b, 1)
		four := [4]float32{float32(p[0]), float32(p[1]), float32(q[0]), float32(q[1])}
		n := copy(dst, four[index%4:])
		dst, index = dst[n:], index+uint64(n)
	}
}

// pair32 returns the two normal values made of a half of a block.
func pair32(b *[4]uint32, i uint64) [2]float64 {
	return pair(float64((float64(b[2*i])+1)*0x1p-32), float64(float64(b[2*i+1])*0x1p-32))
}

// pair returns the two normal values made of u in (0, 1] and v in [0, 1).
func pair(u, v float64) [2]float64 {
	r := math.Sqrt(float64(-2 * ln(u)))
	sin, cos := sincos(v)
	return [2]float64{float64(r * cos), float64(r * sin)}
}

// ln returns the natural logarithm of u, a normal number in (0, 1], within 1
// ulp.
//
// u = 2ᵉ(1+f) with 1+f in [√½, √2), and with s = f/(2+f)
// ln(1+f) = 2 artanh s = f - f²/2 + s(f²/2 + s²P(s²)); P is the minimax
// polynomial of the rest of the series, relative error 2⁻⁶⁶.
func ln(u float64) float64 {
	const (
		sqrtHalf = 0x3FE6A09E667F3BCD
		ln2Hi    = 0x1.62e42ffp-1 // 32 bits: its product with e is exact
		ln2Lo    = -0x1.718432a1b0e26p-35
	)
	b := math.Float64bits(u)
	e := int64(b-sqrtHalf) >> 52
	f := math.Float64frombits(b-uint64(e)<<52) - 1
	s := f / (2 + f)
	z := float64(s * s)
	p := 0x1.0f0dd086c03cbp-3
	p = float64(p*z) + 0x1.0f67446774a52p-3
	p = float64(p*z) + 0x1.3b20247f430aap-3
	p = float64(p*z) + 0x1.745ce1c8caaffp-3
	p = float64(p*z) + 0x1.c71c724b66eafp-3
	p = float64(p*z) + 0x1.24924924397f8p-2
	p = float64(p*z) + 0x1.9999999999d11p-2
	p = float64(p*z) + 0x1.5555555555555p-1
	h := float64(0.5 * float64(f*f))
	small := float64(s*(h+float64(z*p))) + float64(float64(e)*ln2Lo)
	return float64(float64(e)*ln2Hi) - ((h - small) - f)
}

// sincos returns sin 2πv and cos 2πv within 2 ulp for v in [0, 1). Counting in
// turns makes the reduction to an eighth of a turn exact. The polynomials are
// minimax, relative error 2⁻⁵⁸ (sin) and absolute error 2⁻⁶⁴ (cos).
func sincos(v float64) (sin, cos float64) {
	quarter := int64(float64(4*v) + 0.5)
	x := float64(2 * math.Pi * (v - float64(0.25*float64(quarter))))
	z := float64(x * x)

	p := 0x1.5d93941a4daa7p-33
	p = float64(p*z) - 0x1.ae5e686c4a6b9p-26
	p = float64(p*z) + 0x1.71de357ae40abp-19
	p = float64(p*z) - 0x1.a01a019c15e6cp-13
	p = float64(p*z) + 0x1.111111110f8a5p-7
	p = float64(p*z) - 0x1.5555555555549p-3
	sin = x + float64(float64(x*z)*p)

	p = -0x1.8fb11e2b94df6p-37
	p = float64(p*z) + 0x1.1ee9f132792d6p-29
	p = float64(p*z) - 0x1.27e4f8128eac4p-22
	p = float64(p*z) + 0x1.a01a019cbf387p-16
	p = float64(p*z) - 0x1.6c16c16c1521ep-10
	p = float64(p*z) + 0x1.555555555554cp-5
	h := float64(0.5 * z)
	one := 1 - h
	cos = one + (((1 - one) - h) + float64(float64(z*z)*p))

	switch quarter & 3 {
	case 1:
		return cos, -sin
	case 2:
		return -sin, -cos
	case 3:
		return -cos, sin
	}
	return sin, cos
}
