package core

import (
	"math"

	"github.com/fucina-go/fucina/kernels/num"
)

// Pow is x to the power of y, element by element, aligned by axis name. Either may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes].
// Numerics: f32 is computed in f64 and rounded once; f64 is at most 1 ulp from the exact value. The same bits
// on every machine; f16 and bf16 compute in f32 and round once. As in C and PyTorch, x⁰ and 1ʸ are 1 even for NaN,
// and a negative x with a fractional y gives NaN. Integers wrap around; a negative power of them is 0 but for
// 1 and -1, as in PyTorch.
//
// Example:
//
//	tensor([1.0, 2.0, 3.0], "a").pow(2)
type Pow struct{ Binary }

var pow = Declare[Pow]("pow")

// Pow is x to the power of y; see the Pow operation.
func (x *Tensor) Pow(y *Tensor) *Tensor { return pow.Call(Pow{Binary{X: x, Y: y}}) }

// F32 is the f32 kernel.
func (*Pow) F32(z, x, y []float32) {
	if len(z) == 0 || !alike(y) || !powerOf(z, x[:len(z)], y[0]) {
		powers(z, x, y)
	}
}

// F64 is the f64 kernel.
func (*Pow) F64(z, x, y []float64) { powers(z, x, y) }

func powers[T float32 | float64](z, x, y []T) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = T(powAt(float64(x[i]), float64(y[i])))
	}
}

// alike tells whether all of y are one number.
func alike(y []float32) bool {
	for _, v := range y {
		if v != y[0] {
			return false
		}
	}
	return true
}

// powerOf is x to a power that few products, a quotient or a root make, computed in f64 and rounded once; it tells
// whether y is one.
func powerOf(z, x []float32, y float32) bool {
	switch y {
	case 2:
		num.Mul(z, x, x) // the product is exact in f64, so that this is it rounded once
	case 3:
		for i, v := range x {
			d := float64(v)
			z[i] = float32(float64(d*d) * d)
		}
	case 4:
		for i, v := range x {
			d := float64(v) * float64(v)
			z[i] = float32(d * d)
		}
	case -1:
		for i, v := range x {
			z[i] = float32(1 / float64(v))
		}
	case -2:
		for i, v := range x {
			z[i] = float32(1 / (float64(v) * float64(v)))
		}
	case 0.5:
		for i, v := range x {
			z[i] = float32(rootOf(float64(v)))
		}
	case -0.5:
		for i, v := range x {
			z[i] = float32(1 / rootOf(float64(v)))
		}
	default:
		return false
	}
	return true
}

// rootOf is the square root, but as a power: 0 of -0, and inf of -inf.
func rootOf(x float64) float64 {
	if x == 0 || x < -math.MaxFloat64 {
		return math.Abs(x)
	}
	return math.Sqrt(x)
}

// I64 is the integer kernel.
func (*Pow) I64(z, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = intPow(x[i], y[i])
	}
}

func intPow(x, y int64) int64 {
	if y < 0 {
		switch {
		case x == 1 || x == -1 && y%2 == 0:
			return 1
		case x == -1:
			return -1
		}
		return 0
	}
	z := int64(1)
	for ; y > 0; y >>= 1 {
		if y&1 != 0 {
			z *= x
		}
		x *= x
	}
	return z
}

func powAt(x, y float64) float64 {
	switch {
	case y == 0 || x == 1:
		return 1
	case y == 1 || x != x:
		return x
	case y != y:
		return y
	case y == 2:
		return float64(x * x)
	case math.IsInf(y, 0) && x == -1:
		return 1
	case x < 0 && y != math.Trunc(y):
		if !math.IsInf(x, 0) {
			return math.NaN()
		}
	}
	a := math.Abs(x)
	var z float64
	switch {
	case math.IsInf(y, 0) || a == 0 || math.IsInf(a, 0):
		if (a > 1) == (y > 0) {
			z = math.Inf(1)
		}
	default:
		high, low := logPair(a)
		p := float64(y * high)
		z = expPair(p, math.FMA(y, high, -p)+float64(y*low))
	}
	if math.Signbit(x) && math.Abs(y) < 1<<53 && y == math.Trunc(y) && int64(y)&1 != 0 {
		return -z
	}
	return z
}

// ln 2 as the sum of three numbers; the first has 32 bits, so that its product with an exponent is exact.
const (
	ln2     = 0x1.62e42ffp-1
	ln2Low  = -0x1.718432a1b0e26p-35
	ln2Last = -0x1.9ff0342542fc3p-90
)

