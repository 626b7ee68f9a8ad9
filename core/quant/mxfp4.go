package quant

import (
	"math"

	"github.com/fucina-go/fucina/kernels/qdot"
)

// mxfp4 is 32 weights v · 2ᵉ⁻¹²⁷ with v of E2M1: 0, ½, 1, 1½, 2, 3, 4, 6 and the same below 0.
//
//	byte e (E8M0), 16 bytes: weights 0 … 15 low, 16 … 31 high
//
// e is two less than the exponent of the greatest magnitude; below 2⁻¹²⁵ it is 0. Each weight becomes the nearest
// value, the first of two as near. Source: OCP Microscaling Formats (MX) v1.0.
var mxfp4 = Format{
	Name: "mxfp4", ID: 39,
	encode: func(b []byte, x, _ []float32, _ float32) {
		b[0] = 0
		if top := abs(peak(x)); top > 0 {
			b[0] = byte(max(0, int(math.Floor(float64(float32(math.Log2(float64(top))))))+125))
		}
		d := e8m0(b[0])
		var q [32]uint8
		for j, v := range x {
			q[j] = nearestE2M1(v, d)
		}
		packNibbles(b[1:], q[:])
	},
	sound: func([]byte) bool { return true },
}

// e2m1 is twice the values of E2M1.
var e2m1 = &qdot.E2M1

// e8m0 returns half of 2ᵉ⁻¹²⁷, for which e2m1 is doubled.
func e8m0(e byte) float32 { return float32(math.Ldexp(1, int(e)-128)) }

// nearestE2M1 returns the place in e2m1 of the value that is nearest to v when multiplied by d.
func nearestE2M1(v, d float32) uint8 {
	best, at := abs(float32(float32(e2m1[0])*d)-v), 0
	for i, c := range e2m1 {
		if e := abs(float32(float32(c)*d) - v); e < best {
			best, at = e, i
		}
	}
	return uint8(at)
}
