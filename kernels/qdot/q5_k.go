package qdot

// q5_k: as q4_k, with 32 bytes before the last 128, of which byte j has the fifth bit of weight 32i+j in bit i.
var q5_k = Format{
	Name: "q5_k", Block: 256, Bytes: 176, each: 32, offsets: 1, pieces: q5Pieces(),
	expand: func(q []int8, s, m []float32, b []byte) {
		Sixes(s, m, b)
		for j := 0; j < 256; j += 8 {
			w := eight(b[48+j/64*32+j%32:]) >> (j % 64 / 32 * 4) & (15 * ones)
			put(q[j:], w|eight(b[16+j%32:])>>(j/32)&ones<<4)
		}
	},
}

// q5Pieces: in a panel follow the four words that q4_k begins with, too, and for each 128 weights a word of fifth bits
// and two of the first 64 weights' other bits, four times, and the eight of the other 64. Bits 0 to 3 of the w-th word
// of fifth bits belong to the words w of either eight, 4 to 7 to the words w+4.
func q5Pieces() (pieces []piece) {
	for w := range 4 {
		pieces = append(pieces, whole(w, w))
		pieces = append(pieces, halved(4+w, 8+w, 4+3*w, 24+3*w)...)
	}
	for i := range 2 {
		for w := range 8 {
			pieces = append(pieces, whole(12+16*i+w, 5+20*i+3*(w%4)+w/4), whole(20+16*i+w, 16+20*i+w))
		}
	}
	return pieces
}
