package main

import "fmt"

// The tiles of AVX2 have weights that were taken apart, once for many rows: of half a panel, group after group, what
// VPMADDUBSW wants, which multiplies bytes without sign by bytes with sign and adds two products in 16 bits.
//
// Weights of 6 bits have 32 added if they have a sign, those of 3 bits with factors 4. Those of 8 bits become
// magnitudes |w| and signs s, which are -1 where w is negative and 0 elsewhere: a product is |w|·(a^s), and as -a is
// (a^-1) + 1, a sum begins with -Σ|w|·s.

// apartBytes is the bytes that so many words of weights of 8 columns, which share a scale, take when they are apart.
func (f *tileForm) apartBytes(words int) int {
	if f.wide {
		return 32 + 64*words
	}
	return 32 * words
}

// qdotApart writes how weights are taken apart.
func (s *source) qdotApart() {
	const list = "dst, w *byte, groups int"
	narrow := map[int]*function{}
	for _, added := range []int{0, 4, 32} {
		narrow[added] = s.apartNarrow(fmt.Sprintf("apartPlus%d", added), list, added)
	}
	cases := ""
	for number, form := range tileForms {
		f := narrow[form.added()]
		if form.wide {
			f = s.apartWide(list, &form)
		}
		cases += fmt.Sprintf("case %d:\n%s%s(dst, w, groups)\n", number, f.name, avx2.suffix)
	}
	const panics = "panic(\"no weights are taken apart\")\n"
	const text = "\n// takenApart tells whether the current tier's tiles have weights that were taken apart.\n" +
		"func takenApart() bool {\n%s}\n\n// apart takes weights of half a panel apart for tiles of a kind; see " +
		"apartPlus32 and apart32.\n//\n//go:noinline\nfunc apart(kind int, dst, w *byte, groups int) {\n%s}\n"
	is := func(t *tier) string { return fmt.Sprintf("return %t\n", t == avx2) }
	s.extra["amd64"] += fmt.Sprintf(text, byTier(is, avx512, avxvnni, avx2),
		fmt.Sprintf("switch kind {\n%sdefault:\n%s}\n", cases, panics))
	s.extra["arm64"] += fmt.Sprintf(text, is(neon), panics)
	s.extra["none"] += fmt.Sprintf("\nfunc takenApart() bool { %s }\n"+
		"\nfunc apart(kind int, dst, w *byte, groups int) { %s }\n", noAssembly, noAssembly)
}

// apartNarrow writes how weights of 6 bits are taken apart, to which so much is added.
func (s *source) apartNarrow(name, list string, added int) *function {
	f := s.declare(name, list, fmt.Sprintf("%s takes so many groups of weights of half a panel, of 6 bits, apart: "+
		"with %d added, 8 rows of words follow one another.", name, added))
	f.local = true
	s.begin(f, avx2, "A turn reads and writes 256 bytes.")
	s.apartStart(uint64(128-added)*0x01010101, 1)
	for word := range 8 {
		s.p("VMOVDQU %d(SI), Y0", 64*word)
		s.p("VPSUBB Y14, Y0, Y0")
		s.p("VMOVDQU Y0, %d(DI)", 32*word)
	}
	s.apartEnd(8, 256)
	return f
}

// apartWide writes how weights of 8 bits are taken apart.
func (s *source) apartWide(list string, form *tileForm) *function {
	words := form.each / 4
	f := s.declare(fmt.Sprintf("apart%d", form.each), list, fmt.Sprintf("apart%d takes so many groups of weights of "+
		"half a panel, of 8 bits, apart: for each %d of a row it writes to dst -Σ|w|·s as a word, s being -1 where w "+
		"is negative and 0 elsewhere, and then, of each word of weights, |w| and s; all of 8 rows.",
		form.each, form.each))
	f.local = true
	s.begin(f, avx2, fmt.Sprintf("A turn reads %d bytes and writes %d.", 32*words, form.apartBytes(words)))
	s.apartStart(0x80808080, 32/form.each)
	s.p("VPXOR Y12, Y12, Y12")
	for word := range words {
		s.p("VPXOR %d(SI), Y14, Y0", 64*word)
		s.p("VPABSB Y0, Y1")
		s.p("VPCMPGTB Y0, Y13, Y2")
		s.p("VMOVDQU Y1, %d(DI)", 32+64*word)
		s.p("VMOVDQU Y2, %d(DI)", 64+64*word)
		s.p("VPMADDUBSW Y2, Y1, Y1")
		s.p("VPSUBW Y1, Y12, Y12")
	}
	s.p("VPMADDWD Y15, Y12, Y12")
	s.p("VMOVDQU Y12, (DI)")
	s.apartEnd(words, form.apartBytes(words))
	return f
}

// apartStart begins the loop, of one or two turns a group; Y13 is zero, Y14 has the given words, Y15 ones in 16 bits.
func (s *source) apartStart(words uint64, turns int) {
	s.p("MOVQ %s, DI", s.args["dst"])
	s.p("MOVQ %s, SI", s.args["w"])
	s.p("MOVQ %s, CX", s.args["groups"])
	if turns == 2 {
		s.p("ADDQ CX, CX")
	}
	s.p("VMOVDQU consts<>+%d(SB), Y15", s.constant(0x00010001, 4))
	s.p("VMOVDQU consts<>+%d(SB), Y14", s.constant(words, 4))
	s.p("VPXOR Y13, Y13, Y13")
	s.place("loop")
}

// apartEnd ends a turn, which has read so many words and written so many bytes.
func (s *source) apartEnd(words, bytes int) {
	s.p("ADDQ $%d, SI", 64*words)
	s.p("ADDQ $%d, DI", bytes)
	s.p("DECQ CX")
	s.p("JNE loop")
	s.p("VZEROUPPER")
	s.p("RET")
}
