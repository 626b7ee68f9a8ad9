package quant

import (
	"encoding/binary"

	"github.com/fucina-go/fucina/core/dtype"
)

// bf16 is the upper half of a binary32: a block is one number.
var bf16 = Format{
	Name: "bf16", ID: 30, Block: 1, Bytes: 2,
	decode: func(y []float32, b []byte) { y[0] = dtype.BF16ToF32(binary.LittleEndian.Uint16(b)) },
	encode: func(b []byte, x, _ []float32, _ float32) {
		binary.LittleEndian.PutUint16(b, dtype.F32ToBF16(x[0]))
	},
	sound: func(b []byte) bool { return binary.LittleEndian.Uint16(b)&0x7f80 != 0x7f80 },
}
