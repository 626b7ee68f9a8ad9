package qdot

// q6_k: twice 64 bytes with the low 4 bits of 128 weights, byte j of the i-th holding those of weight 128i+j and of
// 128i+64+j; twice 32 bytes, byte j of the i-th holding the high 2 bits of the weights 128i+j, 128i+32+j, 128i+64+j and
// 128i+96+j; 16 signed scales, of 16 weights each; their f16 factor. 32 is added to each weight.
var q6_k = Format{
	Name: "q6_k", Block: 256, Bytes: 210, odd: 2, oddAt: 208, each: 16, pieces: q6Pieces(),
	expand: func(q []int8, s, _ []float32, b []byte) {
		d := f16(b[208:])
		for i := range 16 {
			s[i] = float32(d * float32(int8(b[192+i])))
		}
		for i := range 32 {
			w := eight(b[i/16*64+i%8*8:]) >> (i % 16 / 8 * 4) & (15 * ones)
			put(q[8*i:], less(w|pairs(b[128:], i)<<4, 32))
		}
	},
}

// q6Pieces: in a panel follow, for each 64 weights, a word of high bits and two of low ones, four times, and scales.
// Bits 2q and 2q+1 of the w-th word of high bits belong to its low ones, first the low nibbles and then the high ones:
// weights 4w to 4w+3, 32+4w to 35+4w; 16+4w to 19+4w, 48+4w to 51+4w.
func q6Pieces() (pieces []piece) {
	for i := range 2 {
		at, next := 26*i, 26*i+13
		for w := range 8 {
			place := 3*(w%4) + 1 + w/4
			pieces = append(pieces, halved(16*i+w, 16*i+8+w, at+place, next+place)...)
		}
		for w := range 4 {
			pieces = append(pieces, halved(32+8*i+w, 36+8*i+w, at+3*w, next+3*w)...)
		}
		pieces = append(pieces, whole(48+2*i, at+12), whole(49+2*i, next+12))
	}
	return pieces
}
