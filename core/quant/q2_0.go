package quant

// q2_0 is 64 weights (q - 1) · d, q of 2 bits.
//
//	f16 d, 16 bytes: four weights each, the first lowest
//
// d is the greatest magnitude, so that of the values -d, 0, d, 2d the last is for files made otherwise.
var q2_0 = Format{
	Name: "q2_0", ID: 42, scales: []int{0},
	encode: func(b []byte, x, _ []float32, _ float32) {
		clear(b)
		d := abs(peak(x))
		inv := inverse(d)
		putHalf(b, d)
		for j, v := range x {
			b[2+j/4] |= byte(clamp(int(round(v*inv)+1), 0, 3)) << (j % 4 * 2)
		}
	},
}
