package num

import "math"

// Erf sets y[i] to the error function of x[i], within 2 ulp for float32 and 9
// for float64.
func Erf[T Float](y, x []T) {
	y = y[:len(x)]
	for i := unary(opErf, y, x); i < len(x); i++ {
		y[i] = erf(x[i])
	}
}

func erf[T Float](x T) T {
	if wide[T]() {
		return T(erf64(float64(x)))
	}
	return T(erf32(float32(x)))
}

// erf32 is a minimax polynomial a + a·P(a²) below 1 and 1 - exp(-Q(a)) above,
// with Q a minimax polynomial for -ln(1 - erf a); from 4 on, 1 is nearest.
func erf32(x float32) float32 {
	sign := math.Float32bits(x) & (1 << 31)
	a := math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	var y float32
	if a < 1 {
		z := float32(a * a)
		p := float32(0x1.496a36p-14) // relative error 2⁻²⁹
		p = fma32(p, z, -0x1.a3f702p-11)
		p = fma32(p, z, 0x1.5405b2p-8)
		p = fma32(p, z, -0x1.b7f90ep-6)
		p = fma32(p, z, 0x1.ce2cf8p-4)
		p = fma32(p, z, -0x1.81273ep-2)
		p = fma32(p, z, 0x1.06eba8p-3)
		y = fma32(a, p, a)
	} else {
		a = min(a, 4)
		q := float32(-0x1.86dcf0p-13) // relative error of the result 2⁻²⁹
		q = fma32(q, a, 0x1.825a9cp-9)
		q = fma32(q, a, -0x1.65cb48p-6)
		q = fma32(q, a, 0x1.a6532ap-4)
		q = fma32(q, a, 0x1.46baf0p-1)
		q = fma32(q, a, 0x1.2088eap+0)
		q = fma32(q, a, 0x1.66215cp-12)
		y = 1 - exp32(-q)
	}
	return math.Float32frombits(math.Float32bits(y) | sign)
}

// erf64 sums the series 2/√π·exp(-x²)·Σ 2ⁿx²ⁿ⁺¹/(2n+1)!!, whose terms are all
// positive, below 3, and above takes Laplace's continued fraction of 1 - erf.
// (Abramowitz and Stegun, 7.1.6 and 7.1.14)
func erf64(x float64) float64 {
	a := math.Abs(x)
	z := float64(a * a)
	low := math.FMA(a, a, -z) // what z lacks
	var y float64
	switch {
	case x != x:
		return x
	case a < 3:
		sum, term := 1.0, 1.0
		for n := 3.0; term > float64(sum*0x1p-56); n += 2 {
			term = float64(term*float64(2*z)) / n
			sum += term
		}
		y = float64(float64(a*(2/math.SqrtPi)) * float64(exp64(-z)*float64(sum-float64(low*sum))))
	case a < 6:
		t := a
		for n := 60.0; n > 0; n-- {
			t = a + float64(n/2)/t
		}
		y = 1 - float64(exp64(-z)*float64(1-low))/float64(t*math.SqrtPi)
	default:
		y = 1
	}
	return math.Copysign(y, x)
}

// GELU sets y[i] to ½x[i]·(1 + erf(x[i]/√2)) (Hendrycks and Gimpel 2016).
func GELU[T Float](y, x []T) {
	y = y[:len(x)]
	for i := unary(opGELU, y, x); i < len(x); i++ {
		v := x[i]
		y[i] = T(T(v*0.5) * (1 + erf(T(v*(math.Sqrt2/2)))))
	}
}

// GELUTanh sets y[i] to ½x·(1 + tanh(√(2/π)·(x + 0.044715x³))) of x = x[i], the
// usual approximation of GELU, written as x·sigmoid(√(8/π)·(x + 0.044715x³)).
func GELUTanh[T Float](y, x []T) {
	const slope = 1.5957691216057308 // √(8/π)
	y = y[:len(x)]
	for i := unary(opGELUTanh, y, x); i < len(x); i++ {
		v := x[i]
		u := T(v * FMA(T(v*v), 0.044715*slope, slope))
		y[i] = T(v * sigmoid(u))
	}
}
