package quant

import "encoding/binary"

// iq4_xs is 256 weights v · d · (s - 32), v on the curve of iq4_nl, with a scale s of 6 bits for every 32.
//
//	f16 d; u16: the upper two bits of the scales, the first lowest; 4 bytes: the lower four, the first low;
//	8 × 16 bytes: 16 weights low, 16 high
var iq4_xs = Format{
	Name: "iq4_xs", ID: 23, scales: []int{0},
	encode: func(b []byte, x, w []float32, _ float32) {
		clear(b)
		power := squares(x) * (2.0 / 256)
		var scales [8]float32
		for g := range scales {
			scales[g] = fitCurve(x[32*g:32*g+32], part(w, 32*g, 32*g+32), power)
		}
		d := -peak(scales[:]) / 32
		putHalf(b, d)
		inv, high := inverse(d), uint16(0)
		var q [32]uint8
		for g, s := range scales {
			l := clamp(nearest(inv*s), -32, 31)
			within := inverse(d * float32(l))
			for j, v := range x[32*g : 32*g+32] {
				q[j] = onCurve(within * v)
			}
			packNibbles(b[8+16*g:], q[:])
			l += 32
			b[4+g/2] |= byte(l&15) << (g % 2 * 4)
			high |= uint16(l>>4) << (2 * g)
		}
		binary.LittleEndian.PutUint16(b[2:], high)
	},
}
