package num

import "math"

// SoftmaxRow sets y[i] to exp(x[i] - max x) divided by the Sum of all these.
// As in torch, a row of nothing but -Inf and a row with +Inf give NaN.
func SoftmaxRow[T Float](y, x []T) {
	y = y[:len(x)]
	Quotient(y, y, ExpSum(y, x, Max(x)))
}

// ExpSum sets y[i] to exp(x[i] - m) and returns the Sum of y.
func ExpSum[T Float](y, x []T, m T) T {
	var l Lanes[T]
	l.AddExp(y, x, m)
	return l.Fold()
}

// AddExp sets y[i] to exp(x[i] - m) and adds these.
func (l *Lanes[T]) AddExp(y, x []T, m T) {
	y = y[:len(x)]
	for simd(len(x)) {
		n := part(len(x))
		if wide[T]() {
			expSumF64(f64(l[:]), f64(y), f64(x), float64(m), n)
		} else {
			expSumF32(f32(l[:]), f32(y), f32(x), float32(m), n)
		}
		x, y = x[n:], y[n:]
	}
	for i, v := range x {
		y[i] = v - m
	}
	Exp(y, y)
	for i, v := range y {
		l[i%lanes] += v
	}
}

// RMSNormRow sets y[i] to x[i]·r·w[i], multiplied from the left, and returns
// r = 1/√(mean of x² + eps). A nil w stands for ones. (Zhang, Sennrich: Root
// mean square layer normalization, 2019)
func RMSNormRow[T Float](y, x, w []T, eps T) (r T) {
	y = y[:len(x)]
	r = 1 / T(math.Sqrt(float64(Dot(x, x)/T(len(x))+eps)))
	ScaleRMS(y, x, w, r)
	return r
}

// ScaleRMS sets y[i] to x[i]·r·w[i], multiplied from the left. A nil w stands for ones.
func ScaleRMS[T Float](y, x, w []T, r T) {
	if w == nil {
		Scale(y, x, r)
		return
	}
	y, w = y[:len(x)], w[:len(x)]
	for simd(len(x)) {
		n := part(len(x))
		if wide[T]() {
			rmsScaleF64(f64(y), f64(x), f64(w), float64(r), n)
		} else {
			rmsScaleF32(f32(y), f32(x), f32(w), float32(r), n)
		}
		x, y, w = x[n:], y[n:], w[n:]
	}
	for i := range x {
		y[i] = T(T(x[i]*r) * w[i])
	}
}

// LayerNormRow sets y[i] to (x[i] - mean)·r·w[i] + b[i], multiplied from the
// left and the last product fused, and returns the mean and
// r = 1/√(variance + eps). The variance is Squares(x, mean) over the length.
// (Ba, Kiros, Hinton: Layer normalization, 2016)
func LayerNormRow[T Float](y, x, w, b []T, eps T) (mean, r T) {
	y, w, b = y[:len(x)], w[:len(x)], b[:len(x)]
	n := T(len(x))
	mean = Sum(x) / n
	r = 1 / T(math.Sqrt(float64(Squares(x, mean)/n+eps)))
	ScaleLayer(y, x, w, b, mean, r)
	return mean, r
}

// ScaleLayer sets y[i] to (x[i] - mean)·r·w[i] + b[i], multiplied from the left and the last product fused.
func ScaleLayer[T Float](y, x, w, b []T, mean, r T) {
	y, w, b = y[:len(x)], w[:len(x)], b[:len(x)]
	for simd(len(x)) {
		n := part(len(x))
		if wide[T]() {
			layerScaleF64(f64(y), f64(x), f64(w), f64(b), float64(mean), float64(r), n)
		} else {
			layerScaleF32(f32(y), f32(x), f32(w), f32(b), float32(mean), float32(r), n)
		}
		x, y, w, b = x[n:], y[n:], w[n:], b[n:]
	}
	for i := range x {
		y[i] = FMA(T((x[i]-mean)*r), w[i], b[i])
	}
}
