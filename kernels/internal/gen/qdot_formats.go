package main

// A panelFormat is a format of kernels/qdot: how the weights of 16 rows, a lane each, come out of a panel's block. The
// products and the unpacking into bytes use it.
type panelFormat struct {
	name   string
	block  int  // weights in a block
	bytes  int  // bytes of a block of one row
	odd    int  // bytes of it that are no words: an f16 scale or an exponent
	each   int  // weights that share a scale
	factor bool // 16 of them have an integer by which they are multiplied besides
	apart  bool // unpacking for AVX2 leaves these apart
	bias   int  // what weights have added to them as they come out: 0 or a power of two, for 8-bit ones 0 or 128
	top    int  // the greatest weight as it comes out; 255 says that it is one of 8 bits, and signed if the bias is 0

	point  int  // bytes of a point of the grid that weights are looked up in; 0 for none
	single bool // a scale's weights all come out times the same power of two
	steps  int  // of a block, between which other panels have their turn
	expand func(b *panelBody, step int)
}

var panelFormats = []*panelFormat{
	{name: "q8_0", block: 32, bytes: 34, odd: 2, each: 32, top: 255, steps: 1, expand: (*panelBody).q8_0},
	{name: "q4_0", block: 32, bytes: 18, odd: 2, each: 32, top: 15, bias: 8, steps: 1, expand: (*panelBody).q4_0},
	{name: "q4_k", block: 256, bytes: 144, each: 32, top: 15, single: true, steps: 4,
		expand: (*panelBody).q4_k},
	{name: "q6_k", block: 256, bytes: 210, odd: 2, each: 16, top: 63, bias: 32, steps: 4, expand: (*panelBody).q6_k},
	{name: "q4_1", block: 32, bytes: 20, each: 32, top: 15, steps: 1, expand: (*panelBody).q4_1},
	{name: "q5_0", block: 32, bytes: 22, odd: 2, each: 32, top: 31, bias: 16, steps: 1, expand: (*panelBody).q5_0},
	{name: "q5_1", block: 32, bytes: 24, each: 32, top: 31, steps: 1, expand: (*panelBody).q5_1},
	{name: "q5_k", block: 256, bytes: 176, each: 32, top: 31, single: true, steps: 4,
		expand: (*panelBody).q5_k},
	{name: "iq4_nl", block: 32, bytes: 18, odd: 2, each: 32, top: 255, steps: 1, expand: (*panelBody).iq4_nl},
	{name: "iq4_xs", block: 256, bytes: 136, each: 32, top: 255, steps: 4, expand: (*panelBody).iq4_xs},
	{name: "mxfp4", block: 32, bytes: 17, odd: 1, each: 32, top: 28, bias: 16, steps: 1, expand: (*panelBody).mxfp4},
	{name: "tq2_0", block: 256, bytes: 66, odd: 2, each: 128, top: 3, bias: 1, steps: 2, expand: (*panelBody).tq2_0},
	{name: "q2_0", block: 64, bytes: 18, odd: 2, each: 32, top: 3, bias: 1, steps: 1, expand: (*panelBody).q2_0},
	{name: "q2_k", block: 256, bytes: 84, each: 128, factor: true, top: 3, steps: 2,
		expand: (*panelBody).q2_k},
	{name: "q3_k", block: 256, bytes: 110, odd: 2, each: 128, factor: true, apart: true, top: 7, bias: 4, steps: 2,
		expand: (*panelBody).q3_k},
	{name: "iq2_xxs", block: 256, bytes: 66, odd: 2, each: 32, top: 107, bias: 64, point: 8, steps: 4,
		expand: (*panelBody).iq2_xxs},
	{name: "iq2_xs", block: 256, bytes: 74, odd: 2, each: 16, top: 107, bias: 64, point: 8, steps: 4,
		expand: (*panelBody).iq2_xs},
	{name: "iq2_s", block: 256, bytes: 82, odd: 2, each: 16, top: 107, bias: 64, point: 8, steps: 4,
		expand: (*panelBody).iq2_s},
	{name: "iq3_xxs", block: 256, bytes: 98, odd: 2, each: 32, top: 126, bias: 64, point: 4, steps: 4,
		expand: (*panelBody).iq3_xxs},
	{name: "iq3_s", block: 256, bytes: 110, odd: 2, each: 32, top: 31, bias: 16, point: 4, steps: 4,
		expand: (*panelBody).iq3_s},
	{name: "iq1_s", block: 256, bytes: 50, odd: 2, each: 32, top: 25, bias: 16, point: 8, steps: 4,
		expand: (*panelBody).iq1_s},
	{name: "iq1_m", block: 256, bytes: 56, each: 16, top: 25, bias: 16, point: 8, steps: 4, expand: (*panelBody).iq1_m},
	{name: "tq1_0", block: 256, bytes: 54, odd: 2, each: 32, top: 2, bias: 1, steps: 2, expand: (*panelBody).tq1_0},
	{name: "nvfp4", block: 64, bytes: 36, each: 16, top: 28, bias: 16, steps: 1, expand: (*panelBody).nvfp4},
	{name: "q1_0", block: 128, bytes: 18, odd: 2, each: 32, top: 2, bias: 1, steps: 1, expand: (*panelBody).q1_0},
	{name: "q8_1", block: 32, bytes: 36, each: 32, top: 255, steps: 1, expand: (*panelBody).q8_1},
	{name: "q8_k", block: 256, bytes: 292, each: 32, top: 255, steps: 4, expand: (*panelBody).q8_k},
}

