package core

import "math"

// Atan2 is the angle of the point whose ordinate is x and whose abscissa is y, in radians from -π to π, element by
// element, aligned by axis name: the arctangent of x / y in the right quadrant. Either may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes].
// Numerics: f32 is computed in f64 and rounded once; f64 is at most 2 ulp from the exact value. The same bits on
// every machine; f16 and bf16 compute in f32 and round once. Zeros have signs, as in C.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([1.0, -1.0], "a").atan2(-1.0)
type Atan2 struct{ Binary }

var atan2 = Declare[Atan2]("atan2")

// Atan2 is the angle of the points (y, x); see the Atan2 operation.
func (x *Tensor) Atan2(y *Tensor) *Tensor { return atan2.Call(Atan2{Binary{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*Atan2) F32(z, x, y []float32) { angles(z, x, y) }

// F64 is the f64 kernel.
func (*Atan2) F64(z, x, y []float64) { angles(z, x, y) }

func angles[T float32 | float64](z, x, y []T) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = T(angleOf(float64(y[i]), float64(x[i])))
	}
}

// arctangents is atan(k/16), each as a number and what it lacks.
var arctangents = [17][2]float64{
	{0, 0}, {0x1.ff55bb72cfdeap-5, -0x1.c934d86d23f1dp-60}, {0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59},
	{0x1.7b97b4bce5b02p-3, 0x1.347b0b4f881cap-58}, {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
	{0x1.362773707ebccp-2, -0x1.963a544b672d8p-57}, {0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56},
	{0x1.a64eec3cc23fdp-2, -0x1.24dec1b50b7ffp-56}, {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
	{0x1.0657e94db30d0p-1, -0x1.d5b495f6349e6p-56}, {0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58},
	{0x1.345f01cce37bbp-1, 0x1.1021137c71102p-55}, {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
	{0x1.5d58987169b18p-1, 0x1.0028e4bc5e7cap-57}, {0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56},
	{0x1.819d0b7158a4dp-1, -0x1.bf76229d3b917p-56}, {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55},
}

// angleOf is the angle of the point (x, y). In the first octant it is that of the nearest k/16, and a Taylor series
// of the tangent u of what is left, which is at most 1/32; the others follow by symmetry.
func angleOf(x, y float64) float64 {
	const quarter, quarterLow = 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54 // π/2
	if x != x || y != y {
		return math.NaN()
	}
	a, b := math.Abs(y), math.Abs(x)
	steep := a > b
	if steep {
		a, b = b, a
	}
	high, low := octant(a, b)
	if steep { // π/2 less it
		high, low = quarter-high, (quarter-(quarter-high)-high)+(quarterLow-low)
	}
	if math.Signbit(x) { // π less it
		high, low = 2*quarter-high, (2*quarter-(2*quarter-high)-high)+(2*quarterLow-low)
	}
	return math.Copysign(high+low, y)
}

// octant is the angle of the point (b, a), 0 ≤ a ≤ b, as a number and what it lacks.
func octant(a, b float64) (high, low float64) {
	switch {
	case a == 0:
		return 0, 0
	case math.IsInf(a, 1):
		return arctangents[16][0], arctangents[16][1]
	case math.IsInf(b, 1):
		return 0, 0
	case b < 0x1p-900:
		a, b = a*0x1p120, b*0x1p120
	case b > 0x1p1000:
		a, b = a*0x1p-120, b*0x1p-120
	}
	k := int(float64(16*(a/b)) + 0.5)
	c := float64(k) / 16
	u := math.FMA(-c, b, a) / math.FMA(c, a, b)
	z := float64(u * u)
	p := math.FMA(z, 1.0/13, -1.0/11)
	p = math.FMA(z, p, 1.0/9)
	p = math.FMA(z, p, -1.0/7)
	p = math.FMA(z, p, 1.0/5)
	p = math.FMA(z, p, -1.0/3)
	tail := float64(float64(u*z) * p)
	if k == 0 {
		return u, tail
	}
	high = arctangents[k][0] + u
	return high, u - (high - arctangents[k][0]) + (arctangents[k][1] + tail)
}

// Weight is what an element costs beside that of a usual operation.
func (*Atan2) Weight() int { return 8 }

// Saves both operands.
func (*Atan2) Saves(uint64) (in, out uint64) { return 3, 0 }

// VJP is gy · y / (x² + y²) and -gy · x / (x² + y²).
func (a *Atan2) VJP(_, gy []*Tensor, g *Grads) {
	x, y := a.X.wide(), a.Y.wide()
	squares := add.Call(Add{Binary{X: x.Mul(x), Y: y.Mul(y), Outer: a.Outer}})
	over := gy[0].wide().Div(squares)
	g.Set(0, over.Mul(y))
	if g.Wants(1) {
		g.Set(1, over.Mul(x).Neg())
	}
}
