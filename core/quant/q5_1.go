package quant

// q5_1 is 32 weights q · d + m, q of 5 bits.
//
//	f16 d, f16 m, 4 bytes: the fifth bits, 16 bytes: weights 0 … 15 low, 16 … 31 high
//
// The least weight becomes 0 and the greatest 31; with importance scale and offset are searched for.
var q5_1 = Format{
	Name: "q5_1", ID: 7, Block: 32, Bytes: 24, scales: []int{0, 2},
	decode: func(y []float32, b []byte) {
		d, m := half(b), half(b[2:])
		var q [32]uint8
		fifths(q[:], b[4:], b[8:])
		for j, v := range q {
			y[j] = float32(float32(v)*d) + m
		}
	},
	encode: func(b []byte, x, w []float32, power float32) {
		var q [32]uint8
		d, m := affine(31, x, w, power, q[:])
		putHalf(b, d)
		putHalf(b[2:], m)
		packFifth(b[4:], b[8:], q[:])
	},
}
