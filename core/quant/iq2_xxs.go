package quant

import "encoding/binary"

// iq2_xxs is 256 weights of magnitudes 8, 25 or 43 times a scale, eight a point of a grid of 256.
//
//	f16 d; 8 × 32 weights: 4 bytes: points; u32: 4 × 7 signs, the lowest first, and the scale s in the upper 4 bits
//
// A weight is ±m · d · (½ + s)/4. The eighth sign makes the number of negative ones even.
var iq2_xxs = Format{
	Name: "iq2_xxs", ID: 16, Importance: true, scales: []int{0},
	encode: func(b []byte, x, w []float32, _ float32) {
		clear(b)
		power := squares(x) / 256
		var scales [8]float32
		var bits [8]uint32
		for g := range 8 {
			var weight [32]float32
			var places [4]int
			var signs [4]uint8
			x := x[32*g : 32*g+32]
			weigh(weight[:], x, w[32*g:], power)
			scales[g] = iq2xxsFit.run(x, weight[:], places[:], signs[:])
			for k, p := range places {
				b[2+8*g+k] = byte(p)
				bits[g] |= uint32(signs[k]&127) << (7 * k)
			}
		}
		var s [8]uint8
		d := gridScales(scales[:], s[:], 31, 15)
		if d == 0 {
			clear(b)
			return
		}
		putHalf(b, d)
		for g := range 8 {
			binary.LittleEndian.PutUint32(b[6+8*g:], bits[g]|uint32(s[g])<<28)
		}
	},
}

var iq2xxsFit = gridFit{grid: &iq2xxsGrid, even: true, steps: 6, step: 0.1, least: tiny, first: true, redo: always}
