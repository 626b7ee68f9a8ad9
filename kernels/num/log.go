package num

import "math"

// Log sets y[i] to the natural logarithm of x[i], within 1 ulp: -Inf for 0,
// NaN for a negative number.
func Log[T Float](y, x []T) {
	y = y[:len(x)]
	for i := unary(opLog, y, x); i < len(x); i++ {
		y[i] = log(x[i])
	}
}

// log splits x = 2ᵉ(1+f) with 1+f in [√½, √2). With s = f/(2+f),
// ln(1+f) = 2 artanh s = f - f²/2 + s(f²/2 + s²P(s²)), with a minimax
// polynomial P for the rest of the series. The high part of ln 2 is so short
// that e times it is exact.
func log[T Float](x T) T {
	if wide[T]() {
		return T(log64(float64(x)))
	}
	return T(log32(float32(x)))
}

func log32(x float32) float32 {
	const (
		ln2Hi    = 0x1.63p-1
		ln2Lo    = -0x1.bd0106p-13
		sqrtHalf = 0x3F3504F3
	)
	e := float32(0)
	switch {
	case !(x > 0):
		if x == 0 {
			return float32(math.Inf(-1))
		}
		return float32(math.NaN())
	case x > math.MaxFloat32:
		return x
	case x < 0x1p-126:
		x = float32(x * 0x1p23)
		e = -23
	}
	b := math.Float32bits(x)
	shift := int32(b-sqrtHalf) >> 23
	e += float32(shift)
	f := math.Float32frombits(b-uint32(shift)<<23) - 1
	s := f / (2 + f)
	z := float32(s * s)
	p := float32(0x1.31e0d8p-2) // relative error 2⁻³⁰
	p = fma32(p, z, 0x1.995ed4p-2)
	p = fma32(p, z, 0x1.55557ap-1)
	h := float32(0.5 * float32(f*f))
	small := fma32(s, fma32(z, p, h), float32(e*ln2Lo))
	return fma32(e, ln2Hi, f-(h-small))
}

func log64(x float64) float64 {
	const (
		ln2Hi    = 0x1.62e42ffp-1
		ln2Lo    = -0x1.718432a1b0e26p-35
		sqrtHalf = 0x3FE6A09E667F3BCD
	)
	e := 0.0
	switch {
	case !(x > 0):
		if x == 0 {
			return math.Inf(-1)
		}
		return math.NaN()
	case x > math.MaxFloat64:
		return x
	case x < 0x1p-1022:
		x = float64(x * 0x1p52)
		e = -52
	}
	b := math.Float64bits(x)
	shift := int64(b-sqrtHalf) >> 52
	e += float64(shift)
	f := math.Float64frombits(b-uint64(shift)<<52) - 1
	s := f / (2 + f)
	z := float64(s * s)
	p := 0x1.0f0dd086c03cbp-3 // relative error 2⁻⁶⁶
	p = math.FMA(p, z, 0x1.0f67446774a52p-3)
	p = math.FMA(p, z, 0x1.3b20247f430aap-3)
	p = math.FMA(p, z, 0x1.745ce1c8caaffp-3)
	p = math.FMA(p, z, 0x1.c71c724b66eafp-3)
	p = math.FMA(p, z, 0x1.24924924397f8p-2)
	p = math.FMA(p, z, 0x1.9999999999d11p-2)
	p = math.FMA(p, z, 0x1.5555555555555p-1)
	h := float64(0.5 * float64(f*f))
	small := math.FMA(s, math.FMA(z, p, h), float64(e*ln2Lo))
	return math.FMA(e, ln2Hi, f-(h-small))
}
