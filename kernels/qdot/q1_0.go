package qdot

// q1_0: an f16 scale, then a bit for each weight, set for 1 and not for -1.
var q1_0 = Format{
	Name: "q1_0", Block: 128, Bytes: 18, odd: 2, each: 32,
	expand: func(q []int8, s, _ []float32, b []byte) {
		for i := range s[:4] {
			s[i] = f16(b)
		}
		for j := range q {
			q[j] = int8(b[2+j/8]>>(j%8)&1)*2 - 1
		}
	},
}
