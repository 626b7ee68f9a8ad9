package main

// The formats of kernels/qdot whose weights are points of a grid: their values, a byte each, are gathered from a table,
// whose address the kernel gets.

// four is the bytes of the point of each row, of a grid whose points have 4.
func (b *panelBody) four(point val) val { return b.add("gather", temp, 0, point) }

// eight is the first four and the last four bytes of the point of each row, of a grid whose points have 8. They are
// gathered whole, for half of the rows at a time; point comes from paired words.
func (b *panelBody) eight(point val) (first, last val) {
	one := b.add("gatherPairs", temp, 0, point)
	other := b.add("gatherPairs", temp, 0, b.add("upper", temp, 0, point))
	return b.add("evens", temp, 0, one, other), b.add("odds", temp, 0, one, other)
}

// paired is word i of the block, the first half of the vector having the rows 0, 1, 4, 5 and so on: so shuffling within
// 16 bytes brings what is gathered for either half to the rows' places.
func (b *panelBody) paired(i int) val {
	switch b.t {
	case avx512:
		return b.add("permuteQuads", temp, 0, b.word(i), b.table(quads))
	case avx2, avxvnni:
		return b.add("permuteQuads", temp, 0, b.word(i))
	}
	return b.word(i)
}

// quads has first the even, then the odd of eight quadwords.
var quads = func() (t []byte) {
	for i := range 8 {
		t = append(t, byte(2*i%8+i/4), 0, 0, 0, 0, 0, 0, 0)
	}
	return t
}()

// spreadTo is the four bits of x from bit n on, each as the given bit of a byte, 0 to 4.
func (b *panelBody) spreadTo(x val, n, bit int) val {
	if b.t == avx512 {
		return b.add("permute", temp, 0, b.shift(x, n), b.table(spread(bit)))
	}
	x = b.add("imul", temp, 0, b.and(b.shift(x, n-bit), b.bits(15<<bit)), b.bits(0x00204081))
	return b.and(x, b.bits(0x01010101<<bit))
}

// signed is the magnitudes w, negative where one of the four bits of x from bit n on is set, with the bias added, which
// is greater than they are.
func (b *panelBody) signed(w, x val, n int) val {
	ones := b.spreadTo(x, n, 0)
	return b.iadd(b.xor(w, b.isub(b.bits(uint64(b.bias)*0x01010101), ones)), ones)
}

// parities has at the lowest bit of each seven the bit that makes their number even.
func (b *panelBody) parities(x val) val {
	two := b.xor(x, b.shr(x, 1))
	four := b.xor(two, b.shr(two, 2))
	return b.xor(b.xor(four, b.shr(two, 4)), b.shr(x, 6))
}

// evenSigns is two groups of four magnitudes with the seven signs that x has from bit n on, and the eighth.
func (b *panelBody) evenSigns(i int, first, last, x, parities val, n int) {
	b.group(i, b.signed(first, x, n))
	high := b.andOr(b.shift(parities, n-3), b.bits(8), b.and(b.shift(x, n+4), b.bits(7)))
	b.group(i+1, b.signed(last, high, 0))
}

// byteOf is byte i of v.
func (b *panelBody) byteOf(v val, i int) val {
	if i == 3 {
		return b.shr(v, 24)
	}
	return b.and(b.shift(v, 8*i), b.bits(255))
}

// place is a point of which byte i of v has the low 8 bits, and from bit n on high has those that mask says.
func (b *panelBody) place(v val, i int, high val, n int, mask uint64) val {
	return b.andOr(b.shift(high, n-8), b.bits(mask<<8), b.byteOf(v, i))
}

// oddScale is d times 2s+1, s being the bits mask of v from bit n on.
func (b *panelBody) oddScale(v val, n int, mask uint64, d val) val {
	return b.times(b.toFloat(b.andOr(b.shift(v, n-1), b.bits(mask<<1), b.bits(1))), d)
}

func (b *panelBody) iq2_xxs(step int) {
	d := b.times(b.halves(), b.c(0.125))
	for g := 2 * step; g < 2*step+2; g++ {
		points, signs := b.paired(2*g), b.word(2*g+1)
		parities := b.parities(signs)
		for k := range 4 {
			first, last := b.eight(b.byteOf(points, k))
			b.evenSigns(8*g+2*k, first, last, signs, parities, 7*k)
		}
		b.finish(g, b.oddScale(signs, 28, 15, d))
	}
}

