package num

import "math"

// FMA returns x·y + z rounded once. Every tier of assembly has an instruction
// for it; float32 has none in Go, so here it takes some steps.
func FMA[T Float](x, y, z T) T {
	if wide[T]() {
		return T(math.FMA(float64(x), float64(y), float64(z)))
	}
	return T(float32(sum(float64(float64(x)*float64(y)), float64(z))))
}

// fma32 is FMA for float32. The product of two float32 is exact in float64.
func fma32(x, y, z float32) float32 {
	return float32(sum(float64(float64(x)*float64(y)), float64(z)))
}

// sum returns p + z, so rounded that rounding it again, to float32, gives what
// rounding once would. Rounding twice errs only if the sum has been rounded to a
// place half-way between two float32, normal or not: then its last 28 bits are
// zero. (The function is just short enough to be inlined.)
func sum(p, z float64) (s float64) {
	if s = p + z; math.Float64bits(s)<<36 == 0 {
		s = oddSum(p, z)
	}
	return
}

// oddSum rounds p + z to odd: of the two float64 around an inexact sum it takes
// the one whose last bit is 1, which lies half-way between no two float32 (Boldo
// and Melquiond 2008). Two-sum gives the error of the sum (Knuth).
//
//go:noinline
func oddSum(p, z float64) float64 {
	s := p + z
	d := s - p
	e := (p - (s - d)) + (z - d)
	b := math.Float64bits(s)
	if e == 0 || e != e || b&1 != 0 {
		return s
	}
	if (e > 0) == (s > 0) {
		return math.Float64frombits(b + 1)
	}
	return math.Float64frombits(b - 1)
}
