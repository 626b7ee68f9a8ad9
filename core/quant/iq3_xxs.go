package quant

import "encoding/binary"

// iq3_xxs is 256 weights of magnitudes 4, 12, 20 … 52 or 62 times a scale, four a point of a grid of 256.
//
//	f16 d; 64 bytes: points; 8 × u32: 4 × 7 signs, the lowest first, and the scale s in the upper 4 bits
//
// A weight is ±m · d · (½ + s)/2. The eighth sign makes the number of negative ones even.
var iq3_xxs = Format{
	Name: "iq3_xxs", ID: 18, scales: []int{0},
	encode: func(b []byte, x, w []float32, _ float32) {
		clear(b)
		power := 2 * squares(x) / 256
		var scales [8]float32
		var bits [8]uint32
		for g := range 8 {
			var weight [32]float32
			var places [8]int
			var signs [4]uint8
			x := x[32*g : 32*g+32]
			weigh(weight[:], x, part(w, 32*g, 32*g+32), power)
			scales[g] = iq3xxsFit.run(x, weight[:], places[:], signs[:])
			for k, p := range places {
				b[2+8*g+k] = byte(p)
			}
			for k, s := range signs {
				bits[g] |= uint32(s&127) << (7 * k)
			}
		}
		var s [8]uint8
		d := gridScales(scales[:], s[:], 31, 15)
		if d == 0 {
			clear(b)
			return
		}
		putHalf(b, d*1.0125)
		for g := range 8 {
			binary.LittleEndian.PutUint32(b[66+4*g:], bits[g]|uint32(s[g])<<28)
		}
	},
}

var iq3xxsFit = gridFit{grid: &iq3xxsGrid, even: true, steps: 15, step: 0.2, least: 1e-8}
