package qdot

import (
	"encoding/binary"
	"math"
)

// half is the f16 number that b begins with.
func half(b []byte) float32 {
	h := binary.LittleEndian.Uint16(b)
	sign, exponent, mantissa := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exponent {
	case 0: // a multiple of 2⁻²⁴
		v := math.Float32bits(float32(float32(mantissa) * 0x1p-24))
		return math.Float32frombits(v | sign)
	case 31:
		return math.Float32frombits(sign | 0xFF<<23 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | mantissa<<13)
}

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
