package quant

// q2_k is 256 weights q · d · s - m · o, q of 2 bits, with a scale s and an offset o of 4 bits for every 16.
//
//	16 bytes: s low, o high; 64 bytes of crumbs; f16 d, f16 m
var q2_k = Format{
	Name: "q2_k", ID: 10, scales: []int{80, 82},
	encode: encodeQ2K,
}

func encodeQ2K(b []byte, x, w []float32, _ float32) {
	var scale, low, total [16]float32
	var s, m [16]uint8
	var q [256]uint8
	power := float32(0)
	fit := ladder{n: 3, from: -0.5, by: 0.1, times: 16, absolute: true}
	if w != nil {
		power = squares(x) / 256
		fit = ladder{n: 3, from: -0.9, by: 0.05, times: 37}
	}
	for g := range 16 {
		x := x[16*g : 16*g+16]
		var weight [16]float32
		if w != nil {
			weigh(weight[:], x, w[16*g:], power)
			total[g] = sum(weight[:])
		} else {
			for j, v := range x {
				weight[j] = abs(v)
			}
		}
		scale[g], low[g] = fitAffine(fit, x, weight[:], q[16*g:16*g+16])
	}
	var d, off float32
	if w != nil {
		d = putHalf(b[80:], fitPositive(15, scale[:], total[:], s[:]))
		off = putHalf(b[82:], fitPositive(15, low[:], total[:], m[:]))
	} else {
		d = putHalf(b[80:], fourBits(scale[:], s[:]))
		off = putHalf(b[82:], fourBits(low[:], m[:]))
	}
	for g := range 16 {
		b[g] = s[g] | m[g]<<4
		requantize(q[16*g:16*g+16], x[16*g:], d*float32(b[g]&15), off*float32(b[g]>>4), 3)
	}
	packCrumbs(b[16:], q[:])
}

// fourBits sets q to x in 15 steps of the greatest and returns the step.
func fourBits(x []float32, q []uint8) float32 {
	top := float32(0)
	for _, v := range x {
		top = max(top, v)
	}
	if top <= 0 {
		return 0
	}
	inv := 15 / top
	for j, v := range x {
		q[j] = uint8(nearest(inv * v))
	}
	return top / 15
}
