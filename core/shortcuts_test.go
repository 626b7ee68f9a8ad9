package core

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestShortcuts compares the ways that most elements take with the general ones behind them, bit for bit.
func TestShortcuts(t *testing.T) {
	const n = 1 << 16
	draw := rand.New(rand.NewPCG(1, 2))
	inf, odd := float32(math.Inf(1)), float32(math.NaN())
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, inf, -inf, odd, 1e-45, -1e-45, 3.4e38, -3.4e38,
		0.5, -0.5, 7, -7, 1e-38, 1 << 20, 1<<20 - 0.0625, 3 * math.Pi / 2}
	x, y, z := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range n {
		x[i], y[i] = math.Float32frombits(draw.Uint32()), math.Float32frombits(draw.Uint32())
		if i%3 > 0 {
			x[i], y[i] = float32(100*draw.NormFloat64()), float32(draw.NormFloat64())
		}
		if i%5 == 0 {
			x[i] = special[draw.IntN(len(special))]
		}
		if i%7 == 0 {
			y[i] = special[draw.IntN(len(special))]
		}
		if i%11 == 0 { // near a multiple
			x[i] = y[i] * float32(draw.IntN(1<<20))
		}
	}
	compare := func(name string, want func(x, y float64) float32) {
		t.Helper()
		for i := range n {
			w := want(float64(x[i]), float64(y[i]))
			if math.Float32bits(z[i]) != math.Float32bits(w) && (z[i] == z[i] || w == w) {
				t.Fatalf("%s of %v and %v is %v, want %v", name, x[i], y[i], z[i], w)
			}
		}
	}
	new(Mod).F32(z, x, y)
	compare("mod", func(x, y float64) float32 {
		r := float32(math.Mod(x, y))
		if r == 0 {
			return float32(math.Copysign(0, y))
		}
		if (r < 0) != (y < 0) {
			r += float32(y)
		}
		return r
	})
	new(FloorDiv).F32(z, x, y)
	compare("floordiv", func(x, y float64) float32 { return floorQuotient(float32(x), float32(y)) })
	new(Sin).F32(z, x)
	compare("sin", func(x, _ float64) float32 { return float32(sinAt(x)) })
	new(Cos).F32(z, x)
	compare("cos", func(x, _ float64) float32 { return float32(cosAt(x)) })
	new(Round).F32(z, x)
	compare("round", func(x, _ float64) float32 { return float32(math.RoundToEven(x)) })
	for _, e := range []float32{2, 3, 4, -1, -2, 0.5, -0.5, 1.5} {
		for i := range y {
			y[i] = e
		}
		new(Pow).F32(z, x, y)
		compare("pow", func(x, y float64) float32 { return float32(powAt(x, y)) })
	}
	y[n-1] = 5
	new(Pow).F32(z, x, y)
	compare("pow of two powers", func(x, y float64) float32 { return float32(powAt(x, y)) })
}
