package quant

import (
	"encoding/binary"
	"math"

	"github.com/fucina-go/fucina/core/dtype"
)

// The arithmetic that all formats share. Sums are of f32 and in order; a product is rounded before it is
// added, which the conversions to float32 see to.

// half returns the f16 at the start of b.
func half(b []byte) float32 { return dtype.F16ToF32(binary.LittleEndian.Uint16(b)) }

// putHalf stores v as f16 at the start of b and returns the value stored.
func putHalf(b []byte, v float32) float32 {
	h := dtype.F32ToF16(v)
	binary.LittleEndian.PutUint16(b, h)
	return dtype.F16ToF32(h)
}

func abs(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

func sqrt(v float32) float32 { return float32(math.Sqrt(float64(v))) }

// nearest returns the integer nearest to v, ties to even, by adding 1.5·2²³. Beyond ±2²² and for what is no
// number the result is what the low bits happen to be, the same everywhere.
func nearest(v float32) int {
	return int(math.Float32bits(float32(v)+12582912)&0x7fffff) - 0x400000
}

// clamp returns v, or the nearer of lo and hi.
func clamp(v, lo, hi int) int { return max(lo, min(hi, v)) }

// truncate drops the fraction of v. What an int32 cannot hold becomes the least int32, as on amd64.
func truncate(v float32) int32 {
	if v > -2147483904 && v < 2147483648 {
		return int32(v)
	}
	return math.MinInt32
}

// round returns the integer nearest to v, ties away from zero, under the limits of truncate.
func round(v float32) int32 { return truncate(float32(math.Round(float64(v)))) }

// inverse returns 1/d, 0 for 0.
func inverse(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}

// peak returns the value of the greatest magnitude, the first of several; 0 for none.
func peak(x []float32) float32 {
	most, at := float32(0), float32(0)
	for _, v := range x {
		if a := abs(v); a > most {
			most, at = a, v
		}
	}
	return at
}

// span returns the least and the greatest value of x, which is not empty.
func span(x []float32) (lo, hi float32) {
	lo, hi = x[0], x[0]
	for _, v := range x[1:] {
		if v < lo {
			lo = v
		}
		if v > hi {
			hi = v
		}
	}
	return lo, hi
}

// sum adds up x.
func sum(x []float32) (s float32) {
	for _, v := range x {
		s += v
	}
	return s
}

// squares adds up the squares of x.
func squares(x []float32) (s float32) {
	for _, v := range x {
		s += float32(v * v)
	}
	return s
}

// weigh sets y to how much an error of each x counts: w·√(power + x²), or x² without an importance w.
func weigh(y, x, w []float32, power float32) {
	for i, v := range x {
		y[i] = v * v
		if w != nil {
			y[i] = w[i] * sqrt(power+float32(v*v))
		}
	}
}

// part returns w[lo:hi], or nil if there is no w.
func part(w []float32, lo, hi int) []float32 {
	if w == nil {
		return nil
	}
	return w[lo:hi]
}
