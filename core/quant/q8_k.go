package quant

import (
	"encoding/binary"
	"math"
)

// q8_k is 256 weights q · d, q of 8 bits, signed, and what each 16 add up to. It is the format of what the other
// formats of 256 weights are multiplied by, and of no file.
//
//	f32 d, 256 bytes, 16 × i16 Σ q
//
// The weight of the greatest magnitude becomes -127, so that d has the sign opposite to its own.
var q8_k = Format{
	Name: "q8_k", ID: 15,
	encode: func(b []byte, x, _ []float32, _ float32) {
		clear(b)
		top := peak(x)
		if top == 0 {
			return
		}
		inv := -127 / top
		for j, v := range x {
			b[4+j] = byte(min(127, nearest(inv*v)))
		}
		for g := range 16 {
			total := 0
			for _, q := range b[4+16*g : 20+16*g] {
				total += int(int8(q))
			}
			binary.LittleEndian.PutUint16(b[260+2*g:], uint16(total))
		}
		binary.LittleEndian.PutUint32(b, math.Float32bits(1/inv))
	},
	sound: func(b []byte) bool { return binary.LittleEndian.Uint32(b)&0x7f800000 != 0x7f800000 },
}
