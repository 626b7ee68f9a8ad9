package qdot

// q2_k: 16 bytes, of which byte i has the scale of the weights 16i to 16i+15 low and their offset high; twice 32 bytes
// as in tq2_0 with nothing added; f16 factors of the scales and of the offsets. Offsets are subtracted. The integers
// are weights times their scales, 0 to 45.
var q2_k = Format{
	Name: "q2_k", Block: 256, Bytes: 84, each: 128, offsets: 8, moves: q2Moves(),
	expand: func(q []int8, s, m []float32, b []byte) {
		d, low := f16(b[80:]), f16(b[82:])
		for i, v := range b[:16] {
			s[i/8], m[i] = d, -float32(low*float32(v>>4))
		}
		for i := range 32 {
			put(q[8*i:], pairs(b[16:], i)*uint64(b[i/2]&15))
		}
	},
}

// q2Moves: in a panel follow the factors and for each 128 weights two words of scales and eight of bits.
func q2Moves() []move {
	moves := []move{{20, 20, 0, 0, 0}}
	for w := range 2 {
		moves = append(moves, move{w, 2 + w, 1 + w, 11 + w, 0})
	}
	for w := range 8 {
		moves = append(moves, move{4 + w, 12 + w, 3 + w, 13 + w, 0})
	}
	return moves
}
