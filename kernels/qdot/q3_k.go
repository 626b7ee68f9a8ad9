package qdot

// q3_k: 32 bytes, of which byte j has the third bit of weight 32i+j in bit i; twice 32 bytes as in tq2_0 with the low
// 2 bits; 12 bytes of scales of 6 bits: scale i has its low 4 bits in byte i%8, high from i = 8 on, and its high 2 in
// byte 8+i%4 at bit i/4·2; their f16 factor. 4 is added to each weight, 32 to each scale. The integers are weights
// times their scales, which are -124 to 128, with the other sign, which the factor has too.
var q3_k = Format{
	Name: "q3_k", Block: 256, Bytes: 110, odd: 2, oddAt: 108, each: 128, wide: true, factors: true,
	pieces: q3Pieces(),
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

// q3Pieces: in a panel follow three words of scales and for each 128 weights three words, four times, of which the w-th
// three have the weights 4w to 4w+3 and 16+4w to 19+4w of four runs of 32. The first word has of the former those of
// run 0 in bits 0 to 2 of its bytes, the low bits of run 1 in bits 3 and 4, those of run 2 in bits 5 to 7; the second
// has the same of the latter; the third has both of run 3, in bits 0 to 2 and 3 to 5, and the third bits of run 1.
//
// Scale 2r is in the lower half of a word, 2r+1 in the upper one: at bit 10 of word r/2, or at bit 4 for an odd r. Of
// the last four have word r-6 the low 4 bits, at 0, and the third word the high 2, at bit 2 and 0.
func q3Pieces() (pieces []piece) {
	move := func(from, fromBit, to, toBit int, bits uint32) {
		pieces = append(pieces, shifted(from, to, toBit-fromBit, bits<<fromBit))
	}
	for j := range 16 {
		r, at := j/2, j%2*16
		low, high := r/2, r/2
		lowAt, highAt := at+10-r%2*6, at+14-r%2*6
		if r >= 6 {
			low, high, lowAt, highAt = r-6, 2, at, at+14-2*r
		}
		move(24+j/4%2, j%4*8+j/8*4, low, lowAt, 15)
		move(26, j%4*8+j/4*2, high, highAt, 3)
	}
	const bytes = ones & (1<<32 - 1)
	for w := range 16 {
		i, n := w/8, w%8/4
		third := 5 + 12*i + 3*(w%4)
		first := third - 2 + n
		move(8+w, 0, first, 0, 0x03*bytes)
		move(8+w, 0, first, 1, 0x3C*bytes)
		move(8+w, 6, third, 3*n, 0x03*bytes)
		move(w%8, 4*i, first, 2, bytes)
		move(w%8, 4*i+1, third, 6+n, bytes)
		move(w%8, 4*i+2, first, 7, bytes)
		move(w%8, 4*i+3, third, 2+3*n, bytes)
	}
	return pieces
}