func (b *panelBody) iq2_xs(step int) {
	d := b.times(b.halves(), b.c(0.125))
	for j := 4 * step; j < 4*step+4; j++ {
		v, points := b.word(j), b.paired(j)
		parities := b.parities(b.and(v, b.bits(0xFE00FE00)))
		for k := range 2 {
			first, last := b.eight(b.and(b.shift(points, 16*k), b.bits(511)))
			b.evenSigns(4*j+2*k, first, last, v, parities, 9+16*k)
		}
		b.finish(j, b.oddScale(b.word(16+j/8), j%8*4, 15, d))
	}
}

func (b *panelBody) iq2_s(step int) {
	d := b.times(b.halves(), b.c(0.125))
	for j := 4 * step; j < 4*step+4; j++ {
		v, signs, high := b.paired(j/2), b.word(8+j/2), b.paired(16+j/8)
		for k := 2 * j; k < 2*j+2; k++ {
			first, last := b.eight(b.place(v, k%4, high, k%16*2, 3))
			b.group(2*k, b.signed(first, signs, k%4*8))
			b.group(2*k+1, b.signed(last, signs, k%4*8+4))
		}
		b.finish(j, b.oddScale(b.word(18+j/8), j%8*4, 15, d))
	}
}

func (b *panelBody) iq3_xxs(step int) {
	d := b.times(b.halves(), b.c(0.25))
	for g := 2 * step; g < 2*step+2; g++ {
		signs := b.word(16 + g)
		parities := b.parities(signs)
		for k := range 4 {
			v := b.word(2*g + k/2)
			first, last := b.four(b.byteOf(v, k%2*2)), b.four(b.byteOf(v, k%2*2+1))
			b.evenSigns(8*g+2*k, first, last, signs, parities, 7*k)
		}
		b.finish(g, b.oddScale(signs, 28, 15, d))
	}
}

func (b *panelBody) iq3_s(step int) {
	d := b.halves()
	for g := 2 * step; g < 2*step+2; g++ {
		high, signs := b.word(16+g/4), b.word(18+g)
		for k := range 8 {
			v := b.word(2*g + k/4)
			p := b.place(v, k%4, high, g%4*8+k, 1)
			b.group(8*g+k, b.signed(b.four(p), signs, 4*k))
		}
		b.finish(g, b.oddScale(b.word(26), 4*g, 15, d))
	}
}

// direction is what moves the weights of iq1_s and iq1_m: down by one where bit n of x is set, elsewhere up.
func (b *panelBody) direction(x val, n int) val {
	mask := b.sar(b.shift(x, n-31), 31)
	return b.isub(b.xor(mask, b.bits(0x01010101)), mask)
}

func (b *panelBody) iq1_s(step int) {
	d := b.times(b.halves(), b.c(0.125))
	for g := 2 * step; g < 2*step+2; g++ {
		high, at := b.word(8+g/2), g%2*16
		v, upper := b.paired(g), b.paired(8+g/2)
		by := b.direction(high, at+15)
		for k := range 4 {
			first, last := b.eight(b.place(v, k, upper, at+3*k, 7))
			b.group(8*g+2*k, b.iadd(first, by))
			b.group(8*g+2*k+1, b.iadd(last, by))
		}
		b.finish(g, b.oddScale(high, at+12, 7, d))
	}
}

func (b *panelBody) iq1_m(step int) {
	low, top := b.word(12), b.word(13)
	d := b.andOr(b.shr(low, 24), b.bits(0xF0), b.and(b.shr(low, 12), b.bits(0xF)))
	d = b.andOr(b.shr(top, 4), b.bits(0xF00), d)
	d = b.andOr(b.shr(top, 16), b.bits(0xF000), d)
	d = b.times(b.add("lowHalf", temp, 0, d), b.c(0.125))
	for j := 4 * step; j < 4*step+4; j++ {
		v, high, upper := b.paired(j/2), b.word(8+j/4), b.paired(8+j/4)
		for k := 2 * j; k < 2*j+2; k++ {
			first, last := b.eight(b.place(v, k%4, upper, k%8*4, 7))
			by := b.direction(high, k%8*4+3)
			b.group(2*k, b.iadd(first, by))
			b.group(2*k+1, b.iadd(last, by))
		}
		b.finish(j, b.oddScale([]val{low, top}[j/8], j/4%2*16+j%4*3, 7, d))
	}
}
