package main

// The formats of kernels/qdot with 2 bits of weights in the layout of tq2_0 and a scale for 16 of them.

// runs calls with for each of the four runs of 32 weights whose pairs of bits share words: all of them word by word, or
// where sums find no registers one after the other.
func (b *panelBody) runs(word func(w int, runs []int), finish func(run int)) {
	together := [][]int{{0, 1, 2, 3}}
	if b.vec && b.t.registers == 16 {
		together = [][]int{{0}, {1}, {2}, {3}}
	}
	for _, runs := range together {
		for w := range 8 {
			word(w, runs)
		}
		for _, run := range runs {
			finish(run)
		}
	}
}

func (b *panelBody) q2_k(i int) {
	w, at := b.word(0), 1+10*i
	scales := b.inOrder(at, 2)
	d, low := b.add("lowHalf", temp, 0, w), b.add("lowHalf", temp, 0, b.shr(w, 16))
	low = b.xor(low, b.bits(signBit32))
	b.runs(func(w int, runs []int) {
		v := b.word(at + 2 + w)
		for _, run := range runs {
			b.field(32*i+8*run+w, v, 2*run, lowPairs)
		}
	}, func(run int) {
		for j := 8*i + 2*run; j < 8*i+2*run+2; j++ {
			v := scales(j % 8 / 4)
			b.finish(j, b.times(b.number(v, j%4*8, 4, 0), d), b.times(b.number(v, j%4*8+4, 4, 0), low))
		}
	})
}

// thirdBits has the bits 0 to 3 of a number at bits 2, 3, 6 and 7.
var thirdBits = func() (t []byte) {
	for i := range 16 {
		t = append(t, byte(i&3<<2|i>>2<<6))
	}
	return t
}()

func (b *panelBody) q3_k(i int) {
	d := b.halves()
	at := 3 + 12*i
	b.runs(func(n int, runs []int) {
		w := n/2 + n%2*4 // as they lie
		high := b.word(at + 3*(w%4))
		v := b.word(at + 3*(w%4) + 1 + w/4)
		if b.vec && b.t == avx512 {
			// The third bits of the four runs go to bits 2, 3, 6 and 7: above the pairs of the runs 0 and 2, and of 1
			// and 3 when these are moved down by one.
			high = b.lookup(b.table(thirdBits), b.shift(high, w/4*4))
			even := b.add("select", temp, 0, v, b.bits(0x33333333), high)
			odd := b.add("select", temp, 0, b.shr(v, 1), b.bits(0x66666666), high)
			for run, x := range []val{even, odd, even, odd} {
				power := run&1 + run&2*2
				b.multiple(32*i+8*run+w, power, b.and(x, b.bits(0x07070707<<power)))
			}
			return
		}
		for _, run := range runs {
			bit := w/4*4 + run // of the third bits
			if b.vec && b.unsigned() && run < 3 {
				x := b.and(v, b.bits(lowPairs<<(2*run)))
				b.multiple(32*i+8*run+w, 2*run, b.andOr(b.shift(high, bit-2*run-2), b.bits(0x04040404<<(2*run)), x))
				continue
			}
			x := b.and(b.shift(v, 2*run), b.bits(lowPairs))
			b.group(32*i+8*run+w, b.andOr(b.shift(high, bit-2), b.bits(0x04040404), x))
		}
	}, func(run int) {
		for j := 8*i + 2*run; j < 8*i+2*run+2; j++ {
			low, high := b.word(j%8/4), b.word(2)
			if b.vec && b.t == avx512 {
				s := b.andOr(b.shift(low, j%4*8+j/8*4), b.bits(15), b.base(0))
				s = b.andOr(b.shift(high, j%4*8+j/4*2-4), b.bits(0x30), s)
				b.finish(j, b.times(b.minus(s, b.c(1.5*(1<<23)+32)), d), none)
				continue
			}
			s := b.and(b.shift(low, j%4*8+j/8*4), b.bits(15))
			s = b.andOr(b.shift(high, j%4*8+j/4*2-4), b.bits(0x30), s)
			b.finish(j, b.times(b.toFloat(b.isub(s, b.bits(32))), d), none)
		}
	})
}
