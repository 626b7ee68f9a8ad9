package qdot

// q5_0: an f16 scale, a word with the fifth bit of weight j in bit j, then 16 bytes as in q4_0; 16 is added to each.
var q5_0 = Format{
	Name: "q5_0", Block: 32, Bytes: 22, odd: 2, each: 32,
	expand: func(q []int8, s, _ []float32, b []byte) {
		s[0] = f16(b)
		fifths(q, b[2:], b[6:], 16)
	},
}
