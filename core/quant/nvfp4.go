package quant

import (
	"math"

	"github.com/fucina-go/fucina/kernels/qdot"
)

// nvfp4 is 64 weights v · s with v of E2M1, as in mxfp4, and a scale s of E4M3 without sign for every 16.
//
//	4 bytes s, 4 × 8 bytes: weights 0 … 7 of a group low, 8 … 15 high
//
// s is a sixth of the greatest magnitude, rounded; one of 256 or more becomes 448. Weights beyond 2,688 are cut.
var nvfp4 = Format{
	Name: "nvfp4", ID: 40,
	encode: func(b []byte, x, _ []float32, _ float32) {
		var q [16]uint8
		for g := range 4 {
			x := x[16*g : 16*g+16]
			b[g] = toE4M3(abs(peak(x)) / 6)
			d := qdot.E4M3(b[g])
			for j, v := range x {
				q[j] = nearestE2M1(v, d)
			}
			packNibbles(b[4+8*g:], q[:])
		}
	},
	sound: func([]byte) bool { return true },
}

// toE4M3 returns v, which is not negative, rounded to E4M3, halves up; 256 and more becomes 448.
func toE4M3(v float32) byte {
	bits := math.Float32bits(v)
	exp := int(bits>>23) - 120
	switch {
	case v == 0:
		return 0
	case exp <= 0:
		return byte(min(7, int(float32(v*512)+0.5)))
	}
	code := int(bits>>19+1)>>1 - 120<<3
	if code >= 15<<3 {
		code = 0x7e
	}
	return byte(code)
}
