package quant

// q5_k is 256 weights q · d · s - m · o, q of 5 bits, with a scale s and an offset o of 6 bits for every 32.
//
//	f16 d, f16 m, 12 bytes: s and o; 32 bytes: the fifth bits, bit g of byte j for weight 32·g+j;
//	4 × 32 bytes: 32 weights low, the next 32 high
var q5_k = Format{
	Name: "q5_k", ID: 13, scales: []int{0, 2},
	encode: func(b []byte, x, w []float32, _ float32) {
		var q [256]uint8
		encodeSix(b, 31, ladder{n: 31, from: -0.5, by: 0.1, times: 16}, x, w, q[:])
		for g := range 4 {
			packNibbles(b[48+32*g:], q[64*g:64*g+64])
		}
		clear(b[16:48])
		for j, v := range q {
			b[16+j%32] |= v >> 4 << (j / 32)
		}
	},
}
