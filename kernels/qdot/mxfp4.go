package qdot

import "math"

// mxfp4: an exponent in a byte, then 16 bytes as in q4_0: numbers of 4 bits of which one is the sign, one the mantissa.
// Their doubles are integers, so the scale is 2^(exponent-128).
var mxfp4 = Format{
	Name: "mxfp4", Block: 32, Bytes: 17, odd: 1, each: 32,
	expand: func(q []int8, s, _ []float32, b []byte) {
		s[0] = float32(math.Ldexp(1, int(b[0])-128))
		fromTable(q, b[1:], &E2M1)
	},
}

// E2M1 is the doubles of the sixteen numbers of 4 bits.
var E2M1 = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