const (
	lowNibbles = 0x0F0F0F0F
	fifthBits  = 0x10101010
	lowPairs   = 0x03030303
)

func (b *panelBody) q8_0(int) {
	for g := range 8 {
		b.bytes(g, b.word(g))
	}
	b.finish(0, b.halves())
}

func (b *panelBody) q4_0(int) {
	for g := range 4 {
		v := b.word(g)
		b.field(g, v, 0, lowNibbles)
		b.field(g+4, v, 4, lowNibbles)
	}
	b.finish(0, b.halves())
}

func (b *panelBody) q4_1(int) {
	s, m := b.twoHalves()
	for g := range 4 {
		v := b.word(1 + g)
		b.field(g, v, 0, lowNibbles)
		b.field(g+4, v, 4, lowNibbles)
	}
	b.finish(0, s, m)
}

// nibbles hands out 32 weights of which the words from first on have 4 bits: group g low, group g+4 high. with turns
// the low 4 bits of bytes into weights; the other bits may be anything.
func (b *panelBody) nibbles(first int, with func(g int, v val) val) {
	for g := range 4 {
		v := b.word(first + g)
		b.group(g, with(g, v))
		b.group(g+4, with(g+4, b.shr(v, 4)))
	}
}

// curved hands out 32 weights that stand in a table.
func (b *panelBody) curved(table []int) {
	t := b.table(b.biased(table))
	b.nibbles(0, func(_ int, v val) val { return b.lookup(t, v) })
}

func (b *panelBody) lookup(table, v val) val {
	return b.add("lookup", temp, 0, table, b.and(v, b.bits(lowNibbles)))
}

func (b *panelBody) q5_0(int) {
	b.fifths(0)
	b.finish(0, b.halves())
}

func (b *panelBody) q5_1(int) {
	s, m := b.twoHalves()
	b.fifths(1)
	b.finish(0, s, m)
}

// fifths hands out 32 weights of 5 bits: at word first the fifth bits, then four words of nibbles.
func (b *panelBody) fifths(first int) {
	bits := b.word(first)
	b.nibbles(first+1, func(g int, v val) val {
		if b.t == avx512 {
			return b.andOr(v, b.bits(lowNibbles), b.add("permute", temp, 0, b.shift(bits, 4*g), b.table(spread(4))))
		}
		x := b.shift(bits, 4*g-4) // the four bits are bits 4 to 7, and go to bit 4 of the four bytes
		x = b.add("imul", temp, 0, b.and(x, b.bits(0xF0)), b.bits(0x00204081))
		return b.andOr(x, b.bits(fifthBits), b.and(v, b.bits(lowNibbles)))
	})
}

// spread has in its 16 words four bits as the given bit of the bytes of a word.
func spread(bit int) (t []byte) {
	for i := range 16 {
		for j := range 4 {
			t = append(t, byte(i>>j&1<<bit))
		}
	}
	return t
}

func (b *panelBody) q4_k(i int) {
	d, low := b.factors()
	for w := range 8 {
		v := b.word(4 + 8*i + w)
		b.field(16*i+w, v, 0, lowNibbles)
		b.field(16*i+8+w, v, 4, lowNibbles)
	}
	b.sixes(i, d, low)
}

func (b *panelBody) q5_k(i int) {
	d, low := b.factors()
	for w := range 8 {
		at := 4 + 10*i + w/4*5
		rest := b.word(at)
		v := b.word(at + 1 + w%4)
		b.field(16*i+w, v, 0, 0x1F1F1F1F)
		if b.vec && b.unsigned() {
			x := b.bitsOf(v, 0xE0E0E0E0, b.shift(rest, w%4*2-3))
			b.multiple(16*i+8+w, 3, b.and(x, b.bits(0xF8F8F8F8)))
			continue
		}
		b.group(16*i+8+w, b.andOr(b.shr(v, 3), b.bits(0x1C1C1C1C), b.and(b.shift(rest, w%4*2), b.bits(lowPairs))))
	}
	b.sixes(i, d, low)
}

// factors is the f16 factors of scales and of offsets in word 0, the latter negated.
func (b *panelBody) factors() (d, low val) {
	d, low = b.twoHalves()
	return d, b.xor(low, b.bits(signBit32))
}

