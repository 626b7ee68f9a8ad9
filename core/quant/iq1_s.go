package quant

import "encoding/binary"

// iq1_s is 256 weights (t ± ⅛) · d · (2s + 1), t being -1, 0 or 1, with a scale s of 3 bits and a direction for every
// 32.
//
//	f16 d; 32 bytes: the low bits of the points; 8 × u16: 4 × 3 upper bits, s, and one bit that is set for -⅛
var iq1_s = Format{
	Name: "iq1_s", ID: 19, Importance: true, scales: []int{0},
	encode: func(b []byte, x, w []float32, _ float32) {
		clear(b)
		power := 2 * squares(x) / 256
		var scales [8]float32
		var bits [8]uint16
		for g := range 8 {
			var weight [32]float32
			var places [4]int
			x := x[32*g : 32*g+32]
			weigh(weight[:], x, w[32*g:], power)
			down := uint8(0)
			scales[g], down = fitIQ1S(x, weight[:], places[:])
			for k, p := range places {
				b[2+4*g+k] = byte(p)
				bits[g] |= uint16(p>>8) << (3 * k)
			}
			bits[g] |= uint16(down) << 15
		}
		var s [8]uint8
		d := gridScales(scales[:], s[:], 15, 7)
		if d == 0 {
			for g := range bits {
				bits[g] &^= 1 << 15
			}
			clear(s[:])
		}
		putHalf(b, d*1.125)
		for g := range 8 {
			binary.LittleEndian.PutUint16(b[34+2*g:], bits[g]|uint16(s[g])<<12)
		}
	},
}

// fitIQ1S chooses points for 32 weights, the scale, and 1 if they are moved down. With three levels every division of
// the sorted weights into thirds can be tried, moved up and moved down.
func fitIQ1S(x, w []float32, places []int) (scale float32, down uint8) {
	if abs(peak(x)) < 1e-12 {
		return 0, 0
	}
	var order, q [32]uint8
	ascending(order[:], x)
	var sumX, sumW [33]float32
	for j, i := range order {
		sumX[j+1] = sumX[j] + float32(w[i]*x[i])
		sumW[j+1] = sumW[j] + w[i]
	}
	best, from, to := float32(-maxFloat), -1, -1
	for i1 := 0; i1 <= 32; i1++ {
		for i2 := i1; i2 <= 32; i2++ {
			for m, v := range moved {
				vx := float32((sumX[i1]-sumX[0])*v[0]) + float32((sumX[i2]-sumX[i1])*v[1]) +
					float32((sumX[32]-sumX[i2])*v[2])
				vv := float32((sumW[i1]-sumW[0])*v[0]*v[0]) + float32((sumW[i2]-sumW[i1])*v[1]*v[1]) +
					float32((sumW[32]-sumW[i2])*v[2]*v[2])
				if vv > 0 && vx*vx > best*vv {
					scale = vx / vv
					best = scale * vx
					from, to, down = i1, i2, uint8(m)
				}
			}
		}
	}
	if from < 0 {
		return 0, 0
	}
	thirds(q[:], order[:], from, to, scale < 0)
	if scale < 0 {
		scale, down = -scale, 1-down
	}
	return moveOn(q[:], x, w, scale, []uint8{down, down, down, down}, places), down
}
