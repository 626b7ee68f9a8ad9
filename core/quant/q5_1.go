package quant

// q5_1 is 32 weights q · d + m, q of 5 bits.
//
//	f16 d, f16 m, 4 bytes: the fifth bits, 16 bytes: weights 0 … 15 low, 16 … 31 high
//
// The least weight becomes 0 and the greatest 31; with importance scale and offset are searched for.
var q5_1 = Format{
	Name: "q5_1", ID: 7, scales: []int{0, 2},
	encode: func(b []byte, x, w []float32, power float32) {
		var q [32]uint8
		d, m := affine(31, x, w, power, q[:])
		putHalf(b, d)
		putHalf(b[2:], m)
		packFifth(b[4:], b[8:], q[:])
	},
}
