package qdot

// q2_0: an f16 scale, then 16 bytes, byte j holding 2 bits of each of the weights 4j to 4j+3. 1 is added to each
// weight.
var q2_0 = Format{
	Name: "q2_0", Block: 64, Bytes: 18, odd: 2, each: 32,
	expand: func(q []int8, s, _ []float32, b []byte) {
		s[0], s[1] = f16(b), f16(b)
		for j := range q {
			q[j] = int8(b[2+j/4]>>(j%4*2)&3) - 1
		}
	},
}
