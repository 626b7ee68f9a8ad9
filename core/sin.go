package core

import (
	"math"
	"math/bits"
)

// Sin is the sine of x, in radians, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: f32 is computed in f64 and rounded once; f64 is at most 1 ulp from the exact value, for huge x
// too. The same bits on every machine; f16 and bf16 compute in f32 and round once. NaN for ±inf.
//
// Errors: integers (cast them first).
//
// Source: arguments of 2²⁰ and more are reduced as in Payne, Hanek: Radian reduction for trigonometric
// functions (1983).
//
// Example:
//
//	tensor([0.0, 1.5707963], "a").sin()
type Sin struct{ Unary }

var sin = Declare[Sin]("sin")

// Sin is the sine of x; see the Sin operation.
func (x *Tensor) Sin() *Tensor { return sin.Call(Sin{Unary{x}}) }

// F32 is the f32 kernel.
func (*Sin) F32(y, x []float32) { waves(y, x, 0, sinAt) }

// F64 is the f64 kernel.
func (*Sin) F64(y, x []float64) { each(y, x, sinAt) }

// Weight is what an element costs beside that of a usual operation.
func (*Sin) Weight() int { return 2 }

// Saves x.
func (*Sin) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy · cos(x).
func (a *Sin) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, gy[0].Mul(a.X.Cos())) }

// waves is the sine of x and so many quarter turns; far computes those of great and strange x.
//
// An f32 below 2²⁰ is no nearer to a multiple of π/2 than 2⁻³⁰ or so, so that f64 has enough of what is left without
// another number for what it lacks: the error is below 2⁻⁵⁰ before the one rounding.
func waves(y, x []float32, quarters int64, far func(float64) float64) {
	x = x[:len(y)]
	for i, v := range x {
		a := float64(v)
		if !(math.Abs(a) < 1<<20) || a == 0 {
			y[i] = float32(far(a))
			continue
		}
		n := math.RoundToEven(a * (2 / math.Pi))
		r := math.FMA(n, -quarterTurnLow, math.FMA(n, -quarterTurn, a))
		z := float64(r * r)
		s, c := math.FMA(z, sinTerms[0], sinTerms[1]), math.FMA(z, cosTerms[0], cosTerms[1])
		s, c = math.FMA(z, s, sinTerms[2]), math.FMA(z, c, cosTerms[2])
		s, c = math.FMA(z, s, sinTerms[3]), math.FMA(z, c, cosTerms[3])
		s, c = math.FMA(z, s, sinTerms[4]), math.FMA(z, c, cosTerms[4])
		s, c = math.FMA(z, s, sinTerms[5]), math.FMA(z, c, cosTerms[5])
		both := [2]float64{math.FMA(float64(r*z), s, r), math.FMA(float64(z*z), c, math.FMA(z, -0.5, 1))}
		q := uint64(int64(n) + quarters)
		y[i] = float32(math.Float64frombits(math.Float64bits(both[q&1]) ^ q&2<<62))
	}
}

// The coefficients of the polynomials of sinNear and cosNear.
var (
	sinTerms = [6]float64{0x1.5d93941a4daa7p-33, -0x1.ae5e686c4a6b9p-26, 0x1.71de357ae40abp-19,
		-0x1.a01a019c15e6cp-13, 0x1.111111110f8a5p-7, -0x1.5555555555549p-3}
	cosTerms = [6]float64{-0x1.8fb11e2b94df6p-37, 0x1.1ee9f132792d6p-29, -0x1.27e4f8128eac4p-22,
		0x1.a01a019cbf387p-16, -0x1.6c16c16c1521ep-10, 0x1.555555555554cp-5}
)

// tiny is a bound below which sin x and tan x round to x.
const tiny = 0x1p-27

func sinAt(x float64) float64 {
	if math.Abs(x) < tiny {
		return x
	}
	quarter, r, low := reduceAngle(x)
	y := sinNear(r, low)
	if quarter&1 != 0 {
		y = cosNear(r, low)
	}
	if quarter&2 != 0 {
		return -y
	}
	return y
}

// sinNear is sin(r + low) for |r| ≤ π/4 and low below an ulp of r. The polynomial is minimax, relative error
// 2⁻⁵⁸.
func sinNear(r, low float64) float64 {
	z := float64(r * r)
	p := sinTerms[0]
	for _, t := range sinTerms[1:] {
		p = math.FMA(p, z, t)
	}
	return r + math.FMA(float64(r*z), p, float64(low*math.FMA(-0.5, z, 1)))
}

