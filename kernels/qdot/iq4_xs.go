package qdot

// iq4_xs: the f16 factor of the scales; a word of 16 bits with the high 2 bits of scale i at bit 2i; 4 bytes, of which
// byte i has the low 4 bits of scale 2i low and those of 2i+1 high; eight times 16 bytes as in iq4_nl. 32 is added to
// each scale.
var iq4_xs = Format{
	Name: "iq4_xs", Block: 256, Bytes: 136, each: 32, wide: true,
	expand: func(q []int8, s, _ []float32, b []byte) {
		d, high := f16(b), int(b[2])|int(b[3])<<8
		for i := range 8 {
			scale := int(b[4+i/2]>>(i%2*4)&15) | high>>(2*i)&3<<4
			s[i] = float32(d * float32(scale-32))
			fromTable(q[32*i:32*i+32], b[8+16*i:], &Curve)
		}
	},
}
