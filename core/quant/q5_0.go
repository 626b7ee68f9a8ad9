package quant

// q5_0 is 32 weights (q - 16) · d, q of 5 bits.
//
//	f16 d, 4 bytes: the fifth bits, 16 bytes: weights 0 … 15 low, 16 … 31 high
//
// The weight of the greatest magnitude becomes -16; with importance the scale is searched for.
var q5_0 = Format{
	Name: "q5_0", ID: 6, scales: []int{0},
	encode: func(b []byte, x, w []float32, power float32) {
		var q [32]uint8
		putHalf(b, symmetric(16, x, w, power, q[:]))
		packFifth(b[2:], b[6:], q[:])
	},
}
