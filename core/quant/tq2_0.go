package quant

// tq2_0 is 256 weights (q - 1) · d, q of 2 bits.
//
//	2 × 32 bytes: four weights each, j, j+32, j+64, j+96, the first lowest; f16 d
//
// d is the greatest magnitude.
var tq2_0 = Format{
	Name: "tq2_0", ID: 35, scales: []int{64},
	encode: func(b []byte, x, _ []float32, _ float32) {
		d := abs(peak(x))
		inv := inverse(d)
		putHalf(b[64:], d)
		var q [256]uint8
		for j, v := range x {
			q[j] = trit(v, inv)
		}
		packCrumbs(b, q[:])
	},
}

// packCrumbs stores 256 integers of two bits in 64 bytes: 128 in 32, a byte having j, j+32, j+64 and j+96, the
// first lowest. Higher bits of q are left out.
func packCrumbs(b []byte, q []uint8) {
	for j := range 64 {
		at := j/32*128 + j%32
		b[j] = q[at]&3 | q[at+32]&3<<2 | q[at+64]&3<<4 | q[at+96]<<6
	}
}
