package num

// The rotary embedding of Su et al., RoFormer (2021), turns pair i of a row by
// an angle given as cos[i] and sin[i]: (a, b) becomes (a·cos - b·sin,
// a·sin + b·cos). cos and sin have the same length; elements of x beyond twice
// that are copied (partial rotary embedding). Negated sines turn back.

// RopeInterleaved turns the pairs (x[2i], x[2i+1]).
func RopeInterleaved[T Float](y, x, cos, sin []T) {
	y, sin = y[:len(x)], sin[:len(cos)]
	_ = x[:2*len(cos)] // the assembly checks no bounds
	i := 0
	for n := part(2 * len(cos)); !wide[T]() && simd(n); n = part(2 * (len(cos) - i)) {
		ropePairsF32(f32(y[2*i:]), f32(x[2*i:]), f32(cos[i:]), f32(sin[i:]), n)
		i += n / 2
	}
	for ; i < len(cos); i++ {
		a, b, c, s := x[2*i], x[2*i+1], cos[i], sin[i]
		y[2*i] = T(a*c) - T(b*s)
		y[2*i+1] = T(a*s) + T(b*c)
	}
	copy(y[2*len(cos):], x[2*len(cos):])
}

// RopeHalf turns the pairs (x[i], x[i+len(cos)]).
func RopeHalf[T Float](y, x, cos, sin []T) {
	y, sin = y[:len(x)], sin[:len(cos)]
	h := len(cos)
	_ = x[:2*h]
	i := 0
	for !wide[T]() && simd(h-i) {
		n := part(h - i)
		ropeHalfF32(f32(y[i:]), f32(y[h+i:]), f32(x[i:]), f32(x[h+i:]), f32(cos[i:]), f32(sin[i:]), n)
		i += n
	}
	for ; i < h; i++ {
		a, b, c, s := x[i], x[i+h], cos[i], sin[i]
		y[i] = T(a*c) - T(b*s)
		y[i+h] = T(a*s) + T(b*c)
	}
	copy(y[2*h:], x[2*h:])
}
