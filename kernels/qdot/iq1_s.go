package qdot

import "encoding/binary"

// iq1_s: an f16 factor; 32 bytes with the low 8 bits of points of a Grid of eight weights; eight words of 16 bits for
// 32 weights: 3 upper bits of each of four points, a scale of 3 bits, which counts twice and one more, and a bit that
// moves the weights down, otherwise they are moved up. The integers are eight times -1, 0 or 1, moved by one.
var iq1_s = Format{
	Name: "iq1_s", Block: 256, Bytes: 50, odd: 2, each: 32, grid: &IQ1, slow: true,
	expand: func(q []int8, s, _ []float32, b []byte) {
		d, points := f16(b)/8, IQ1.table()
		for k := range 32 {
			bits := binary.LittleEndian.Uint16(b[34+k/4*2:])
			s[k/4] = float32(d * float32(2*(bits>>12&7)+1))
			put(q[8*k:], moved(point(points, int(b[2+k])|int(bits>>(k%4*3)&7)<<8), uint64(bits>>15)))
		}
	},
}

// moved is a point of iq1_s or iq1_m, moved down by one if the bit is set, otherwise up.
func moved(p, down uint64) uint64 { return less(p, 15+2*down) }
