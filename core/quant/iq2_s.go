package quant

// iq2_s is 256 weights of magnitudes 8, 25 or 43 times a scale, eight a point of a grid of 1,024.
//
//	f16 d; 32 bytes: the low bits of the points; 32 bytes: signs; 8 bytes: two upper bits of four points;
//	8 bytes: a scale s of 4 bits for every 16, the first low
//
// A weight is ±m · d · (½ + s)/4.
var iq2_s = Format{
	Name: "iq2_s", ID: 22, scales: []int{0},
	encode: func(b []byte, x, w []float32, _ float32) {
		clear(b)
		power := 2 * squares(x) / 256
		var scales [16]float32
		for g := range 16 {
			var weight [16]float32
			var places [2]int
			var signs [2]uint8
			x := x[16*g : 16*g+16]
			if w != nil {
				weigh(weight[:], x, w[16*g:], power)
			} else {
				for i, v := range x {
					weight[i] = float32(0.25*power) + float32(v*v)
				}
			}
			scales[g] = iq2sFit.run(x, weight[:], places[:], signs[:])
			for k, p := range places {
				at := 2*g + k
				b[2+at], b[34+at] = byte(p), signs[k]
				b[66+at/4] |= byte(p>>8) << (at % 4 * 2)
			}
		}
		var s [16]uint8
		d := gridScales(scales[:], s[:], 31, 15)
		if d == 0 {
			return
		}
		putHalf(b, d*0.9875)
		for g, v := range s {
			b[74+g/2] |= v << (g % 2 * 4)
		}
	},
}

var iq2sFit = gridFit{grid: &iq2sGrid, steps: 9, step: 0.1, least: 1e-8}
