package num

import "math"

// The slopes below are made of the other functions of the package, block by block in the first level cache, and so
// have the same bits in every tier.
const slopeBlock = 256

// GELUSlope sets z to g times the derivative of GELU at x: Φ(x) + x·exp(-x²/2)/√(2π).
func GELUSlope[T Float](z, g, x []T) {
	var density, half [slopeBlock]T
	inBlocks(z, g, x, func(z, g, x []T) {
		d, h := density[:len(z)], half[:len(z)]
		Mul(d, x, x)
		Scale(d, d, -0.5)
		Exp(d, d)
		Mul(d, d, x)
		Scale(h, x, T(math.Sqrt2/2))
		Erf(h, h)
		AddScaled(h, d, T(2/math.Sqrt(2*math.Pi)))
		Scale(d, g, 0.5)
		MulAdd(z, d, h, d)
	})
}

// GELUTanhSlope sets z to g times the derivative of GELUTanh at x: with t = tanh(c·(x + d·x³)) it is
// (1 + t + x·(1 - t²)·c·(1 + 3d·x²))/2.
func GELUTanhSlope[T Float](z, g, x []T) {
	const c, d = 0.7978845608028654, 0.044715 // √(2/π)
	var argument, inner, linear [slopeBlock]T
	inBlocks(z, g, x, func(z, g, x []T) {
		t, u, l := argument[:len(z)], inner[:len(z)], linear[:len(z)]
		Mul(t, x, x)
		Scale(l, x, T(c))
		Scale(u, t, T(3*d))
		MulAdd(u, u, l, l) // x·c·(1 + 3d·x²)
		Scale(t, t, T(d))
		MulAdd(t, t, l, l)
		Tanh(t, t)
		Mul(l, t, t)
		Mul(l, l, u)
		Sub(u, u, l)
		Add(u, u, t)
		Scale(l, g, 0.5)
		MulAdd(z, l, u, l)
	})
}

// SiLUSlope sets z to g times the derivative of SiLU at x: s·(1 + x·(1 - s)), s being the sigmoid of x.
func SiLUSlope[T Float](z, g, x []T) {
	var sigmoid, rest [slopeBlock]T
	inBlocks(z, g, x, func(z, g, x []T) {
		s, r := sigmoid[:len(z)], rest[:len(z)]
		Sigmoid(s, x)
		Mul(r, s, x)
		Sub(r, x, r)       // x·(1 - s)
		MulAdd(r, s, r, s) // s·(1 + x·(1 - s))
		Mul(z, g, r)
	})
}

func inBlocks[T Float](z, g, x []T, f func(z, g, x []T)) {
	for at := 0; at < len(z); at += slopeBlock {
		end := min(at+slopeBlock, len(z))
		f(z[at:end], g[at:end], x[at:end])
	}
}