// sixes finishes the groups 2i and 2i+1 of q4_k and q5_k, whose scales and offsets of 6 bits stand in the words 1 to 3.
func (b *panelBody) sixes(i int, d, low val) {
	x, y := b.word(1), b.word(2)
	if i >= 2 {
		z := b.word(3)
		x = b.bitsOf(z, lowNibbles, b.shr(x, 2))
		y = b.bitsOf(b.shr(z, 4), lowNibbles, b.shr(y, 2))
	}
	for n := range 2 {
		at := i%2*16 + 8*n
		b.finish(2*i+n, b.times(b.number(x, at, 6, 0), d), b.times(b.number(y, at, 6, 0), low))
	}
}

// q6_k takes a quarter of a block, whose words lie together.
func (b *panelBody) q6_k(i int) {
	d := b.halves()
	weights := func(q, w int, low, high val) { // q counts the pairs of bits in high
		g := 16*i + q%2*8 + q/2*4 + w
		if b.vec && b.unsigned() && q == 3 { // four times the weight, with the high bits where they are
			b.multiple(g, 2, b.andOr(high, b.bits(lowPairs<<6), b.and(b.shr(low, 2), b.bits(lowNibbles<<2))))
			return
		}
		b.group(g, b.andOr(b.shift(high, 2*q-4), b.bits(0x30303030), b.and(b.shift(low, q%2*4), b.bits(lowNibbles))))
	}
	for w := range 4 {
		high := b.word(13*i + 3*w)
		for half := range 2 {
			low := b.word(13*i + 3*w + 1 + half)
			weights(2*half, w, low, high)
			weights(2*half+1, w, low, high)
		}
	}
	scales := b.word(13*i + 12)
	for j := range 4 {
		b.finish(4*i+j, b.times(b.toFloat(b.sar(b.shift(scales, 8*j-24), 24)), d))
	}
}

func (b *panelBody) iq4_nl(int) {
	b.curved(curve)
	b.finish(0, b.halves())
}

// curve is kernels/qdot's.
var curve = []int{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func (b *panelBody) iq4_xs(step int) {
	table := b.table(b.biased(curve))
	d := b.add("lowHalf", temp, 0, b.word(0))
	for i := 2 * step; i < 2*step+2; i++ {
		for w := range 4 {
			v := b.word(2 + 4*i + w)
			b.group(8*i+w, b.lookup(table, v))
			b.group(8*i+4+w, b.lookup(table, b.shr(v, 4)))
		}
		s := b.andOr(b.shift(b.word(0), 12+2*i), b.bits(0x30), b.and(b.shift(b.word(1), 4*i), b.bits(15)))
		b.finish(i, b.times(b.toFloat(b.isub(s, b.bits(32))), d))
	}
}

// e2m1 is kernels/qdot's E2M1.
var e2m1 = []int{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

func (b *panelBody) mxfp4(int) {
	b.curved(e2m1)
	// 2^(e-128), which may be subnormal, elsewhere in two factors: 2^(h-64)·2^(e-h-64)
	e := b.add("exponents", temp, 0)
	if b.t == avx512 {
		b.finish(0, b.add("scalef", temp, 0, b.c(0x1p-128), b.toFloat(e)))
		return
	}
	h := b.shr(e, 1)
	power := func(x val) val { return b.shl(b.iadd(x, b.bits(63)), 23) }
	b.finish(0, b.times(power(h), power(b.isub(e, h))))
}

func (b *panelBody) tq2_0(i int) {
	d := b.halves()
	for w := range 8 {
		v := b.word(8*i + w)
		for q := range 4 {
			b.field(32*i+8*q+w, v, 2*q, lowPairs)
		}
	}
	for q := range 4 {
		b.finish(4*i+q, d)
	}
}

func (b *panelBody) q2_0(int) {
	d := b.halves()
	for w := range 4 {
		v := b.word(w)
		for j := range 4 {
			if b.vec { // bits 2j, 2j+1 of all bytes: every fourth weight
				to, x := sumOf{w / 2, 2 * j}, v
				if !b.unsigned() {
					to.power, x = 0, b.shift(v, 2*j)
				}
				x = b.and(x, b.bits(lowPairs<<to.power))
				b.multiplyTurned(to, x, w, j)
				continue
			}
			// byte j: two nibbles to the halves of the word, and then pairs of bits to its bytes
			x := b.shift(v, 8*j)
			x = b.andOr(b.shl(x, 12), b.bits(0x000F0000), b.and(x, b.bits(15)))
			x = b.andOr(b.shl(x, 6), b.bits(0x03000300), b.and(x, b.bits(0x00030003)))
			b.group(4*w+j, x)
		}
		if w%2 == 1 {
			b.finish(w/2, d)
		}
	}
}
