package quant

import (
	"encoding/binary"

	"github.com/fucina-go/fucina/core/dtype"
)

// iq1_m is 256 weights (t ± ⅛) · d · (2s + 1), t being -1, 0 or 1, with a scale s of 3 bits for every 16 and a
// direction for every 8.
//
//	32 bytes: the low bits of the points; 16 bytes: 2 × 3 upper bits and one bit that is set for -⅛;
//	4 × u16: 4 × s and, in the upper 4 bits, a nibble of d, an f16, the lowest first
var iq1_m = Format{
	Name: "iq1_m", ID: 29,
	encode: encodeIQ1M,
	sound:  func(b []byte) bool { return scattered(b)&0x7c00 != 0x7c00 },
}

// scattered gathers the f16 scale of a block.
func scattered(b []byte) (d uint16) {
	for k := range 4 {
		d |= binary.LittleEndian.Uint16(b[48+2*k:]) >> 12 << (4 * k)
	}
	return d
}

func encodeIQ1M(b []byte, x, w []float32, _ float32) {
	clear(b)
	power := 2 * squares(x) / 256
	var weight [256]float32
	weigh(weight[:], x, w, power)
	var scales [16]float32
	var downs [16][2]uint8
	for g := range 16 {
		var places [2]int
		scales[g], downs[g] = fitIQ1M(x[16*g:16*g+16], weight[16*g:16*g+16], places[:])
		for k, p := range places {
			b[2*g+k] = byte(p)
			b[32+g] |= byte(p>>8) << (4 * k)
		}
	}
	var s [16]uint8
	d := gridScales(scales[:], s[:], 15, 7)
	if d == 0 {
		return
	}
	points := iq1Grid.Points()
	vx, vv := float32(0), float32(0)
	for g, l := range s {
		at := b[48+g/4*2:]
		binary.LittleEndian.PutUint16(at, binary.LittleEndian.Uint16(at)|uint16(l)<<(g%4*3))
		for k := range 2 {
			p := &points[int(b[2*g+k])|int(b[32+g]>>(4*k)&7)<<8]
			b[32+g] |= downs[g][k] << (3 + 4*k)
			for i := range 8 {
				j := 16*g + 8*k + i
				v := moved[downs[g][k]][p[i]] * float32(2*int(l)+1)
				vx += float32(float32(weight[j]*v) * x[j])
				vv += float32(float32(weight[j]*v) * v)
			}
		}
	}
	if vv > 0 {
		d = vx / vv
	}
	h := dtype.F32ToF16(d * 1.1125)
	for k := range 4 {
		b[49+2*k] |= byte(h>>(4*k)&15) << 4
	}
}

// fitIQ1M chooses points for 16 weights, the scale, and for either half 1 if it is moved down. Every division of the
// sorted weights into thirds is tried with each of the four ways to move the halves.
func fitIQ1M(x, w []float32, places []int) (scale float32, down [2]uint8) {
	if abs(peak(x)) < 1e-7 {
		return 0, down
	}
	var order, q [16]uint8
	ascending(order[:], x)
	best, from, to, way := float32(-maxFloat), -1, -1, 0
	for i1 := 0; i1 <= 16; i1++ {
		for i2 := i1; i2 <= 16; i2++ {
			for k := range 4 {
				if vx, vv := thirdsMoments(x, w, order[:], i1, i2, k); vv > 0 && vx*vx > best*vv {
					scale = vx / vv
					best = scale * vx
					from, to, way = i1, i2, k
				}
			}
		}
	}
	if from < 0 {
		return 0, down
	}
	thirds(q[:], order[:], from, to, scale < 0)
	if scale < 0 {
		scale, way = -scale, 3-way
	}
	down = [2]uint8{uint8(way >> 1), uint8(way & 1)}
	return moveOn(q[:], x, w, scale, down[:], places), down
}

// thirdsMoments returns Σ w·v·x and Σ w·v·v for the levels that thirds would choose, the halves moved as the bits of
// way say, in ascending order of x.
func thirdsMoments(x, w []float32, order []uint8, i1, i2, way int) (vx, vv float32) {
	for j, i := range order {
		l := 2
		switch {
		case j < i1:
			l = 0
		case j < i2:
			l = 1
		}
		m := way & 1
		if i < 8 {
			m = way >> 1
		}
		wv := w[i] * moved[m][l]
		vx += float32(wv * x[i])
		vv += float32(wv * moved[m][l])
	}
	return vx, vv
}
