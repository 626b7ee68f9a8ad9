package qdot

// tq2_0: twice 32 bytes, byte j of the i-th holding 2 bits of each of the weights 128i+j, 128i+32+j, 128i+64+j and
// 128i+96+j; then the f16 scale. 1 is added to each weight.
var tq2_0 = Format{
	Name: "tq2_0", Block: 256, Bytes: 66, odd: 2, oddAt: 64, each: 128,
	expand: func(q []int8, s, _ []float32, b []byte) {
		for i := range 2 {
			s[i] = f16(b[64:])
		}
		for i := range 32 {
			put(q[8*i:], less(pairs(b, i), 1))
		}
	},
}
