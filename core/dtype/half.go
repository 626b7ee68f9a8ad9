package dtype

import "math"

// F16ToF32 returns the value of the IEEE 754 binary16 with bits h. It is exact for every input; a NaN
// keeps its sign and payload and becomes quiet.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 0x1f
	frac := uint32(h) & 0x3ff
	switch exp {
	case 0:
		// Zero or subnormal: frac × 2⁻²⁴, a product of two exact f32 values that is itself exact.
		const ulp = 1.0 / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*ulp))
	case 0x1f:
		bits := sign | 0x7f800000 | frac<<13
		if frac != 0 {
			bits |= 0x00400000
		}
		return math.Float32frombits(bits)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}

// F32ToF16 returns the bits of the binary16 nearest to f, ties to even. Values that round above 65504
// become infinite, values too small become subnormal or zero with f's sign. A NaN becomes quiet and keeps
// its sign and the upper ten bits of its payload.
func F32ToF16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits>>16) & 0x8000
	abs := bits & 0x7fffffff
	switch {
	case abs > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(abs>>13)&0x3ff
	case abs >= 0x47800000: // 2¹⁶ and more, infinity included
		return sign | 0x7c00
	case abs >= 0x38800000: // 2⁻¹⁴ and more: normal; a carry out of the fraction may reach infinity
		abs -= (127 - 15) << 23
		return sign | uint16((abs+0xfff+abs>>13&1)>>13)
	case abs < 0x33000000: // below 2⁻²⁵, half the smallest subnormal: zero
		return sign
	}
	// Subnormal: the value is m × 2^(exp-150); its unit is 2⁻²⁴, so 126-exp (14 … 24) bits are dropped.
	exp := abs >> 23
	m := abs&0x7fffff | 0x800000
	drop := 126 - exp
	half := uint32(1) << (drop - 1)
	return sign | uint16((m+half-1+m>>drop&1)>>drop)
}

// BF16ToF32 returns the value of the bfloat16 with bits b: b is the upper half of the result's bits.
func BF16ToF32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// F32ToBF16 returns the bits of the bfloat16 nearest to f, ties to even; values that round above the
// largest finite one become infinite. A NaN becomes quiet and keeps its sign and the upper seven bits of
// its payload.
func F32ToBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&0x7fffffff > 0x7f800000 {
		return uint16(bits>>16) | 0x0040
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