// cosNear is cos(r + low) likewise, absolute error of the polynomial 2⁻⁶⁴.
func cosNear(r, low float64) float64 {
	z := float64(r * r)
	p := cosTerms[0]
	for _, t := range cosTerms[1:] {
		p = math.FMA(p, z, t)
	}
	h := float64(0.5 * z)
	one := 1 - h
	return one + (((1 - one) - h) + math.FMA(float64(z*z), p, -float64(r*low)))
}

// π/2 as the sum of three numbers.
const (
	quarterTurn     = 0x1.921fb54442d18p+0
	quarterTurnLow  = 0x1.1a62633145c07p-54
	quarterTurnLast = -0x1.f1976b7ed8fbcp-110
)

// reduceAngle is x less a number of quarter turns, of which the last two bits matter, as the sum of r and low;
// |r| is at most π/4 and a bit. Both are NaN for infinite x.
func reduceAngle(x float64) (quarter int64, r, low float64) {
	switch {
	case math.IsInf(x, 0) || x != x:
		return 0, math.NaN(), math.NaN()
	case math.Abs(x) >= 0x1p20:
		return reduceLarge(x)
	}
	n := math.RoundToEven(float64(x * (2 / math.Pi)))
	p := float64(n * quarterTurn)
	w := float64(n * quarterTurnLow)
	r, e := twoSum(x-p, -math.FMA(n, quarterTurn, -p)) // x - p is exact
	r, f := twoSum(r, -w)
	low = ((e + f) - math.FMA(n, quarterTurnLow, -w)) - float64(n*quarterTurnLast)
	r, low = twoSum(r, low)
	return int64(n), r, low
}

// twoSum is a + b rounded and what it lacks (Knuth).
func twoSum(a, b float64) (s, e float64) {
	s = a + b
	d := s - a
	return s, (a - (s - d)) + (b - d)
}

// twoOverPi is the bits of 2/π: 64 zeros, which stand before the point, and 1216 bits behind it.
var twoOverPi = [20]uint64{
	0,
	0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
	0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
	0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
	0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
}

// reduceLarge is reduceAngle for |x| = m·2ᵉ ≥ 2²⁰. Of 2/π it takes the 192 bits w from the one on that stands for
// 2¹⁻ᵉ: earlier ones make multiples of 4 quarter turns. Then m·w is x·2/π mod 4 in units of 2⁻¹⁹⁰, and what is cut
// off is less than 2⁻¹³⁷.
func reduceLarge(x float64) (quarter int64, r, low float64) {
	b := math.Float64bits(x)
	m, e := b<<12>>12|1<<52, int(b>>52&0x7ff)-1075
	var w [3]uint64
	for i, at, shift := 0, (e+62)/64, uint(e+62)%64; i < 3; i++ {
		w[i] = twoOverPi[at+i]<<shift | twoOverPi[at+i+1]>>(64-shift)
	}
	high2, p2 := bits.Mul64(m, w[2])
	high1, p1 := bits.Mul64(m, w[1])
	p1, carry := bits.Add64(p1, high2, 0)
	p0 := m*w[0] + high1 + carry

	quarter = int64(p0 >> 62)
	p0, p1, p2 = p0<<2|p1>>62, p1<<2|p2>>62, p2<<2
	negative := p0>>63 != 0
	if negative { // more than half a quarter: count from the next one
		quarter++
		var borrow uint64
		p2, borrow = bits.Sub64(0, p2, 0)
		p1, borrow = bits.Sub64(0, p1, borrow)
		p0, _ = bits.Sub64(0, p0, borrow)
	}
	exponent := -64
	if p0 == 0 {
		p0, p1, p2, exponent = p1, p2, 0, -128
	}
	zeros := bits.LeadingZeros64(p0)
	p0, p1 = p0<<zeros|p1>>(64-zeros), p1<<zeros|p2>>(64-zeros)
	scale := math.Float64frombits(uint64(1023+exponent-zeros) << 52)
	f := float64(p0&^0x7ff) * scale // exact
	g := float64(p0&0x7ff<<53|p1>>11) * scale * 0x1p-53
	r = float64(f * quarterTurn)
	low = math.FMA(f, quarterTurn, -r) + math.FMA(f, quarterTurnLow, float64(g*quarterTurn))
	r, low = twoSum(r, low)
	if negative != (x < 0) {
		r, low = -r, -low
	}
	if x < 0 {
		quarter = -quarter
	}
	return quarter, r, low
}
