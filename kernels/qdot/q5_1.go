package qdot

// q5_1: an f16 scale, an f16 offset, then the fifth bits and 16 bytes as in q5_0 with nothing added.
var q5_1 = Format{
	Name: "q5_1", Block: 32, Bytes: 24, each: 32, offsets: 1,
	expand: func(q []int8, s, m []float32, b []byte) {
		s[0], m[0] = f16(b), f16(b[2:])
		fifths(q, b[4:], b[8:], 0)
	},
}
