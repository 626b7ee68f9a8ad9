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

// rowsOf has in each byte of the words of four rows four times the row, so that two bits more are the place of a byte
// in a register.
var rowsOf = []byte{0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12}

// places has in each byte the two bits at n of v's and the row: where a table of four bytes for each row is looked up.
func (b *panelBody) places(v val, n int) val {
	return b.andOr(b.shift(v, n), b.bits(lowPairs), b.table(rowsOf))
}

// either is the bytes of y where those of v have bit n, and elsewhere of x.
func (b *panelBody) either(x, y, v val, n int) val {
	bit := uint64(0x01010101) << n
	switch b.t {
	case avx512:
		return b.add("blendBit", temp, 0, x, y, v, b.bits(bit))
	case neon:
		return b.choose(b.add("bitSet", temp, 0, v, b.bits(bit)), y, x)
	}
	return b.add("blendTop", temp, 0, x, y, b.shift(v, n-7))
}

// imul is x times a constant.
func (b *panelBody) imul(x val, by uint64) val { return b.add("imul", temp, 0, x, b.bits(by)) }

func (b *panelBody) q2_k(i int) {
	w, at := b.word(0), 1+10*i
	scales := b.inOrder(at, 2)
	d, low := b.add("lowHalf", temp, 0, w), b.add("lowHalf", temp, 0, b.shr(w, 16))
	low = b.xor(low, b.bits(signBit32))
	finish := func(run int) {
		offsets := [2]val{}
		for half := range offsets {
			j := 2*run + half
			v := b.shift(scales(j/4), j%4*8)
			b.factor[8*i+j] = b.and(v, b.bits(15))
			offsets[half] = b.times(b.number(v, 4, 4, 0), low)
		}
		b.finish(4*i+run, d, offsets[0], offsets[1])
	}
	if !b.vec {
		read := func(w int) []val { return []val{b.word(at + 2 + w)} }
		b.products(i, finish, read, func(j int) func(w int, words []val) val {
			t := b.iadd(b.imul(b.factor[8*i+j], 0x03020100), b.bits(0x80808080))
			return func(_ int, words []val) val { return b.add("lookup", temp, 0, t, b.places(words[0], j/2*2)) }
		})
		return
	}
	b.runs(func(w int, runs []int) {
		v := b.word(at + 2 + w)
		for _, run := range runs {
			b.field(32*i+8*run+w, v, 2*run, lowPairs)
		}
	}, finish)
}

// products stores step i's weights times their factors. Each of four runs of 32 is finished, which finds its factors;
// read gives the words that have the weights 4w to 4w+3 of all runs; table finds the products that half a run, j, can
// have, and takes those of such words. With enough registers the words are read once.
func (b *panelBody) products(i int, finish func(run int), read func(w int) []val,
	table func(j int) func(w int, words []val) val) {
	together := [][]int{{0, 2, 4, 6}, {1, 3, 5, 7}}
	if b.t.registers == 16 {
		together = [][]int{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}
	}
	for _, halves := range together {
		var products []func(w int, words []val) val
		for _, j := range halves {
			if j%2 == 0 {
				finish(j / 2)
			}
			products = append(products, table(j))
		}
		for w := halves[0] % 2 * 4; w < halves[0]%2*4+4; w++ {
			words := read(w)
			for n, j := range halves {
				b.do("storeBytes", 64*(32*i+8*(j/2)+w), products[n](w, words))
			}
		}
	}
}

// thirdBits has the bits 0 to 3 of a number at bits 2, 3, 6 and 7.
var thirdBits = func() (t []byte) {
	for i := range 16 {
		t = append(t, byte(i&3<<2|i>>2<<6))
	}
	return t
}()

func (b *panelBody) q3_k(i int) {
	d := b.xor(b.halves(), b.bits(signBit32))
	at := 3 + 12*i
	scale := func(j int) val { // of 6 bits
		x := b.and(b.shift(b.word(j/4), j%4*8+i*4), b.bits(15))
		return b.andOr(b.shift(b.word(2), j%4*8+(8*i+j)/4*2-4), b.bits(0x30), x)
	}
	if !b.vec && b.t != avx2 {
		finish := func(run int) { b.finish(4*i+run, d) }
		read := func(w int) []val { return []val{b.word(at + 3*(w%4)), b.word(at + 3*(w%4) + 1 + w/4)} }
		b.products(i, finish, read, func(j int) func(w int, words []val) val {
			// a product is (32-s)·q + 4s with 128 added, of which all four for q below 4, and above, fit in bytes
			s, run := scale(j), j/2
			below := b.iadd(b.imul(s, 0x01020304), b.bits(0x60402000))
			above := b.isub(b.bits(0xE0C0A080), b.imul(s, 0x03020100))
			return func(w int, words []val) val {
				place := b.places(words[1], 2*run)
				x, y := b.add("lookup", temp, 0, below, place), b.add("lookup", temp, 0, above, place)
				return b.either(x, y, words[0], w/4*4+run)
			}
		})
		return
	}
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
		for j := 2 * run; j < 2*run+2; j++ {
			switch s := scale(j); {
			case !b.vec: // weights and factors stay apart
				twice := b.add("sub16", temp, 0, b.bits(32<<16|32), b.or(s, b.shl(s, 16)))
				b.do("storeOffset", 64*(8*i+j), twice)
			case b.t == neon:
				b.factor[8*i+j] = b.isub(b.bits(32), s)
			default: // leaving the upper halves 0
				b.factor[8*i+j] = b.add("sub16", temp, 0, b.bits(32), s)
			}
		}
		b.finish(4*i+run, d)
	})
}
