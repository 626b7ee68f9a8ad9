package qdot

// q3_k: 32 bytes, of which byte j has the third bit of weight 32i+j in bit i; twice 32 bytes as in tq2_0 with the low
// 2 bits; 12 bytes of scales of 6 bits: scale i has its low 4 bits in byte i%8, high from i = 8 on, and its high 2 in
// byte 8+i%4 at bit i/4·2; their f16 factor. 4 is added to each weight, 32 to each scale. The integers are weights
// times their scales, which are -124 to 128, with the other sign, which the factor has too.
var q3_k = Format{
	Name: "q3_k", Block: 256, Bytes: 110, odd: 2, oddAt: 108, each: 128, wide: true, factors: true, moves: q3Moves(),
	expand: func(q []int8, s, _ []float32, b []byte) {
		d, scales := f16(b[108:]), b[96:108]
		for i := range 16 {
			v := scales[i%8]>>(i/8*4)&15 | scales[8+i%4]>>(i/4*2)&3<<4
			s[i/8] = -d
			for j := 2 * i; j < 2*i+2; j++ {
				high := eight(b[j%4*8:]) >> (j / 4) & ones << 2
				put(q[8*j:], pairs(b[32:], j)|high)
			}
			for j, w := range q[16*i : 16*i+16] {
				q[16*i+j] = (w - 4) * (32 - int8(v))
			}
		}
	},
}

// q3Moves: in a panel follow the scales and for each 128 weights a word of third bits and two of low ones, four times.
// Bits 0 to 3 of the w-th word of third bits belong to word w of the low ones, 4 to 7 to word w+4.
func q3Moves() []move {
	moves := []move{{24, 25, 0, 1, 0}, {26, 26, 2, 2, 0}}
	for w := range 4 {
		moves = append(moves, move{w, w + 4, 3 + 3*w, 15 + 3*w, lowNibbles})
	}
	for w := range 8 {
		moves = append(moves, move{8 + w, 16 + w, 4 + 3*(w%4) + w/4, 16 + 3*(w%4) + w/4, 0})
	}
	return moves
}
