// Package half converts runs of f16 (IEEE 754 binary16) and bf16 (the upper half
// of a binary32) to and from float32, and blocks of q8_0, bytes with a factor of
// f16, to float32.
//
// The Go code is the specification; assembly of every tier of kernels/cpu gives
// the same bits, those of the conversions of one value in core/dtype. The output
// comes first, has at least the length of the input, and must not overlap it.
package half

import (
	"math"

	"github.com/fucina-go/fucina/kernels/cpu"
)

// The files simd_* are generated; they treat whole groups of 16 elements.
//
//go:generate go run ../internal/gen ..

const lanes = 16

// part is how many of n elements go to one call of the assembly, which takes long runs in parts: in it a goroutine
// cannot be preempted, and the collector waits for it.
func part(n int) int {
	if !hasSIMD || n < lanes || cpu.Current() == cpu.Generic {
		return 0
	}
	return min(n&^(lanes-1), 1<<14)
}

// FromF16 sets y[i] to the value of the f16 bits x[i], exactly. A NaN keeps its
// sign and payload and becomes quiet.
func FromF16(y []float32, x []uint16) {
	y = y[:len(x)]
	for n := part(len(x)); n > 0; n = part(len(x)) {
		widenF16(&y[0], &x[0], n)
		x, y = x[n:], y[n:]
	}
	for i, h := range x {
		y[i] = Value(h)
	}
}

// The bytes and the elements of a block of q8_0.
const (
	q8Bytes = 34
	q8Len   = 32
)

// FromQ8 sets y to the numbers in whole blocks of q8_0: 34 bytes each, a factor of f16, the lower byte first, and 32
// signed integers. What lies ahead bytes behind them is fetched from memory meanwhile.
func FromQ8(y []float32, x []byte, ahead int) {
	blocks := len(x) / q8Bytes
	y, x = y[:blocks*q8Len], x[:blocks*q8Bytes]
	if hasSIMD && cpu.Current() != cpu.Generic {
		const most = 512 // blocks of one call, which cannot be preempted
		for ; blocks > 0; blocks -= most {
			n := min(most, blocks)
			widenQ8F32(&y[0], &x[0], n, ahead)
			y, x = y[n*q8Len:], x[n*q8Bytes:]
		}
		return
	}
	for ; len(x) > 0; x, y = x[q8Bytes:], y[q8Len:] {
		d := Value(uint16(x[0]) | uint16(x[1])<<8)
		for i, q := range x[2:q8Bytes] {
			y[i] = float32(d * float32(int8(q)))
		}
	}
}

// Value is the number with the f16 bits h: the fields move into place, and a
// multiplication corrects the bias of the exponent, of subnormal numbers too.
func Value(h uint16) float32 {
	sign, rest := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case rest > 0x7c00:
		return math.Float32frombits(sign | 0x7fc00000 | rest<<13)
	case rest == 0x7c00:
		return math.Float32frombits(sign | 0x7f800000)
	}
	f := float32(math.Float32frombits(rest<<13) * 0x1p112)
	return math.Float32frombits(sign | math.Float32bits(f))
}

// ToF16 sets y[i] to the bits of the f16 nearest to x[i], ties to even; what
// rounds above 65504 becomes infinite. A NaN becomes quiet and keeps its sign
// and the upper ten bits of its payload.
func ToF16(y []uint16, x []float32) {
	y = y[:len(x)]
	for n := part(len(x)); n > 0; n = part(len(x)) {
		narrowF16(&y[0], &x[0], n)
		x, y = x[n:], y[n:]
	}
	for i, f := range x {
		y[i] = toF16(f)
	}
}

func toF16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign, rest := uint16(bits>>16&0x8000), bits&0x7fffffff
	switch {
	case rest > 0x7f800000:
		return sign | 0x7e00 | uint16(rest>>13&0x3ff)
	case rest >= 0x47800000: // 2¹⁶
		return sign | 0x7c00
	case rest < 0x38800000: // 2⁻¹⁴: a subnormal number counts units of 2⁻²⁴, which is the last place of ½
		return sign | uint16(math.Float32bits(math.Float32frombits(rest)+0.5)-math.Float32bits(0.5))
	}
	return sign | uint16((rest+0xfff+rest>>13&1)>>13-(127-15)<<10) // a carry out of the fraction may give infinity
}

// FromBF16 sets y[i] to the value of the bf16 bits x[i], which are the upper half
// of its own.
func FromBF16(y []float32, x []uint16) {
	y = y[:len(x)]
	for n := part(len(x)); n > 0; n = part(len(x)) {
		widenBF16(&y[0], &x[0], n)
		x, y = x[n:], y[n:]
	}
	for i, h := range x {
		y[i] = math.Float32frombits(uint32(h) << 16)
	}
}

// ToBF16 sets y[i] to the bits of the bf16 nearest to x[i], ties to even. A NaN
// becomes quiet and keeps its sign and the upper seven bits of its payload.
func ToBF16(y []uint16, x []float32) {
	y = y[:len(x)]
	for n := part(len(x)); n > 0; n = part(len(x)) {
		narrowBF16(&y[0], &x[0], n)
		x, y = x[n:], y[n:]
	}
	for i, f := range x {
		y[i] = toBF16(f)
	}
}

func toBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	if f != f {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
