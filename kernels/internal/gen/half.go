package main

// half writes package half: conversions between floats of 16 bits, blocks of q8_0 and floats of 32 bits.
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
	s.widenQ8()
	return s
}

// widenQ8 decodes blocks of q8_0: an f16 and 32 signed bytes, which it multiplies.
func (s *source) widenQ8() {
	f := s.declare("widenQ8F32", "y *float32, x *byte, blocks, ahead int",
		"widenQ8F32 decodes blocks of q8_0: 34 bytes, a factor of f16 and 32 signed integers. What lies ahead bytes "+
			"behind them is fetched meanwhile.")
	for _, t := range []*tier{avx512, avx2} {
		vec := map[*tier]string{avx512: "Z", avx2: "Y"}[t]
		s.begin(f, t, "")
		s.p("MOVQ %s, DI", s.args["y"])
		s.p("MOVQ %s, SI", s.args["x"])
		s.p("MOVQ %s, CX", s.args["blocks"])
		s.p("MOVQ %s, BX", s.args["ahead"])
		s.place("loop")
		s.p("PREFETCHT1 (SI)(BX*1)")
		if t == avx512 {
			s.p("VPBROADCASTW (SI), Y0")
			s.p("VCVTPH2PS Y0, Z0")
		} else {
			s.p("VPBROADCASTW (SI), X0")
			s.p("VCVTPH2PS X0, Y0")
		}
		for v := range 128 / t.bytes {
			s.p("VPMOVSXBD %d(SI), %s%d", 2+v*t.bytes/4, vec, 1+v)
			s.p("VCVTDQ2PS %s%d, %s%d", vec, 1+v, vec, 1+v)
			s.p("VMULPS %s%d, %s0, %s%d", vec, 1+v, vec, vec, 1+v)
			s.p("VMOVUPS %s%d, %d(DI)", vec, 1+v, v*t.bytes)
		}
		s.p("ADDQ $34, SI")
		s.p("ADDQ $128, DI")
		s.p("DECQ CX")
		s.p("JNE loop")
		s.p("VZEROUPPER")
		s.p("RET")
	}
	s.begin(f, neon, "")
	s.p("MOVD %s, R0", s.args["y"])
	s.p("MOVD %s, R1", s.args["x"])
	s.p("MOVD %s, R2", s.args["blocks"])
	s.place("loop")
	s.p("MOVHU (R1), R3")
	s.p("FMOVS R3, F1")
	s.p("FCVTHS F1, F1")
	s.p("VDUP V1.S[0], V1.S4")
	s.p("ADD $2, R1")
	s.p("FMOVQ (R1), F2")
	s.p("FMOVQ 16(R1), F3")
	for v := range 2 {
		s.extend(0x0F08A400, 4, 2+v) // 8 bytes to 8 halfwords
		s.extend(0x4F08A400, 5, 2+v)
		for w := range 2 {
			s.extend(0x0F10A400, 6+2*w, 4+w) // 4 halfwords to 4 words
			s.extend(0x4F10A400, 7+2*w, 4+w)
		}
		for w := range 4 {
			s.word("toFloat", 4, 6+w, 6+w, 0)
			s.word("mul", 4, 6+w, 6+w, 1)
			s.p("FMOVQ F%d, %d(R0)", 6+w, v*64+w*16)
		}
	}
	s.p("ADD $32, R1")
	s.p("ADD $128, R0")
	s.p("SUBS $1, R2")
	s.p("BNE loop")
	s.p("RET")
}

// extend writes SXTL, or, by the bits, SXTL2: the lower or the upper half of the lanes, twice as wide.
func (s *source) extend(bits uint32, d, a int) {
	s.p("WORD $0x%08x // SXTL V%d, V%d", bits|uint32(a<<5|d), d, a)
}
