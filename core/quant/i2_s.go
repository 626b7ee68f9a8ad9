package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// I2SID is the number that BitNet's fork of ggml gives to the type i2_s, whose tensors ImportI2S reads. ggml itself
// gave it to another type, which it removed.
const I2SID = 36

// I2SSize returns the bytes of a tensor of n weights of the type i2_s.
func I2SSize(n int) int { return (n+3)/4 + 32 }

// ImportI2S returns a tensor of the type i2_s as blocks of tq2_0. It is no format of this package because one scale
// holds for the whole tensor, so that a part of it means nothing.
//
//	128 weights in 32 bytes, each having the weights j, j+32, j+64 and j+96, the first highest: 0, 1, 2 for -1, 0, 1;
//	f32, the scale; 28 bytes of nothing
//
// That is what builds for amd64 write; others order the codes by rows, in the same number of bytes, and cannot be
// told from these. The scale becomes an f16. Source: microsoft/BitNet, src/ggml-bitnet-mad.cpp.
//
// Errors: n is no multiple of 256; src has another size than n weights need; a code of 3; a scale that is not finite
// or too large for an f16.
func ImportI2S(src []byte, n int) ([]byte, error) {
	if n < 0 || n%tq2_0.Block != 0 {
		return nil, fmt.Errorf("quant: i2_s: %d weights are no multiple of the %d of a tq2_0 block", n, tq2_0.Block)
	}
	if I2SSize(n) != len(src) {
		return nil, fmt.Errorf("quant: i2_s: %d weights take %d bytes, got %d", n, I2SSize(n), len(src))
	}
	scale := math.Float32frombits(binary.LittleEndian.Uint32(src[n/4:]))
	if !(abs(scale) <= 65504) {
		return nil, fmt.Errorf("quant: i2_s: the scale is %v, which tq2_0 cannot hold", scale)
	}
	dst := make([]byte, tq2_0.Size(n))
	for i := 0; i < n; i += tq2_0.Block {
		var q [256]uint8
		for j := range q {
			b := src[i/4+j/128*32+j%32]
			if q[j] = b >> (6 - j/32%4*2) & 3; q[j] == 3 {
				return nil, fmt.Errorf("quant: i2_s: weight %d has the code 3, want 0, 1 or 2", i+j)
			}
		}
		b := dst[tq2_0.Size(i):]
		packCrumbs(b, q[:])
		putHalf(b[64:], scale)
	}
	return dst, nil
}
