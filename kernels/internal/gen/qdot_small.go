package main

// The formats of kernels/qdot of a bit, of a third of a byte, of 4 bits with scales of 8, and the two of 8 bits in
// which ggml keeps activations.

func (b *panelBody) q1_0(int) {
	d := b.halves()
	for g := range 4 {
		v := b.word(g)
		for j := range 8 {
			b.group(8*g+j, b.spreadTo(v, 4*j, 1))
		}
		b.finish(g, d)
	}
}

// tq1_0 takes what is 32 bytes wide, then the rest.
func (b *panelBody) tq1_0(step int) {
	d := b.halves()
	if step == 0 {
		for w := range 8 {
			b.trits(b.word(w), 5, func(n int, v val) { b.group(8*n+w, v) })
		}
		for n := range 5 {
			b.finish(n, d)
		}
		return
	}
	for w := range 4 {
		b.trits(b.word(8+w), 5, func(n int, v val) { b.group(40+4*n+w, v) })
	}
	b.trits(b.word(12), 4, func(n int, v val) { b.group(60+n, v) })
	for n := 5; n < 8; n++ {
		b.finish(n, d)
	}
}

// trits hands out so many weights of each byte of v, four at a time: what leaves at the top when they are multiplied
// by 3.
func (b *panelBody) trits(v val, n int, take func(n int, v val)) {
	const evenBytes, oddBytes = 0x00FF00FF, 0xFF00FF00
	even, odd := b.and(v, b.bits(evenBytes)), b.and(b.shr(v, 8), b.bits(evenBytes))
	for i := range n {
		even, odd = b.iadd(b.iadd(even, even), even), b.iadd(b.iadd(odd, odd), odd)
		take(i, b.andOr(b.shr(even, 8), b.bits(evenBytes), b.and(odd, b.bits(oddBytes))))
		if i+1 < n {
			even, odd = b.and(even, b.bits(evenBytes)), b.and(odd, b.bits(evenBytes))
		}
	}
}

func (b *panelBody) nvfp4(int) {
	table := b.table(b.biased(e2m1))
	scales := b.word(0)
	for g := range 4 {
		for w := range 2 {
			v := b.word(1 + 2*g + w)
			b.group(4*g+w, b.lookup(table, v))
			b.group(4*g+2+w, b.lookup(table, b.shr(v, 4)))
		}
		b.finish(g, b.e4m3(b.byteOf(scales, g)))
	}
}

// e4m3 is half of the value of a byte: exponent and mantissa in the places of a float32's, but for 0x7f, which is 0. If
// the exponent is 0, it is made 1, and what that adds is taken off: subnormal numbers would be slow.
func (b *panelBody) e4m3(s val) val {
	not7f := b.isub(b.shr(b.iadd(b.xor(s, b.bits(0x80)), b.bits(1)), 8), b.bits(1))
	s = b.and(b.and(s, b.bits(0x7F)), not7f)
	small := b.sar(b.isub(s, b.bits(8)), 31)
	s = b.iadd(b.shl(b.andOr(small, b.bits(8), s), 20), b.bits(119<<23))
	return b.minus(s, b.and(small, b.c(0x1p-7)))
}

func (b *panelBody) q8_1(int) {
	for g := range 8 {
		b.bytes(g, b.word(1+g))
	}
	b.finish(0, b.add("lowHalf", temp, 0, b.word(0)))
}

func (b *panelBody) q8_k(step int) {
	for j := 2 * step; j < 2*step+2; j++ {
		for g := 8 * j; g < 8*j+8; g++ {
			b.bytes(g, b.word(1+g))
		}
		b.finish(j, b.word(0))
	}
}

// bytes takes the weights 4i to 4i+3, of 8 bits.
func (b *panelBody) bytes(i int, v val) {
	if b.bias == 128 {
		v = b.xor(v, b.bits(0x80808080))
	}
	b.group(i, v)
}
