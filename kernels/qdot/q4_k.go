package qdot

// q4_k: f16 factors of the scales and of the offsets, 12 bytes with eight 6-bit scales and offsets, then four times 32
// bytes: byte j of the i-th has weight 64i+j low and 64i+32+j high. Offsets are subtracted.
var q4_k = Format{
	Name: "q4_k", Block: 256, Bytes: 144, each: 32, offsets: 1,
	expand: func(q []int8, s, m []float32, b []byte) {
		Sixes(s, m, b)
		for i := range 4 {
			nibbles(q[64*i:64*i+64], b[16+32*i:], 0)
		}
	},
}

// Sixes sets s and m to the eight scales and offsets of a block of q4_k or q5_k.
func Sixes(s, m []float32, b []byte) {
	d, low := f16(b), f16(b[2:])
	b = b[4:]
	for j := range 8 {
		x, y := b[j%4]&63, b[4+j%4]&63
		if j >= 4 {
			x, y = b[8+j%4]&15|b[j%4]>>6<<4, b[8+j%4]>>4|b[4+j%4]>>6<<4
		}
		s[j], m[j] = float32(d*float32(x)), -float32(low*float32(y))
	}
}
