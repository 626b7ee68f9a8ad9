package qdot

// iq2_s: an f16 factor; 32 bytes with the low 8 bits of points of a Grid of eight magnitudes; 32 bytes of signs; 8
// bytes with two upper bits of four points; 8 bytes of scales as in iq2_xs.
var iq2_s = Format{
	Name: "iq2_s", Block: 256, Bytes: 82, odd: 2, each: 16, wide: true, grid: &IQ2S, slow: true,
	expand: func(q []int8, s, _ []float32, b []byte) {
		crumbledScales(s, f16(b)/8, b[74:])
		points := IQ2S.table()
		for k := range 32 {
			place := int(b[2+k]) | int(b[66+k/4]>>(k%4*2)&3)<<8
			put(q[8*k:], signed(point(points, place), b[34+k]))
		}
	},
}
