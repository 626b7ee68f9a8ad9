package qdot

import (
	"encoding/binary"

	"github.com/fucina-go/fucina/kernels/half"
)

// iq1_m: 32 bytes with the low 8 bits of points as in iq1_s; 16 bytes of which each has for two points 3 upper bits
// and one that moves them down; four words of 16 bits with four scales of 3 bits, of 16 weights each, which count
// twice and one more, and above them 4 bits of an f16 factor, the lowest first.
var iq1_m = Format{
	Name: "iq1_m", Block: 256, Bytes: 56, each: 16, grid: &IQ1, slow: true,
	expand: func(q []int8, s, _ []float32, b []byte) {
		factor := uint16(0)
		for i := range 4 {
			factor |= binary.LittleEndian.Uint16(b[48+2*i:]) >> 12 << (4 * i)
		}
		d, points := half.Value(factor)/8, IQ1.table()
		for i := range s[:16] {
			bits := binary.LittleEndian.Uint16(b[48+i/4*2:]) >> (i % 4 * 3) & 7
			s[i] = float32(d * float32(2*bits+1))
		}
		for k := range 32 {
			high := int(b[32+k/2] >> (k % 2 * 4))
			put(q[8*k:], moved(point(points, int(b[k])|high&7<<8), uint64(high>>3&1)))
		}
	},
}
