package quant

import "math"

// nvfp4 is 64 weights v · s with v of E2M1, as in mxfp4, and a scale s of E4M3 without sign for every 16.
//
//	4 bytes s, 4 × 8 bytes: weights 0 … 7 of a group low, 8 … 15 high
//
// s is a sixth of the greatest magnitude, rounded; one of 256 or more becomes 448. Weights beyond 2,688 are cut.
var nvfp4 = Format{
	Name: "nvfp4", ID: 40, Block: 64, Bytes: 36,
	decode: func(y []float32, b []byte) {
		var q [16]uint8
		for g := range 4 {
			d := e4m3(b[g])
			nibbles(q[:], b[4+8*g:])
			for j, v := range q {
				y[16*g+j] = float32(e2m1[v]) * d
			}
		}
	},
	encode: func(b []byte, x, _ []float32, _ float32) {
		var q [16]uint8
		for g := range 4 {
			x := x[16*g : 16*g+16]
			b[g] = toE4M3(abs(peak(x)) / 6)
			d := e4m3(b[g])
			for j, v := range x {
				q[j] = nearestE2M1(v, d)
			}
			packNibbles(b[4+8*g:], q[:])
		}
	},
	sound: func([]byte) bool { return true },
}

// e4m3 returns half of the value of s, for which e2m1 is doubled. The pattern that E4M3 has for what is no
// number is 0, and the bit of the sign is ignored.
func e4m3(s byte) float32 {
	exp, frac := int(s>>3&15), float64(s&7)
	switch {
	case s == 0x7f:
		return 0
	case exp == 0:
		return float32(math.Ldexp(frac, -10))
	}
	return float32(math.Ldexp(8+frac, exp-11))
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
