package quant

import "math"

// iq3_s is 256 weights of magnitudes 1, 3 … 15 times a scale, four a point of a grid of 512.
//
//	f16 d; 64 bytes: the low bits of the points; 8 bytes: the upper bit of eight points; 32 bytes: signs;
//	4 bytes: a scale s of 4 bits for every 32, the first low
//
// A weight is ±m · d · (1 + 2s).
//
// In ggml a group of 32 zeros takes no room among the points and signs when a block is encoded: those of the groups
// behind it move up, where a decoder looks for others. The bytes here are the same. Of a block with such a group in
// front of others, the weights behind it are lost; no other format has that.
var iq3_s = Format{
	Name: "iq3_s", ID: 21, scales: []int{0},
	encode: func(b []byte, x, w []float32, _ float32) {
		clear(b)
		power := 2 * squares(x) / 256
		var scales [8]float32
		at := 0 // groups that are not zero so far
		for g := range 8 {
			var weight [32]float32
			var places [8]int
			x := x[32*g : 32*g+32]
			if peak(x) == 0 {
				continue
			}
			weigh(weight[:], x, part(w, 32*g, 32*g+32), power)
			scales[g] = iq3sFit.run(x, weight[:], places[:], b[74+4*at:78+4*at])
			for k, p := range places {
				b[2+8*at+k] = byte(p)
				b[66+g] |= byte(p>>8) << k
			}
			at++
		}
		var s [8]uint8
		d := gridScales(scales[:], s[:], 31, 15)
		if d == 0 {
			return
		}
		putHalf(b, d*1.033)
		for g, v := range s {
			b[106+g/2] |= v << (g % 2 * 4)
		}
	},
}

var iq3sFit = gridFit{grid: &iq3sGrid, steps: 9, step: 0.2, least: math.SmallestNonzeroFloat32, redo: redoAll}
