package qdot

import (
	"encoding/binary"

	"github.com/fucina-go/fucina/kernels/half"
)

// f16 is the number that b begins with.
func f16(b []byte) float32 { return half.Value(binary.LittleEndian.Uint16(b)) }

// Integers are taken apart eight at a time, bytes of a uint64 of which the lowest is the first.

const (
	ones = 0x0101010101010101 // in every byte

	lowNibbles = 15 * ones
	tops       = 0x8080808080808080 // the highest bit of every byte
)

// eight is the first eight bytes of b.
func eight(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// put sets the first eight of q to the bytes of w.
func put(q []int8, w uint64) {
	q = q[:8]
	q[0], q[1], q[2], q[3] = int8(w), int8(w>>8), int8(w>>16), int8(w>>24)
	q[4], q[5], q[6], q[7] = int8(w>>32), int8(w>>40), int8(w>>48), int8(w>>56)
}

// less is the bytes of w, which are below 128, less n, which is at most 128.
func less(w, n uint64) uint64 { return ((w | tops) - n*ones) ^ tops }

// spread is the eight bits of b, a byte each.
func spread(b byte) uint64 {
	return (uint64(b)*ones&0x8040201008040201 + 0x7F*ones) >> 7 & ones
}

// nibbles sets the first half of q to the low 4 bits of as many bytes, and the other half to the high ones, all less n.
func nibbles(q []int8, b []byte, n uint64) {
	half := len(q) / 2
	for j := 0; j < half; j += 8 {
		w := eight(b[j:])
		put(q[j:], less(w&lowNibbles, n))
		put(q[j+half:], less(w>>4&lowNibbles, n))
	}
}

// fifths sets q to 32 weights of 5 bits, less n: the fifth bits are a word, the others as nibbles has them.
func fifths(q []int8, bits, b []byte, n uint64) {
	for j := range 4 {
		w := eight(b[j%2*8:]) >> (j / 2 * 4) & lowNibbles
		put(q[8*j:], less(w|spread(bits[j])<<4, n))
	}
}

// fromTable sets the first half of q to what the low 4 bits of as many bytes stand for, and the other half to what the
// high ones do.
func fromTable(q []int8, b []byte, table *[16]int8) {
	low, high := q[:len(q)/2], q[len(q)/2:]
	b = b[:len(low)]
	high = high[:len(low)]
	for j, v := range b {
		low[j], high[j] = table[v&15], table[v>>4]
	}
}

// pairs is eight integers of 2 bits, 8i to 8i+7 of 256 that are stored in 64 bytes: of 32, byte j has those of the
// weights j, 32+j, 64+j and 96+j, the first lowest.
func pairs(b []byte, i int) uint64 {
	return eight(b[i/16*32+i%4*8:]) >> (i % 16 / 4 * 2) & (3 * ones)
}
