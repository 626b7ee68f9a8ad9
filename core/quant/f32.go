package quant

import (
	"encoding/binary"
	"math"
)

// f32 is IEEE 754 binary32: a block is one number.
var f32 = Format{
	Name: "f32", ID: 0, Block: 1, Bytes: 4,
	decode: func(y []float32, b []byte) { y[0] = math.Float32frombits(binary.LittleEndian.Uint32(b)) },
	encode: func(b []byte, x, _ []float32, _ float32) {
		binary.LittleEndian.PutUint32(b, math.Float32bits(x[0]))
	},
	sound: func(b []byte) bool { return binary.LittleEndian.Uint32(b)&0x7f800000 != 0x7f800000 },
}
