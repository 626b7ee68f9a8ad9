package qdot

// q1_0: an f16 scale, then a bit for each weight, set for 1 and not for -1.
var q1_0 = Format{
	Name: "q1_0", Block: 128, Bytes: 18, odd: 2, each: 32,
	expand: func(q []int8, s, _ []float32, b []byte) {
		for i := range s[:4] {
			s[i] = f16(b)
		}
		for i, v := range b[2:18] {
			put(q[8*i:], less(2*spread(v), 1))
		}
	},
}
