package quant

import "encoding/binary"

// iq2_xs is 256 weights of magnitudes 8, 25 or 43 times a scale, eight a point of a grid of 512.
//
//	f16 d; 32 × u16: 9 bits point, 7 bits signs; 8 bytes: a scale s of 4 bits for every 16, the first low
//
// A weight is ±m · d · (½ + s)/4. The eighth sign makes the number of negative ones even.
var iq2_xs = Format{
	Name: "iq2_xs", ID: 17, Importance: true, scales: []int{0},
	encode: func(b []byte, x, w []float32, _ float32) {
		clear(b)
		power := squares(x) / 256
		var scales [16]float32
		for g := range 16 {
			var weight [16]float32
			var places [2]int
			var signs [2]uint8
			x := x[16*g : 16*g+16]
			weigh(weight[:], x, w[16*g:], power)
			scales[g] = iq2xsFit.run(x, weight[:], places[:], signs[:])
			for k, p := range places {
				binary.LittleEndian.PutUint16(b[2+4*g+2*k:], uint16(p)|uint16(signs[k]&127)<<9)
			}
		}
		var s [16]uint8
		d := gridScales(scales[:], s[:], 31, 15)
		if d == 0 {
			clear(b)
			return
		}
		putHalf(b, d)
		for g, v := range s {
			b[66+g/2] |= v << (g % 2 * 4)
		}
	},
}

var iq2xsFit = gridFit{grid: &iq2xsGrid, even: true, steps: 9, step: 0.1, least: tiny}
