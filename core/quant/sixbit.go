package quant

import "github.com/fucina-go/fucina/kernels/qdot"

// The formats of 256 weights with a scale and an offset for every 32, q4_k and q5_k, differ in how many bits a
// weight has. What they share is here: f16 d, f16 m, and 12 bytes of eight scales and eight offsets of 6 bits.
//
//	byte j of 12: scale j, for j < 4;  byte j+4: offset j;  byte j+8: low nibbles of scale j+4 and offset j+4,
//	whose upper two bits are the upper two of the bytes j and j+4

// packSix stores eight scales and eight offsets of 6 bits in 12 bytes.
func packSix(b []byte, s, m []uint8) {
	for j := range 4 {
		b[j] = s[j]&63 | s[j+4]>>4<<6
		b[j+4] = m[j]&63 | m[j+4]>>4<<6
		b[j+8] = s[j+4]&15 | m[j+4]<<4
	}
}

// encodeSix writes d, m and the 12 bytes for weights of n+1 levels, and the levels to q.
func encodeSix(b []byte, n int, plain ladder, x, w []float32, q []uint8) {
	var scale, low [8]float32
	var s, m [8]uint8
	if w == nil {
		for g := range 8 {
			x := x[32*g : 32*g+32]
			var weight [32]float32
			mean := sqrt(squares(x) / 32)
			for j, v := range x {
				weight[j] = mean + abs(v)
			}
			scale[g], low[g] = fitAffine(plain, x, weight[:], q[32*g:32*g+32])
		}
		putHalf(b, sixBits(scale[:], s[:]))
		putHalf(b[2:], sixBits(low[:], m[:]))
	} else {
		var weight [32]float32
		var total [8]float32
		power := 2 * squares(x) / 256
		for g := range 8 {
			x := x[32*g : 32*g+32]
			weigh(weight[:], x, w[32*g:], power)
			total[g] = sum(weight[:])
			scale[g], low[g] = fitAffine(ladder{n: n, from: -0.9, by: 0.05, times: 37}, x, weight[:], q[32*g:32*g+32])
		}
		putHalf(b, fitPositive(63, scale[:], total[:], s[:]))
		putHalf(b[2:], fitPositive(63, low[:], total[:], m[:]))
	}
	packSix(b[4:], s[:], m[:])
	var step, off [8]float32
	qdot.Sixes(step[:], off[:], b)
	for g := range 8 {
		requantize(q[32*g:32*g+32], x[32*g:], step[g], -off[g], n)
	}
}

// sixBits sets q to x in 63 steps of the greatest and returns the step.
func sixBits(x []float32, q []uint8) float32 {
	top := float32(0)
	for _, v := range x {
		top = max(top, v)
	}
	inv := float32(0)
	if top > 0 {
		inv = 63 / top
	}
	for j, v := range x {
		q[j] = min(63, uint8(nearest(inv*v)))
	}
	return top / 63
}

// requantize sets q to (x + off)/d rounded, within 0 … n; a d of 0 leaves q as it is.
func requantize(q []uint8, x []float32, d, off float32, n int) {
	if d == 0 {
		return
	}
	for j := range q {
		q[j] = uint8(clamp(nearest((x[j]+off)/d), 0, n))
	}
}
