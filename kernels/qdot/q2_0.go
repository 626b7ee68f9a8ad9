package qdot

import "encoding/binary"

// q2_0: an f16 scale, then 16 bytes, byte j holding 2 bits of each of the weights 4j to 4j+3. 1 is added to each
// weight.
var q2_0 = Format{
	Name: "q2_0", Block: 64, Bytes: 18, odd: 2, each: 32,
	expand: func(q []int8, s, _ []float32, b []byte) {
		s[0], s[1] = f16(b), f16(b)
		for i := range 8 { // two bytes are halved until a byte has 2 bits
			w := uint64(binary.LittleEndian.Uint16(b[2+2*i:]))
			w = (w | w<<24) & 0x000000FF000000FF
			w = (w | w<<12) & 0x000F000F000F000F
			w = (w | w<<6) & (3 * ones)
			put(q[8*i:], less(w, 1))
		}
	},
}
