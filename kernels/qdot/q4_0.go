package qdot

// q4_0: an f16 scale, then 16 bytes: weight j low in byte j, weight j+16 high; 8 is added to each.
var q4_0 = Format{
	Name: "q4_0", Block: 32, Bytes: 18, odd: 2, each: 32,
	expand: func(q []int8, s, _ []float32, b []byte) {
		s[0] = f16(b)
		nibbles(q, b[2:], 8)
	},
}
