package num

import "math"

// lanes is the width of every sum: element i is added to lane i%16 in order of
// i, then lanes 8 to 15 are added to lanes 0 to 7, and so on with 4, 2 and 1.
// That order defines the result, whatever the machine's vectors hold.
const lanes = 16

// Block is how many elements Sum adds up at once: a longer run is the sum, by the
// same rule, of the sums of its blocks. So blocks may be added up apart, and rounding errors
// do not grow with the run. The four quarters of a whole block are added element by element first, (0 + 1) + (2 + 3),
// because one chain of additions is slower than memory.
const Block = 1 << 14

// Lanes is a sum in progress, for rows that are added up in pieces: of which all but the last must be multiples of 16
// long. The bits are those of the row in one piece.
type Lanes[T Float] [lanes]T

// Fold is the sum. The lanes are of no use afterwards.
func (l *Lanes[T]) Fold() T { return fold((*[lanes]T)(l)) }

// fold adds the lanes up.
func fold[T Float](l *[lanes]T) T {
	s0, s1, s2, s3 := l[0]+l[8], l[1]+l[9], l[2]+l[10], l[3]+l[11]
	s4, s5, s6, s7 := l[4]+l[12], l[5]+l[13], l[6]+l[14], l[7]+l[15]
	return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
}

// Sum returns the sum of x, 0 if it is empty.
func Sum[T Float](x []T) T {
	switch {
	case len(x) == Block:
		return sumQuarters(x)
	case len(x) < Block:
		return sumBlock(x)
	}
	unit := Block // elements of a part: the parts are no more than Block
	for (len(x)-1)/unit >= Block {
		unit *= Block
	}
	var l [lanes]T
	for i := 0; len(x) > 0; i++ {
		n := min(unit, len(x))
		l[i%lanes] += Sum(x[:n])
		x = x[n:]
	}
	return fold(&l)
}

// sumQuarters is Sum of Block elements.
func sumQuarters[T Float](x []T) T {
	const quarter = Block / 4
	a, b, c, d := x[:quarter], x[quarter:2*quarter], x[2*quarter:3*quarter], x[3*quarter:Block]
	var l [lanes]T
	if vectors() {
		if wide[T]() {
			sum4F64(f64(l[:]), f64(a), f64(b), f64(c), f64(d), quarter)
		} else {
			sum4F32(f32(l[:]), f32(a), f32(b), f32(c), f32(d), quarter)
		}
		return fold(&l)
	}
	for i, v := range a {
		l[i%lanes] += (v + b[i]) + (c[i] + d[i])
	}
	return fold(&l)
}

// sumBlock is Sum of fewer than Block elements.
func sumBlock[T Float](x []T) T {
	var l [lanes]T
	for simd(len(x)) {
		n := part(len(x))
		if wide[T]() {
			sumF64(f64(l[:]), f64(x), n)
		} else {
			sumF32(f32(l[:]), f32(x), n)
		}
		x = x[n:]
	}
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

// Dot returns the sum of the products x[i]·y[i], each added to its lane by an
// FMA; Dot(x, x) is the sum of squares. y has at least the length of x.
func Dot[T Float](x, y []T) T {
	var l Lanes[T]
	l.AddProducts(x, y)
	return l.Fold()
}

// AddProducts adds x[i]·y[i], each fused with its addition.
func (l *Lanes[T]) AddProducts(x, y []T) {
	for simd(len(x)) {
		n := part(len(x))
		if wide[T]() {
			dotF64(f64(l[:]), f64(x), f64(y[:n]), n)
		} else {
			dotF32(f32(l[:]), f32(x), f32(y[:n]), n)
		}
		x, y = x[n:], y[n:]
	}
	for ; len(x) >= lanes; x, y = x[lanes:], y[lanes:] {
		b := y[:lanes]
		for j, v := range x[:lanes] {
			l[j] = FMA(v, b[j], l[j])
		}
	}
	y = y[:len(x)]
	for j, v := range x {
		l[j] = FMA(v, y[j], l[j])
	}
}

// Squares returns the sum of (x[i] - m)², each rounded as a difference and added
// to its lane by an FMA.
func Squares[T Float](x []T, m T) T {
	var l Lanes[T]
	l.AddSquares(x, m)
	return l.Fold()
}

// AddSquares adds (x[i] - m)², each fused with its addition.
func (l *Lanes[T]) AddSquares(x []T, m T) {
	for simd(len(x)) {
		n := part(len(x))
		if wide[T]() {
			squaresF64(f64(l[:]), f64(x), float64(m), n)
		} else {
			squaresF32(f32(l[:]), f32(x), float32(m), n)
		}
		x = x[n:]
	}
	for i, v := range x {
		d := v - m
		l[i%lanes] = FMA(d, d, l[i%lanes])
	}
}

// Max returns the largest element of x, -Inf if it is empty, NaN if there is
// one; +0 is larger than -0.
func Max[T Float](x []T) T {
	a := T(math.Inf(-1))
	for simd(len(x)) {
		n := part(len(x))
		a = max(a, maxSIMD(x[:n]))
		x = x[n:]
	}
	b, c, d := a, a, a // the order does not matter: four chains run faster than one
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = max(a, x[0]), max(b, x[1]), max(c, x[2]), max(d, x[3])
	}
	for _, v := range x {
		a = max(a, v)
	}
	return max(a, b, c, d)
}

// maxSIMD is Max of whole groups.
func maxSIMD[T Float](x []T) T {
	n := len(x)
	var l [lanes]T
	copy(l[:], x)
	if wide[T]() {
		maxF64(f64(l[:]), f64(x), n)
	} else {
		maxF32(f32(l[:]), f32(x), n)
	}
	a := l[0]
	for _, v := range l[1:] {
		if v > a || v != v { // a NaN stays
			a = v
		}
	}
	for i := 0; a == 0 && i < n; i++ {
		a = max(a, x[i]) // the instruction does not tell zeros apart
		if !math.Signbit(float64(a)) {
			break
		}
	}
	return a
}

// Min returns the smallest element of x, +Inf if it is empty, NaN if there is
// one; -0 is smaller than +0.
func Min[T Float](x []T) T {
	a := T(math.Inf(1))
	for simd(len(x)) {
		n := part(len(x))
		a = min(a, minSIMD(x[:n]))
		x = x[n:]
	}
	b, c, d := a, a, a // the order does not matter: four chains run faster than one
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = min(a, x[0]), min(b, x[1]), min(c, x[2]), min(d, x[3])
	}
	for _, v := range x {
		a = min(a, v)
	}
	return min(a, b, c, d)
}

// minSIMD is Min of whole groups.
func minSIMD[T Float](x []T) T {
	n := len(x)
	var l [lanes]T
	copy(l[:], x)
	if wide[T]() {
		minF64(f64(l[:]), f64(x), n)
	} else {
		minF32(f32(l[:]), f32(x), n)
	}
	a := l[0]
	for _, v := range l[1:] {
		if v < a || v != v {
			a = v
		}
	}
	for i := 0; a == 0 && i < n; i++ {
		a = min(a, x[i]) // the instruction does not tell zeros apart
		if math.Signbit(float64(a)) {
			break
		}
	}
	return a
}
