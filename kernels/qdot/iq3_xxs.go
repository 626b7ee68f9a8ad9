package qdot

import "encoding/binary"

// iq3_xxs: an f16 factor; 64 bytes that are points of a Grid of four magnitudes; eight words of signs and a scale for
// 32 weights as in iq2_xxs.
var iq3_xxs = Format{
	Name: "iq3_xxs", Block: 256, Bytes: 98, odd: 2, each: 32, wide: true, grid: &IQ3XXS, slow: true,
	expand: func(q []int8, s, _ []float32, b []byte) {
		d, points := f16(b)/4, IQ3XXS.table()
		for g := range s[:8] {
			bits := binary.LittleEndian.Uint32(b[66+4*g:])
			s[g] = float32(d * float32(2*(bits>>28)+1))
			for k := range 4 {
				at := b[2+8*g+2*k:][:2]
				p := uint64(points[at[0]]) | uint64(points[at[1]])<<32
				put(q[32*g+8*k:], signed(p, even(uint8(bits>>(7*k)))))
			}
		}
	},
}
