package num

// The rotary embedding of Su et al., RoFormer (2021), turns pair i of a row by
// an angle given as cos[i] and sin[i]: (a, b) becomes (a·cos - b·sin,
// a·sin + b·cos). cos and sin have the same length; elements of x beyond twice
// that are copied (partial rotary embedding). Negated sines turn back.

// RopeInterleaved turns the pairs (x[2i], x[2i+1]).
func RopeInterleaved[T Float](y, x, cos, sin []T) {
	y, sin = y[:len(x)], sin[:len(cos)]
	for i, c := range cos {
		a, b, s := x[2*i], x[2*i+1], sin[i]
		y[2*i] = T(a*c) - T(b*s)
		y[2*i+1] = T(a*s) + T(b*c)
	}
	copy(y[2*len(cos):], x[2*len(cos):])
}

// RopeHalf turns the pairs (x[i], x[i+len(cos)]).
func RopeHalf[T Float](y, x, cos, sin []T) {
	y, sin = y[:len(x)], sin[:len(cos)]
	h := len(cos)
	for i, c := range cos {
		a, b, s := x[i], x[i+h], sin[i]
		y[i] = T(a*c) - T(b*s)
		y[i+h] = T(a*s) + T(b*c)
	}
	copy(y[2*h:], x[2*h:])
}
