package qdot

import "encoding/binary"

// iq2_xs: an f16 factor; 32 words of 16 bits, each with a point of a Grid of eight magnitudes in 9 bits and 7 signs,
// an eighth making the number of negative ones even; 8 bytes with the scales of 16 weights each, the first low, which
// count twice and one more.
var iq2_xs = Format{
	Name: "iq2_xs", Block: 256, Bytes: 74, odd: 2, each: 16, wide: true, grid: &IQ2XS, slow: true,
	expand: func(q []int8, s, _ []float32, b []byte) {
		crumbledScales(s, f16(b)/8, b[66:])
		points := IQ2XS.table()
		for k := range 32 {
			bits := binary.LittleEndian.Uint16(b[2+2*k:])
			put(q[8*k:], signed(point(points, int(bits&511)), even(uint8(bits>>9))))
		}
	},
}

// crumbledScales sets s to 16 scales of 4 bits in 8 bytes, twice and one more, times d.
func crumbledScales(s []float32, d float32, b []byte) {
	for i := range s[:16] {
		s[i] = float32(d * float32(b[i/2]>>(i%2*4)&15*2+1))
	}
}
