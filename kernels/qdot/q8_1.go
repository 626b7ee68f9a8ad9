package qdot

// q8_1: an f16 scale, an f16 that is of no use here, 32 bytes.
var q8_1 = Format{
	Name: "q8_1", Block: 32, Bytes: 36, each: 32, wide: true,
	expand: func(q []int8, s, _ []float32, b []byte) {
		s[0] = f16(b)
		for j := 0; j < 32; j += 8 {
			put(q[j:], eight(b[4+j:]))
		}
	},
}
