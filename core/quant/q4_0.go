package quant

// q4_0 is 32 weights (q - 8) · d, q of 4 bits.
//
//	f16 d, 16 bytes: weights 0 … 15 low, 16 … 31 high
//
// The weight of the greatest magnitude becomes -8; with importance the scale is searched for.
var q4_0 = Format{
	Name: "q4_0", ID: 2, scales: []int{0},
	encode: func(b []byte, x, w []float32, power float32) {
		var q [32]uint8
		putHalf(b, symmetric(8, x, w, power, q[:]))
		packNibbles(b[2:], q[:])
	},
}

// symmetric chooses integers 0 … 2n-1 and a scale for x = (q - n) · scale.
func symmetric(n int, x, w []float32, power float32, q []uint8) float32 {
	if w != nil {
		var weight [32]float32
		weigh(weight[:], x, w, power)
		return fitSigned(n, x, weight[:], q)
	}
	d := peak(x) / float32(-n)
	inv := inverse(d)
	for j, v := range x {
		q[j] = uint8(min(2*n-1, int(int8(truncate(float32(v*inv)+(float32(n)+0.5))))))
	}
	return d
}
