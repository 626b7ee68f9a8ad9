package qdot

// iq3_s: an f16 factor; 64 bytes with the low 8 bits of points of a Grid of four magnitudes; 8 bytes with the upper
// bit of eight points; 32 bytes of signs; 4 bytes with the scales of 32 weights each, the first low, which count twice
// and one more.
var iq3_s = Format{
	Name: "iq3_s", Block: 256, Bytes: 110, odd: 2, each: 32, grid: &IQ3S, slow: true,
	expand: func(q []int8, s, _ []float32, b []byte) {
		d, points := f16(b), IQ3S.table()
		for g := range s[:8] {
			s[g] = float32(d * float32(b[106+g/2]>>(g%2*4)&15*2+1))
		}
		for k := range 32 {
			at, high := b[2+2*k:][:2], int(b[66+k/4])<<8>>(k%4*2)
			p := uint64(points[int(at[0])|high&0x100]) | uint64(points[int(at[1])|high>>1&0x100])<<32
			put(q[8*k:], signed(p, b[74+k]))
		}
	},
}
