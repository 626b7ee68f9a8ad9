package num

// Softcap sets y[i] to limit · tanh(x[i] / limit), which lies between -limit and limit: one division, Tanh, one
// product.
func Softcap[T Float](y, x []T, limit T) {
	x = x[:len(y)]
	for i := range y {
		y[i] = x[i] / limit
	}
	Tanh(y, y)
	Scale(y, y, limit)
}
