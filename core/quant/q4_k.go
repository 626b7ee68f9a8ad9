package quant

// q4_k is 256 weights q · d · s - m · o, q of 4 bits, with a scale s and an offset o of 6 bits for every 32.
//
//	f16 d, f16 m, 12 bytes: s and o; 4 × 32 bytes: 32 weights low, the next 32 high
var q4_k = Format{
	Name: "q4_k", ID: 12, scales: []int{0, 2},
	encode: func(b []byte, x, w []float32, _ float32) {
		var q [256]uint8
		encodeSix(b, 15, ladder{n: 15, from: -1, by: 0.1, times: 21}, x, w, q[:])
		for g := range 4 {
			packNibbles(b[16+32*g:], q[64*g:64*g+64])
		}
	},
}
