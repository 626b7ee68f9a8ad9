package quant

import "encoding/binary"

// q3_k is 256 weights (q - 4) · d · (s - 32), q of 3 bits, with a scale s of 6 bits for every 16.
//
//	32 bytes: the third bits, bit g of byte j for weight 32·g+j; 64 bytes of crumbs; 12 bytes: the scales; f16 d
//
// Scale j is nibble j of the first eight of the 12 bytes (low nibbles first) and crumb j of the last four.
var q3_k = Format{
	Name: "q3_k", ID: 11, scales: []int{108},
	encode: encodeQ3K, decode: decodeQ3K,
}

// scale3K returns scale j of the 12 bytes, 32 taken off.
func scale3K(b []byte, j int) int {
	return int(b[j%8]>>(j/8*4)&15|b[8+j%4]>>(j/4*2)&3<<4) - 32
}

func encodeQ3K(b []byte, x, w []float32, _ float32) {
	clear(b)
	var scale, total [16]float32
	var s [16]uint8
	var q [256]uint8
	power := float32(0)
	if w != nil {
		power = 2 * squares(x) / 256
	}
	for g := range 16 {
		x, q := x[16*g:16*g+16], q[16*g:16*g+16]
		if w == nil {
			scale[g] = fitStepwise(4, x, q)
			continue
		}
		var weight [16]float32
		weigh(weight[:], x, w[16*g:], power)
		total[g] = sum(weight[:])
		scale[g] = fitSigned(4, x, weight[:], q)
	}
	d := float32(0)
	if w != nil {
		d = fitSigned(32, scale[:], total[:], s[:])
	} else if top := peak(scale[:]); top != 0 {
		inv := -32 / top
		for g, v := range scale {
			s[g] = uint8(clamp(int(int8(nearest(inv*v))), -32, 31) + 32)
		}
		d = 1 / inv
	}
	for g, v := range s {
		b[96+g%8] |= v & 15 << (g / 8 * 4)
		b[104+g%4] |= v >> 4 << (g / 4 * 2)
	}
	d = putHalf(b[108:], d)
	for g := range 16 {
		d := d * float32(scale3K(b[96:], g))
		if d == 0 {
			continue
		}
		for j := 16 * g; j < 16*g+16; j++ {
			q[j] = uint8(clamp(nearest(x[j]/d), -4, 3) + 4)
		}
	}
	for j, v := range q {
		b[j%32] |= v >> 2 << (j / 32)
	}
	packCrumbs(b[32:], q[:])
}

// decodeQ3K has the sign of every zero, which the integers of kernels/qdot, weights times their scales, have lost.
func decodeQ3K(y []float32, b []byte) {
	d := half(b[108:])
	for g := range 16 {
		s := d * float32(scale3K(b[96:], g))
		var values [8]float32 // of the integers
		for q := range values {
			values[q] = s * float32(q-4)
		}
		for j := 16 * g; j < 16*g+16; j += 8 { // eight bytes at once
			const ones = 0x0101010101010101
			low, high := binary.LittleEndian.Uint64(b[32+j/128*32+j%32:]), binary.LittleEndian.Uint64(b[j%32:])
			q := low>>(j%128/32*2)&(3*ones) | high>>(j/32)&ones<<2
			to := (*[8]float32)(y[j:])
			to[0], to[1], to[2], to[3] = values[q&7], values[q>>8&7], values[q>>16&7], values[q>>24&7]
			to[4], to[5], to[6], to[7] = values[q>>32&7], values[q>>40&7], values[q>>48&7], values[q>>56&7]
		}
	}
}
