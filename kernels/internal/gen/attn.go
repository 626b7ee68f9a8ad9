package main

// attn writes package attn: what attention does between its products.
func attn() *source {
	s := newSource("attn")
	s.scalePeaks()
	return s
}

// scalePeaks multiplies scores and finds the largest of each row.
func (s *source) scalePeaks() {
	f := s.declare("scalePeaksF32", "rows int, x *float32, ldx, n int, a float32, peak *float32",
		"scalePeaksF32 multiplies the first n elements, a multiple of 16, of rows of x by a, and makes peak[r] the "+
			"largest of them and of what it was; with a NaN among them it is one of the others or a NaN.")
	for _, t := range []*tier{avx512, avx2} {
		vec := map[*tier]string{avx512: "Z", avx2: "Y"}[t]
		s.begin(f, t, "")
		s.p("MOVQ %s, CX", s.args["rows"])
		s.p("MOVQ %s, DI", s.args["x"])
		s.p("MOVQ %s, R8", s.args["ldx"])
		s.p("MOVQ %s, R9", s.args["n"])
		s.p("VBROADCASTSS %s, %s15", s.args["a"], vec)
		s.p("MOVQ %s, DX", s.args["peak"])
		s.p("SHLQ $2, R8")
		s.place("row")
		s.p("VBROADCASTSS (DX), %s1", vec)
		s.p("VMOVAPS %s1, %s2", vec, vec)
		s.p("MOVQ DI, SI")
		s.p("MOVQ R9, BX")
		s.place("loop")
		for v := range 64 / t.bytes {
			s.p("VMULPS %d(SI), %s15, %s0", v*t.bytes, vec, vec)
			s.p("VMOVUPS %s0, %d(SI)", vec, v*t.bytes)
			s.p("VMAXPS %s%d, %s0, %s%d", vec, 1+v, vec, vec, 1+v)
		}
		s.p("ADDQ $64, SI")
		s.p("SUBQ $16, BX")
		s.p("JNE loop")
		if t == avx512 {
			s.p("VEXTRACTF64X4 $1, Z1, Y2")
		}
		s.p("VMAXPS Y2, Y1, Y1")
		s.p("VEXTRACTF128 $1, Y1, X2")
		s.p("VMAXPS X2, X1, X1")
		s.p("VPERMILPS $0x4e, X1, X2")
		s.p("VMAXPS X2, X1, X1")
		s.p("VPERMILPS $0xb1, X1, X2")
		s.p("VMAXPS X2, X1, X1")
		s.p("VMOVSS X1, (DX)")
		s.p("ADDQ $4, DX")
		s.p("ADDQ R8, DI")
		s.p("DECQ CX")
		s.p("JNE row")
		s.p("VZEROUPPER")
		s.p("RET")
	}
	s.begin(f, neon, "")
	s.p("MOVD %s, R0", s.args["rows"])
	s.p("MOVD %s, R1", s.args["x"])
	s.p("MOVD %s, R2", s.args["ldx"])
	s.p("MOVD %s, R3", s.args["n"])
	s.p("FMOVS %s, F31", s.args["a"])
	s.p("VDUP V31.S[0], V31.S4")
	s.p("MOVD %s, R4", s.args["peak"])
	s.p("LSL $2, R2")
	s.place("row")
	s.p("FMOVS (R4), F1")
	s.p("VDUP V1.S[0], V1.S4")
	s.p("MOVD R1, R5")
	s.p("MOVD R3, R6")
	s.place("loop")
	for v := range 4 {
		s.p("FMOVQ %d(R5), F%d", v*16, 2+v)
		s.word("mul", 4, 2+v, 2+v, 31)
		s.p("FMOVQ F%d, %d(R5)", 2+v, v*16)
		s.word("max", 4, 1, 1, 2+v)
	}
	s.p("ADD $64, R5")
	s.p("SUBS $16, R6")
	s.p("BNE loop")
	s.p("WORD $0x%08x // FMAXV S1, V1.4S", 0x6E30F800|1<<5|1)
	s.p("FMOVS F1, (R4)")
	s.p("ADD $4, R4")
	s.p("ADD R2, R1")
	s.p("SUBS $1, R0")
	s.p("BNE row")
	s.p("RET")
}
