package qdot

import "math"

// nvfp4: four bytes, the scales of 16 weights each, then four times 8 bytes with weight j of 16 low and j+8 high, as in
// mxfp4. A scale is a number of 4 bits exponent and 3 bits mantissa, without sign.
var nvfp4 = Format{
	Name: "nvfp4", Block: 64, Bytes: 36, each: 16,
	expand: func(q []int8, s, _ []float32, b []byte) {
		for g := range 4 {
			s[g] = E4M3(b[g])
			fromTable(q[16*g:16*g+16], b[4+8*g:], &E2M1)
		}
	},
}

// E4M3 returns half of the value of a scale of nvfp4, since E2M1 is doubled. The pattern that E4M3 has for what is no
// number is 0, and the bit of the sign is ignored.
func E4M3(s byte) float32 {
	if s == 0x7f {
		return 0
	}
	// Exponent and mantissa in the places of a float32's.
	return float32(math.Float32frombits(uint32(s&0x7f)<<20) * 0x1p119)
}
