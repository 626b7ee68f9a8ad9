package num

import "math"

// SoftmaxRow sets y[i] to exp(x[i] - max x) divided by the Sum of all these.
// As in torch, a row of nothing but -Inf and a row with +Inf give NaN.
func SoftmaxRow[T Float](y, x []T) {
	y = y[:len(x)]
	m := Max(x)
	for i, v := range x {
		y[i] = exp(v - m)
	}
	s := Sum(y)
	for i := range y {
		y[i] /= s
	}
}

// RMSNormRow sets y[i] to x[i]·r·w[i], multiplied from the left, and returns
// r = 1/√(mean of x² + eps). A nil w stands for ones. (Zhang, Sennrich: Root
// mean square layer normalization, 2019)
func RMSNormRow[T Float](y, x, w []T, eps T) (r T) {
	y = y[:len(x)]
	r = 1 / T(math.Sqrt(float64(Dot(x, x)/T(len(x))+eps)))
	if w == nil {
		for i, v := range x {
			y[i] = T(v * r)
		}
		return r
	}
	w = w[:len(x)]
	for i, v := range x {
		y[i] = T(T(v*r) * w[i])
	}
	return r
}
