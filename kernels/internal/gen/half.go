package main

// half writes package half: conversions between 16-bit and 32-bit floats.
func half() *source {
	s := newSource("half")
	write := func(name, list, doc string, f func(b *body)) {
		s.write(&loop{name: name, list: list + ", n int", elem: 4, body: f,
			doc: name + " converts n elements, a multiple of 16, " + doc})
	}
	write("widenF16", "y *float32, x *uint16", "from f16.", func(b *body) {
		b.store(0, b.add("loadF16", temp, 1))
	})
	write("narrowF16", "y *uint16, x *float32", "to f16, to nearest, ties to even.", func(b *body) {
		b.do("storeF16", 0, b.load(1))
	})
	write("widenBF16", "y *float32, x *uint16", "from bf16.", func(b *body) {
		b.store(0, b.shl(b.add("loadU16", temp, 1), 16))
	})
	write("narrowBF16", "y *uint16, x *float32", "to bf16, to nearest, ties to even.", func(b *body) {
		x := b.load(1)
		upper := b.shr(x, 16)
		rounded := b.shr(b.iadd(b.iadd(x, b.bits(0x7fff)), b.and(upper, b.bits(1))), 16)
		b.do("storeU16", 0, b.choose(b.notEqual(x, x), b.or(upper, b.bits(0x40)), rounded))
	})
	return s
}
