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

// q5Pieces: in a panel follow the four words that q4_k begins with, too, and for each 64 weights twice a word and four
// more. Bytes of the four have a weight of the first 32 in bits 0 to 4, and the high 3 bits of one of the others in 5
// to 7, whose low 2 are those of the word before them, at bit 0 for the first of the four, 2, 4 and 6 for the others.
func q5Pieces() (pieces []piece) {
	const bytes = ones & (1<<32 - 1)
	move := func(from, fromBit, to, toBit int, bits uint32) {
		pieces = append(pieces, shifted(from, to, toBit-fromBit, bits*bytes<<fromBit))
	}
	for w := range 4 {
		pieces = append(pieces, whole(w, w))
	}
	for n := range 32 {
		i, w := n/8, n%8
		rest := 4 + n/4*5
		to := rest + 1 + n%4
		move(12+n, 0, to, 0, 15)
		move(12+n, 4, rest, w%4*2, 3)
		move(12+n, 6, to, 5, 3)
		move(4+w, 2*i, to, 4, 1)
		move(4+w, 2*i+1, to, 7, 1)
	}
	return pieces
}
