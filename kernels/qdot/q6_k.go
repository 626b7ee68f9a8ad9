package qdot

// q6_k: twice 64 bytes with the low 4 bits of 128 weights, byte j of the i-th holding those of weight 128i+j and of
// 128i+64+j; twice 32 bytes, byte j of the i-th holding the high 2 bits of the weights 128i+j, 128i+32+j, 128i+64+j and
// 128i+96+j; 16 signed scales, of 16 weights each; their f16 factor. 32 is added to each weight.
var q6_k = Format{
	Name: "q6_k", Block: 256, Bytes: 210, odd: 2, oddAt: 208, each: 16,
	expand: func(q []int8, s, _ []float32, b []byte) {
		d := f16(b[208:])
		for i := range 16 {
			s[i] = float32(d * float32(int8(b[192+i])))
		}
		for i := range 32 {
			w := eight(b[i/16*64+i%8*8:]) >> (i % 16 / 8 * 4) & (15 * ones)
			put(q[8*i:], less(w|pairs(b[128:], i)<<4, 32))
		}
	},
}
