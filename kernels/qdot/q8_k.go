package qdot

import (
	"encoding/binary"
	"math"
)

// q8_k: a float32 scale, 256 bytes, 32 bytes that are of no use here.
var q8_k = Format{
	Name: "q8_k", Block: 256, Bytes: 292, each: 32, wide: true,
	expand: func(q []int8, s, _ []float32, b []byte) {
		for i := range s[:8] {
			s[i] = math.Float32frombits(binary.LittleEndian.Uint32(b))
		}
		for j := 0; j < 256; j += 8 {
			put(q[j:], eight(b[4+j:]))
		}
	},
}
