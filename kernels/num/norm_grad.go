package num

// standardBlock is how many elements standardize does at once.
const standardBlock = 512

// standardize sets y[i] to (x[i] - mean)·r.
func standardize[T Float](y, x []T, mean, r T) {
	var ones, zeros [standardBlock]T
	for i := range min(len(ones), len(x)) {
		ones[i] = 1
	}
	for len(x) > 0 {
		n := min(standardBlock, len(x))
		ScaleLayer(y[:n], x[:n], ones[:n], zeros[:n], mean, r)
		x, y = x[n:], y[n:]
	}
}

// LayerNormGradRow is the gradient of a row y = (x - mean)·r·w + b of LayerNormRow: it sets gx to that with respect to
// x, given g, that with respect to y, and adds those with respect to w and b to gw and gb. A nil w stands for ones.
// With xr = (x - mean)·r and gr = g·w, gx is r·(gr - mean(gr) - xr·mean(gr·xr)). room is as long as the row. (Ba,
// Kiros, Hinton: Layer normalization, 2016)
func LayerNormGradRow[T Float](gx, gw, gb, g, x, w, room []T, mean, r T) {
	standardize(room, x, mean, r)
	normGrad(gx, gw, g, w, room[:len(x)])
	Add(gb, gb, g)
	standardize(gx, gx, Sum(gx)/T(len(x)), r)
}

// RMSNormGradRow is the same for a row y = x·r·w of RMSNormRow: gx is r·(gr - xr·mean(gr·xr)), with xr = x·r.
func RMSNormGradRow[T Float](gx, gw, g, x, w, room []T, r T) {
	Scale(room, x, r)
	normGrad(gx, gw, g, w, room[:len(x)])
	Scale(gx, gx, r)
}

// normGrad sets gx to gr - xr·mean(gr·xr), gr being g·w, and adds g·xr to gw. (In layer normalization the mean of gr is
// that of this, since the mean of xr is 0 but for rounding.)
func normGrad[T Float](gx, gw, g, w, xr []T) {
	if w == nil {
		copy(gx, g)
	} else {
		Mul(gx, g, w)
	}
	MulAdd(gw, g, xr, gw)
	AddScaled(gx, xr, -Dot(gx, xr)/T(len(xr)))
}
