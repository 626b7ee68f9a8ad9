package quant

// q1_0 is 128 weights of ±d.
//
//	f16 d, 16 bytes: a bit set for +, the lowest first
//
// d is the mean magnitude; zero counts as +.
var q1_0 = Format{
	Name: "q1_0", ID: 41, scales: []int{0},
	encode: func(b []byte, x, _ []float32, _ float32) {
		clear(b)
		total := float32(0)
		for j, v := range x {
			total += abs(v)
			if v >= 0 {
				b[2+j/8] |= 1 << (j % 8)
			}
		}
		putHalf(b, total/128)
	},
}
