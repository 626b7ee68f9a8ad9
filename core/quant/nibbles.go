package quant

import "encoding/binary"

// packNibbles stores 2n integers of four bits in n bytes: the first half of q low, the second high.
func packNibbles(b []byte, q []uint8) {
	n := len(q) / 2
	for j := range n {
		b[j] = q[j]&15 | q[j+n]<<4
	}
}

// packFifth stores 32 integers of five bits: the highest bit of each in the four bytes of high, in order, the
// others as packNibbles does.
func packFifth(high, low []byte, q []uint8) {
	packNibbles(low, q)
	bits := uint32(0)
	for j, v := range q[:32] {
		bits |= uint32(v>>4&1) << j
	}
	binary.LittleEndian.PutUint32(high, bits)
}
