package num

import "math"

// lanes is the width of every sum: element i is added to lane i%16 in order of
// i, then lanes 8 to 15 are added to lanes 0 to 7, and so on with 4, 2 and 1.
// That order defines the result, whatever the machine's vectors hold.
const lanes = 16

// fold adds the lanes up.
func fold[T Float](l *[lanes]T) T {
	for h := lanes / 2; h > 0; h /= 2 {
		for j := range h {
			l[j] += l[j+h]
		}
	}
	return l[0]
}

// Sum returns the sum of x, 0 if it is empty.
func Sum[T Float](x []T) T {
	var l [lanes]T
	for ; len(x) >= lanes; x = x[lanes:] {
		for j, v := range x[:lanes] {
			l[j] += v
		}
	}
	for j, v := range x {
		l[j] += v
	}
	return fold(&l)
}

// Dot returns the sum of the products x[i]·y[i], each rounded before it is
// added; Dot(x, x) is the sum of squares. y has at least the length of x.
func Dot[T Float](x, y []T) T {
	var l [lanes]T
	for ; len(x) >= lanes; x, y = x[lanes:], y[lanes:] {
		b := y[:lanes]
		for j, v := range x[:lanes] {
			l[j] += T(v * b[j])
		}
	}
	y = y[:len(x)]
	for j, v := range x {
		l[j] += T(v * y[j])
	}
	return fold(&l)
}

// Max returns the largest element of x, -Inf if it is empty, NaN if there is
// one; +0 is larger than -0.
func Max[T Float](x []T) T {
	a := T(math.Inf(-1))
	b, c, d := a, a, a // the order does not matter: four chains run faster than one
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = max(a, x[0]), max(b, x[1]), max(c, x[2]), max(d, x[3])
	}
	for _, v := range x {
		a = max(a, v)
	}
	return max(a, b, c, d)
}

// Min returns the smallest element of x, +Inf if it is empty, NaN if there is
// one; -0 is smaller than +0.
func Min[T Float](x []T) T {
	a := T(math.Inf(1))
	b, c, d := a, a, a // the order does not matter: four chains run faster than one
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = min(a, x[0]), min(b, x[1]), min(c, x[2]), min(d, x[3])
	}
	for _, v := range x {
		a = min(a, v)
	}
	return min(a, b, c, d)
}