// logPair is the logarithm of x, positive and finite, as the sum of two numbers; relative error 2⁻⁶⁴.
//
// x = 2ᵉ(1+f) with 1+f in [√½, √2), and with s = f/(2+f) log(1+f) = 2 artanh s = 2s(1 + s²(1/3 + s²(1/5 + …))). All
// but the sum behind the second bracket is done in pairs of numbers.
func logPair(x float64) (high, low float64) {
	const sqrtHalf = 0x3FE6A09E667F3BCD
	e := 0.0
	if x < 0x1p-1022 {
		x, e = x*0x1p54, -54
	}
	b := math.Float64bits(x)
	k := int64(b-sqrtHalf) >> 52
	e += float64(k)
	f := math.Float64frombits(b-uint64(k)<<52) - 1

	d := 2 + f
	s := f / d
	sLow := math.FMA(-s, f-(d-2), math.FMA(-s, d, f)) / d
	z := float64(s * s)
	zLow := math.FMA(s, s, -z) + float64(2*s*sLow)

	q := inverseOdd[13]
	for i := 12; i >= 2; i-- {
		q = math.FMA(q, z, inverseOdd[i])
	}
	a := float64(z * q)
	aLow := math.FMA(z, q, -a) + float64(zLow*q)
	c, cLow := twoSum(0x1.5555555555555p-2, a)
	cLow += 0x1.5555555555555p-56 + aLow
	p := float64(z * c)
	pLow := math.FMA(z, c, -p) + (float64(z*cLow) + float64(zLow*c))

	t := 2 * s
	u := float64(t * p)
	uLow := math.FMA(t, p, -u) + (float64(t*pLow) + float64(2*sLow*p))
	high, low = twoSum(t, u)
	low += uLow + 2*sLow

	w := float64(e * ln2Low)
	high, l1 := twoSum(float64(e*ln2), high)
	high, l2 := twoSum(high, w)
	low += (l1 + l2) + (math.FMA(e, ln2Low, -w) + float64(e*ln2Last))
	return twoSum(high, low)
}

// inverseOdd is 1/(2i+1).
var inverseOdd = func() (t [14]float64) {
	for i := range t {
		t[i] = 1 / float64(2*i+1)
	}
	return t
}()

// expPair is the exponential of high + low.
func expPair(high, low float64) float64 {
	switch {
	case high != high:
		return high
	case high > 710:
		return math.Inf(1)
	case high < -746:
		return 0
	}
	n, r, rLow := reduceExp(high, low)
	return scaleBy(1+(r+math.FMA(float64(r*r), expTail(r), math.FMA(r, rLow, rLow))), n)
}

// reduceExp is high + low less n·ln 2, as the sum of two numbers; |r| is at most ln 2 / 2 and a bit.
func reduceExp(high, low float64) (n int, r, rLow float64) {
	f := math.RoundToEven(float64(high * math.Log2E))
	w := float64(f * ln2Low)
	r, rLow = twoSum(math.FMA(-f, ln2, high), -w)
	r, rLow = twoSum(r, rLow+(low-(math.FMA(f, ln2Low, -w)+float64(f*ln2Last))))
	return int(f), r, rLow
}

// expTail is Q(r) of exp(r) = 1 + r + r²Q(r), minimax for |r| ≤ ln 2 / 2 with relative error 2⁻⁶¹.
func expTail(r float64) float64 {
	q := 0x1.48cb53f91ecccp-33
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
	return math.FMA(q, r, 0.5)
}

// scaleBy is x·2ⁿ for n in [-1080, 1080], rounded once.
func scaleBy(x float64, n int) float64 {
	half := n >> 1
	return x * math.Float64frombits(uint64(half+1023)<<52) * math.Float64frombits(uint64(n-half+1023)<<52)
}

// Weight is what an element costs beside that of a usual operation.
func (*Pow) Weight() int { return 4 }

// Saves both operands, and z if y wants a gradient.
func (*Pow) Saves(want uint64) (in, out uint64) { return 3, want >> 1 & 1 }

// VJP is gy · y · xʸ⁻¹, 0 where y is 0, and gy · z · log(x), 0 where x is 0 and y is not below.
func (a *Pow) VJP(z, gy []*Tensor, g *Grads) {
	if g.Wants(0) {
		y := a.Y.wide()
		d := a.X.wide().power(y.plus(-1), a.Outer)
		g.Set(0, gy[0].wide().Mul(d.Mul(y)).where(ne.Call(Ne{Compare{X: a.Y, Y: Number(a.Y.env, 0, 0, true)}})))
	}
	if g.Wants(1) {
		zero := a.X.Eq(Number(a.X.env, 0, 0, true))
		none := logicalAnd.Call(LogicalAnd{Compare{X: zero, Y: a.Y.Ge(Number(a.Y.env, 0, 0, true)), Outer: a.Outer}})
		log := none.Where(Number(a.X.env, 1, 0, false), a.X.wide()).Log()
		g.Set(1, gy[0].wide().Mul(z[0].wide()).Mul(log))
	}
}

// power is Pow with a choice of outer.
func (x *Tensor) power(y *Tensor, outer bool) *Tensor {
	return pow.Call(Pow{Binary{X: x, Y: y, Outer: outer}})
}
