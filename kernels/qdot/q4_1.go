package qdot

// q4_1: an f16 scale, an f16 offset, then 16 bytes as in q4_0 with nothing added.
var q4_1 = Format{
	Name: "q4_1", Block: 32, Bytes: 20, each: 32, offsets: 1,
	expand: func(q []int8, s, m []float32, b []byte) {
		s[0], m[0] = f16(b), f16(b[2:])
		nibbles(q, b[4:], 0)
	},
}
