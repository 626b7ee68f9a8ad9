package quant

// q4_1 is 32 weights q · d + m, q of 4 bits.
//
//	f16 d, f16 m, 16 bytes: weights 0 … 15 low, 16 … 31 high
//
// The least weight becomes 0 and the greatest 15; with importance scale and offset are searched for.
var q4_1 = Format{
	Name: "q4_1", ID: 3, scales: []int{0, 2},
	encode: func(b []byte, x, w []float32, power float32) {
		var q [32]uint8
		d, m := affine(15, x, w, power, q[:])
		putHalf(b, d)
		putHalf(b[2:], m)
		packNibbles(b[4:], q[:])
	},
}

// affine chooses integers 0 … n, a scale and an offset for x = q · scale + offset.
func affine(n int, x, w []float32, power float32, q []uint8) (scale, offset float32) {
	if w != nil {
		var weight [32]float32
		weigh(weight[:], x, w, power)
		d, low := fitAffine(ladder{n: n, from: -0.9, by: 0.05, times: 37}, x, weight[:], q)
		return d, -low
	}
	lo, hi := span(x)
	d := (hi - lo) / float32(n)
	inv := inverse(d)
	for j, v := range x {
		q[j] = uint8(min(n, int(int8(truncate(float32((v-lo)*inv)+0.5)))))
	}
	return d, lo
}
