package num

import "math"

// FMA returns x·y + z rounded once. Every tier of assembly has an instruction
// for it; float32 has none in Go, so here it takes some steps.
func FMA[T Float](x, y, z T) T {
	if wide[T]() {
		return T(math.FMA(float64(x), float64(y), float64(z)))
	}
	return T(fma32(float32(x), float32(y), float32(z)))
}

// fma32 computes in float64, where the product is exact and the sum s is
// rounded. Rounding s again errs only if s lies half-way between two float32 by
// having been rounded to that place; s has 29 more bits than a normal float32.
func fma32(x, y, z float32) float32 {
	s := float64(float64(x)*float64(y)) + float64(z)
	const more = 1<<29 - 1
	if b := math.Float64bits(s); b&more == 1<<28 || b<<1 < (1023-125)<<53 {
		return fmaOdd(x, y, z)
	}
	return float32(s)
}

// fmaOdd rounds the sum to odd: of the two float64 around an inexact sum it
// takes the one whose last bit is 1, which lies half-way between no two float32
// (Boldo and Melquiond 2008). Two-sum gives the error of the sum (Knuth).
func fmaOdd(x, y, z float32) float32 {
	p, c := float64(float64(x)*float64(y)), float64(z)
	s := p + c
	d := s - p
	e := (p - (s - d)) + (c - d)
	if b := math.Float64bits(s); e != 0 && b&1 == 0 {
		if (e > 0) == (s > 0) {
			b++
		} else {
			b--
		}
		s = math.Float64frombits(b)
	}
	return float32(s)
}
