package qdot

import "encoding/binary"

// iq2_xxs: an f16 factor, then eight times 8 bytes for 32 weights: four bytes that are points of a Grid, each of eight
// magnitudes, and a word with four times 7 signs, the lowest first, and a scale in its upper 4 bits, which counts twice
// and one more. An eighth sign makes the number of negative ones even.
var iq2_xxs = Format{
	Name: "iq2_xxs", Block: 256, Bytes: 66, odd: 2, each: 32, wide: true, grid: &IQ2XXS, slow: true,
	expand: func(q []int8, s, _ []float32, b []byte) {
		d, points := f16(b)/8, IQ2XXS.table()
		for g := range s[:8] {
			at := b[2+8*g:]
			bits := binary.LittleEndian.Uint32(at[4:])
			s[g] = float32(d * float32(2*(bits>>28)+1))
			for k := range 4 {
				put(q[32*g+8*k:], signed(point(points, int(at[k])), even(uint8(bits>>(7*k)))))
			}
		}
	},
}
