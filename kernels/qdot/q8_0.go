package qdot

// q8_0: an f16 scale, then 32 bytes.
var q8_0 = Format{
	Name: "q8_0", Block: 32, Bytes: 34, odd: 2, each: 32, wide: true,
	expand: func(q []int8, s, _ []float32, b []byte) {
		s[0] = f16(b)
		for j := 0; j < 32; j += 8 {
			put(q[j:], eight(b[2+j:]))
		}
	},
}
