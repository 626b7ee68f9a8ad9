package qdot

import (
	"encoding/binary"

	"github.com/fucina-go/fucina/kernels/half"
)

// f16 is the number that b begins with.
func f16(b []byte) float32 { return half.Value(binary.LittleEndian.Uint16(b)) }

// nibbles sets the first half of q to the low 4 bits of as many bytes, and the other half to the high ones.
func nibbles(q []int8, b []byte) {
	n := len(q) / 2
	for j := range n {
		q[j], q[j+n] = int8(b[j]&15), int8(b[j]>>4)
	}
}

// fifths adds to 32 weights of 4 bits their fifth bits, which are a word.
func fifths(q []int8, b []byte) {
	bits := binary.LittleEndian.Uint32(b)
	for j := range q {
		q[j] |= int8(bits>>j&1) << 4
	}
}

// pairs sets q to the 2 bits that 256 weights have in 64 bytes: of 32 bytes, byte j has those of the weights j, 32+j,
// 64+j and 96+j, the first lowest.
func pairs(q []int8, b []byte) {
	for j := range q {
		q[j] = int8(b[j/128*32+j%32] >> (j % 128 / 32 * 2) & 3)
	}
}
