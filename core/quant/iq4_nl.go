package quant

import "github.com/fucina-go/fucina/kernels/qdot"

// iq4_nl is 32 weights v · d, v being one of 16 values that lie closer near zero.
//
//	f16 d; 16 bytes: weights 0 … 15 low, 16 … 31 high
var iq4_nl = Format{
	Name: "iq4_nl", ID: 20, scales: []int{0},
	encode: func(b []byte, x, w []float32, _ float32) {
		d := fitCurve(x, w, squares(x)*(2.0/32))
		putHalf(b, d)
		var q [32]uint8
		inv := inverse(d)
		for j, v := range x {
			q[j] = onCurve(inv * v)
		}
		packNibbles(b[2:], q[:])
	},
}

// curve is the values of iq4_nl and iq4_xs.
var curve = &qdot.Curve

// onCurve returns the place in curve of the value nearest to v, the higher of two as near.
func onCurve(v float32) uint8 {
	v = float32(v) // a product, which is not to be fused with what follows
	lo, hi := 0, len(curve)-1
	if v <= float32(curve[lo]) {
		return 0
	}
	if v >= float32(curve[hi]) {
		return uint8(hi)
	}
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; v < float32(curve[mid]) {
			hi = mid
		} else {
			lo = mid
		}
	}
	if v-float32(curve[lo]) < float32(curve[hi])-v {
		return uint8(lo)
	}
	return uint8(hi)
}

// fitCurve finds the scale for x ≈ scale · v with v on the curve, where w weighs the errors as weigh says: the
// weight of the greatest magnitude on 127, and then on -134 … -120.
func fitCurve(x, w []float32, power float32) float32 {
	top := peak(x)
	if abs(top) < tiny {
		return 0
	}
	var weight [32]float32
	weigh(weight[:], x, w, power)
	moments := func(inv float32) (vx, vv float32) {
		for j, xj := range x {
			v := float32(curve[onCurve(inv*xj)])
			vx += float32(float32(weight[j]*v) * xj)
			vv += float32(float32(weight[j]*v) * v)
		}
		return vx, vv
	}
	d := -top / float32(curve[0])
	vx, vv := moments(1 / d)
	d = 0
	if vv > 0 {
		d = vx / vv
	}
	best := d * vx
	for step := -7; step <= 7; step++ {
		vx, vv := moments(float32(step+int(curve[0])) / top)
		if vv > 0 && vx*vx > best*vv {
			d = vx / vv
			best = d * vx
		}
	}
	return d
}
