package qdot

// q2_k: 16 bytes, of which byte i has the scale of the weights 16i to 16i+15 low and their offset high; twice 32 bytes
// as in tq2_0 with nothing added; f16 factors of the scales and of the offsets. Offsets are subtracted. The integers
// are weights times their scales, 0 to 45.
var q2_k = Format{
	Name: "q2_k", Block: 256, Bytes: 84, each: 128, offsets: 8, pieces: q2Pieces(),
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

// q2Pieces: in a panel follow the factors and for each 128 weights a word of scales, one of offsets and eight of bits.
// The first has the scales 2i in its lower half, 2i+1 in the upper one, the second the offsets as they follow.
func q2Pieces() []piece {
	pieces := []piece{whole(20, 0)}
	for j := range 16 {
		at, from := 1+j/8*10, j%4*8
		scale, offset := j%2*16+j%8/2*4, j%8*4
		pieces = append(pieces, shifted(j/4, at, scale-from, 15<<from), shifted(j/4, at+1, offset-from-4, 15<<(from+4)))
	}
	for i := range 2 {
		for w := range 8 {
			pieces = append(pieces, whole(4+8*i+w, 3+10*i+w))
		}
	}
	return pieces
}
