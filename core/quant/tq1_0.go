package quant

import "github.com/fucina-go/fucina/kernels/qdot"

// tq1_0 is 256 weights (t - 1) · d, t in 0 … 2, five to a byte.
//
//	32 bytes: weights j, j+32, …, j+128; 16 bytes: 160+j, 176+j, …; 4 bytes: 240+j, 244+j, 248+j, 252+j; f16 d
//
// A byte is ⌈v · 256/243⌉, v having the weights as its digits in base 3, the first highest: multiplied by 3 modulo
// 256 again and again, it yields the digits in what leaves at the top. d is the greatest magnitude.
var tq1_0 = Format{
	Name: "tq1_0", ID: 34, scales: []int{52},
	encode: func(b []byte, x, _ []float32, _ float32) {
		d := abs(peak(x))
		inv := inverse(d)
		putHalf(b[52:], d)
		for _, p := range qdot.Trits {
			for j := range p.Bytes {
				v := 0
				for n := range 5 {
					v *= 3
					if n < p.Digits {
						v += int(trit(x[p.First+n*p.Bytes+j], inv))
					}
				}
				b[p.At+j] = byte((v*256 + 242) / 243)
			}
		}
	},
}

// trit returns 0, 1 or 2 for v near -1, 0 or 1 times the scale. What is so small that its inverse overflows
// counts as 0.
func trit(v, inv float32) uint8 {
	t := round(v * inv)
	if t < -1 || t > 1 {
		t = 0
	}
	return uint8(t + 1)
}
