package qdot

// q5_k: as q4_k, with 32 bytes before the last 128, of which byte j has the fifth bit of weight 32i+j in bit i.
var q5_k = Format{
	Name: "q5_k", Block: 256, Bytes: 176, each: 32, offset: true,
	expand: func(q []int8, s, m []float32, b []byte) {
		Sixes(s, m, b)
		for j := 0; j < 256; j += 8 {
			w := eight(b[48+j/64*32+j%32:]) >> (j % 64 / 32 * 4) & (15 * ones)
			put(q[j:], w|eight(b[16+j%32:])>>(j/32)&ones<<4)
		}
	},
}
