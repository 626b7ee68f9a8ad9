package num

import "math"

// Tanh sets y[i] to the hyperbolic tangent of x[i], within 2 ulp.
func Tanh[T Float](y, x []T) {
	y = y[:len(x)]
	for i := unary(opTanh, y, x); i < len(x); i++ {
		y[i] = tanh(x[i])
	}
}

// tanh is a minimax polynomial a + a³P(a²) near 0, where 1 - 2/(e²ᵃ+1) would
// cancel, and gives the result the sign of x, that of a zero too.
func tanh[T Float](x T) T {
	var y T
	if a := abs(x); a < 0.625 {
		z := T(a * a)
		y = FMA(T(a*z), tanhTail(z), a)
	} else {
		y = 1 - 2/(exp(T(2*a))+1)
	}
	if math.Signbit(float64(x)) {
		return -y
	}
	return y
}

func tanhTail[T Float](z T) (p T) {
	if wide[T]() { // relative error 2⁻⁶¹
		p = 0x1.96a40f25712e7p-18
		p = FMA(p, z, -0x1.fb20c5d5ee726p-16)
		p = FMA(p, z, 0x1.8032634275983p-14)
		p = FMA(p, z, -0x1.f119d8b368d26p-13)
		p = FMA(p, z, 0x1.350c1e8216745p-11)
		p = FMA(p, z, -0x1.7d9c44d7fe6f6p-10)
		p = FMA(p, z, 0x1.d6d35b980b83fp-9)
		p = FMA(p, z, -0x1.226e32d84f2cdp-7)
		p = FMA(p, z, 0x1.664f487105fb9p-6)
		p = FMA(p, z, -0x1.ba1ba1b9d2a95p-5)
		p = FMA(p, z, 0x1.1111111110c60p-3)
		p = FMA(p, z, -0x1.5555555555552p-2)
	} else { // relative error 2⁻²⁷
		p = -0x1.767a14p-8
		p = FMA(p, z, 0x1.524c40p-6)
		p = FMA(p, z, -0x1.b842c4p-5)
		p = FMA(p, z, 0x1.11075ep-3)
		p = FMA(p, z, -0x1.555534p-2)
	}
	return p
}

// Sigmoid sets y[i] to 1/(1 + exp(-x[i])), within 3 ulp.
func Sigmoid[T Float](y, x []T) {
	y = y[:len(x)]
	for i := unary(opSigmoid, y, x); i < len(x); i++ {
		y[i] = sigmoid(x[i])
	}
}

// sigmoid never takes the exponential of a positive number, which would
// overflow where the result is still a subnormal number.
func sigmoid[T Float](x T) T {
	z := exp(-abs(x))
	if x < 0 {
		return z / (1 + z)
	}
	return 1 / (1 + z)
}

// SiLU sets y[i] to x[i] times its sigmoid, within 4 ulp as long as the sigmoid
// is no subnormal number (x[i] > -87 for float32, -708 for float64). As the
// product it is, it gives NaN for -Inf.
func SiLU[T Float](y, x []T) {
	y = y[:len(x)]
	for i := unary(opSiLU, y, x); i < len(x); i++ {
		y[i] = T(x[i] * sigmoid(x[i]))
	}
}

// SwiGLU sets y[i] to SiLU of gate[i] times up[i] (Shazeer 2020).
func SwiGLU[T Float](y, gate, up []T) {
	y, up = y[:len(gate)], up[:len(gate)]
	for i := binary(opSwiGLU, y, gate, up); i < len(gate); i++ {
		g := gate[i]
		y[i] = T(T(g*sigmoid(g)) * up[i])
	}
}
