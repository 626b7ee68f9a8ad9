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
	words := b.inOrder(at, 2)
	d, low := b.add("lowHalf", temp, 0, w), b.add("lowHalf", temp, 0, b.shr(w, 16))
	low = b.xor(low, b.bits(signBit32))
	finish := func(run int) {
		scales, offsets := words(0), [2]val{}
		for half := range offsets {
			j := 2*run + half
			if !b.inPairs() {
				b.factor[8*i+j] = b.and(b.shift(scales, half*16+run*4), b.bits(15))
			}
			offsets[half] = b.times(b.number(words(1), 4*j, 4, 0), low)
		}
		switch {
		case !b.inPairs():
		case run == 3:
			b.pairs[4*i+run] = factors{b.add("shr16", temp, 12, scales), 0}
		default:
			b.pairs[4*i+run] = factors{b.and(scales, b.bits(0x000F000F<<(4*run))), 4 * run}
		}
		b.finish(4*i+run, d, offsets[0], offsets[1])
	}
	if !b.vec {
		b.products(i, finish, func(j int) func(w int, word func(n int) val) val {
			t := b.iadd(b.imul(b.factor[8*i+j], 0x03020100), b.bits(0x80808080))
			return func(w int, word func(n int) val) val {
				return b.add("lookup", temp, 0, t, b.places(word(at+2+w), j/2*2))
			}
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
// table finds the products that half a run, j, can have, and takes those of the weights 4w to 4w+3 with the help of
// word, which reads a word of the block. With enough registers the words are read once for all runs.
func (b *panelBody) products(i int, finish func(run int), table func(j int) func(w int, word func(n int) val) val) {
	together := [][]int{{0, 2, 4, 6}, {1, 3, 5, 7}}
	if b.t.registers == 16 {
		together = [][]int{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}
	}
	for _, halves := range together {
		var products []func(w int, word func(n int) val) val
		for _, j := range halves {
			if j%2 == 0 {
				finish(j / 2)
			}
			products = append(products, table(j))
		}
		for w := halves[0] % 2 * 4; w < halves[0]%2*4+4; w++ {
			words := map[int]val{}
			word := func(n int) val {
				if _, ok := words[n]; !ok {
					words[n] = b.word(n)
				}
				return words[n]
			}
			for n, j := range halves {
				b.do("storeBytes", 64*(32*i+8*(j/2)+w), products[n](w, word))
			}
		}
	}
}

// inPairs tells whether sums of 16 weights and the factors of both are multiplied as pairs of 16 bits.
func (b *panelBody) inPairs() bool { return b.vec && b.t != neon }

// pair is the lower half of x and the upper half of y.
func (b *panelBody) pair(x, y val) val {
	if b.t == avx512 {
		return b.add("select", temp, 0, x, b.bits(0xFFFF), y)
	}
	return b.add("blend16", temp, 0, x, y)
}

// bitsOf is the bits mask of x and all others of y.
func (b *panelBody) bitsOf(x val, mask uint64, y val) val {
	if b.t == avx512 {
		return b.add("select", temp, 0, x, b.bits(mask), y)
	}
	return b.andOr(x, b.bits(mask), b.and(y, b.bits(^mask&(1<<32-1))))
}

// q3Place is the words of a block, by the number in their half, and the bits of bytes in them where the low two bits
// and the third one of the weights 4w to 4w+3 of a run stand.
func q3Place(run, w int) (low, lowBit, third, thirdBit int) {
	first, last, n := 3*(w%4)+w/4, 3*(w%4)+2, w/4
	switch run {
	case 0:
		return first, 0, first, 2
	case 1:
		return first, 3, last, 6 + n
	case 2:
		return first, 5, first, 7
	}
	return last, 3 * n, last, 3*n + 2
}

// q3Scales finishes the factors of step i by pairs, which are the scales less 32: a scale of 6 bits at the upper end of
// 16 becomes one by a shift if its sign is turned round.
func (b *panelBody) q3Scales(i int) func(run int) {
	turned := [3]val{none, none, none}
	word := func(w int) val {
		if turned[w] == none {
			signs := uint64(0x82008200)
			if w == 2 {
				signs = 0x820A820A
			}
			turned[w] = b.xor(b.word(w), b.bits(signs))
		}
		return turned[w]
	}
	return func(run int) {
		r := 4*i + run
		var x val
		switch {
		case r >= 6:
			x = b.bitsOf(b.shl(b.word(r-6), 10), 0x3C003C00, b.shl(word(2), 2*r))
		case r%2 == 1:
			x = b.add("shl16", temp, 6, word(r/2))
		default:
			x = word(r / 2)
		}
		b.pairs[r] = factors{b.add("sar16", temp, 10, x), 0}
	}
}

func (b *panelBody) q3_k(i int) {
	d, at := b.halves(), 3+12*i
	if !b.inPairs() {
		d = b.xor(d, b.bits(signBit32))
	}
	scale := func(j int) val { // of 6 bits
		r, half := j/2, j%2*16
		if r < 6 {
			return b.and(b.shift(b.word(r/2), half+10-r%2*6), b.bits(63))
		}
		return b.andOr(b.shift(b.word(2), half+10-2*r), b.bits(0x30), b.and(b.shift(b.word(r-6), half), b.bits(15)))
	}
	if !b.vec && b.t != avx2 {
		finish := func(run int) { b.finish(4*i+run, d) }
		b.products(i, finish, func(j int) func(w int, word func(n int) val) val {
			// a product is (32-s)·q + 4s with 128 added, of which all four for q below 4, and above, fit in bytes
			s, run := scale(8*i+j), j/2
			below := b.iadd(b.imul(s, 0x01020304), b.bits(0x60402000))
			above := b.isub(b.bits(0xE0C0A080), b.imul(s, 0x03020100))
			return func(w int, word func(n int) val) val {
				low, lowBit, third, thirdBit := q3Place(run, w)
				place := b.places(word(at+low), lowBit)
				x, y := b.add("lookup", temp, 0, below, place), b.add("lookup", temp, 0, above, place)
				return b.either(x, y, word(at+third), thirdBit)
			}
		})
		return
	}
	pairs := b.q3Scales(i)
	b.runs(func(n int, runs []int) {
		w := n/2 + n%2*4 // as they lie
		for _, run := range runs {
			low, lowBit, third, thirdBit := q3Place(run, w)
			g, v := 32*i+8*run+w, b.word(at+low)
			switch {
			case low == third:
				b.field(g, v, lowBit, 0x07070707)
			case b.vec && b.unsigned():
				x := b.bitsOf(v, 0x18181818, b.shift(b.word(at+third), thirdBit-5))
				b.multiple(g, lowBit, b.and(x, b.bits(0x38383838)))
			default:
				high := b.and(b.shift(b.word(at+third), thirdBit-2), b.bits(0x04040404))
				b.group(g, b.andOr(b.shift(v, lowBit), b.bits(lowPairs), high))
			}
		}
	}, func(run int) {
		if b.inPairs() {
			pairs(run)
			b.finish(4*i+run, d)
			return
		}
		for j := 2 * run; j < 2*run+2; j++ {
			s := scale(8*i + j)
			if b.vec {
				b.factor[8*i+j] = b.isub(b.bits(32), s)
				continue
			}
			twice := b.add("sub16", temp, 0, b.bits(32<<16|32), b.or(s, b.shl(s, 16))) // weights and factors stay apart
			b.do("storeOffset", 64*(8*i+j), twice)
		}
		b.finish(4*i+run, d)
	})
}
