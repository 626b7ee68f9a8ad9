package quant

// q6_k is 256 weights (q - 32) · d · s, q of 6 bits, with a scale s of 8 bits, signed, for every 16.
//
//	2 × 64 bytes: the low nibbles of 128 weights, 64 low, the next 64 high; 64 bytes of crumbs: the upper two bits;
//	16 bytes s; f16 d
var q6_k = Format{
	Name: "q6_k", ID: 14, scales: []int{208},
	encode: encodeQ6K,
}

func encodeQ6K(b []byte, x, w []float32, _ float32) {
	clear(b)
	var scale [16]float32
	var q [256]uint8
	for g := range 16 {
		scale[g] = fitSigned(32, x[16*g:16*g+16], part(w, 16*g, 16*g+16), q[16*g:16*g+16])
	}
	top := peak(scale[:])
	if abs(top) < tiny {
		return
	}
	inv := -128 / top
	d := putHalf(b[208:], 1/inv)
	for g, v := range scale {
		s := int8(min(127, nearest(inv*v)))
		b[192+g] = byte(s)
		d := d * float32(s)
		if d == 0 {
			continue
		}
		for j := 16 * g; j < 16*g+16; j++ {
			q[j] = uint8(clamp(nearest(x[j]/d), -32, 31) + 32)
		}
	}
	for h := range 2 {
		packNibbles(b[64*h:], q[128*h:128*h+128])
	}
	for j := range q {
		q[j] >>= 4
	}
	packCrumbs(b[128:], q[:])
}
