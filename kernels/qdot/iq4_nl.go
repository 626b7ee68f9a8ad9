package qdot

// iq4_nl: as q4_0, but the 4 bits are the place of the weight on a Curve.
var iq4_nl = Format{
	Name: "iq4_nl", Block: 32, Bytes: 18, odd: 2, each: 32, wide: true,
	expand: func(q []int8, s, _ []float32, b []byte) {
		s[0] = f16(b)
		fromTable(q, b[2:], &Curve)
	},
}

// Curve is the sixteen values of iq4_nl and iq4_xs.
var Curve = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
