package main

import "fmt"

// qdotTile256: rows of x are at SI or R8 (row 3) + 0, R11, 2·R11. VPMADDUBSW multiplies bytes without sign by bytes
// with sign and adds two products, in 16 bits.
//
// Weights of 6 bits, to which 32 is added, have no sign, and the sums of four products fit in 16 bits. Products with
// those of 8 bits are |w|·(a^s), s being -1 where w is negative and 0 elsewhere: -a is (a^-1) + 1, so the sum of
// |w|·s, which is the same for all rows, is subtracted in the end.
func (s *source) qdotTile256(f *function, form tileForm, rows int) {
	s.begin(f, avx2, fmt.Sprintf("A turn reads 32 weights of 8 rows, %d bytes, and %d bytes of x. Sums in Y0 to Y%d, "+
		"integers in Y%d to Y%d, weights or their magnitudes and signs in Y12 and Y13.", 32*8, rows*recordBytes, rows-1,
		rows, 2*rows-1))
	const weights, scratch = 12, 14 // and the register after each
	place := func(i, offset int) string {
		return fmt.Sprintf("%d(%s)%s", offset, []string{"SI", "R8"}[i/3], []string{"", "(R11*1)", "(R11*2)"}[i%3])
	}
	eachC := func(write func(at string, i int)) {
		s.p("MOVQ %s, AX", s.args["c"])
		s.p("MOVQ %s, BX", s.args["ldc"])
		s.p("SHLQ $2, BX")
		for i := range rows {
			write("(AX)", i)
			if i+1 < rows {
				s.p("ADDQ BX, AX")
			}
		}
	}
	s.p("CMPB %s, $0", s.args["add"])
	s.p("JEQ zero")
	eachC(func(at string, i int) { s.p("VMOVUPS %s, Y%d", at, i) })
	s.p("JMP start")
	s.place("zero")
	for i := range rows {
		s.p("VXORPS Y%d, Y%d, Y%d", i, i, i)
	}
	s.place("start")
	s.p("MOVQ %s, CX", s.args["groups"])
	s.p("MOVQ %s, DI", s.args["w"])
	s.p("MOVQ %s, DX", s.args["s"])
	if form.offset {
		s.p("MOVQ %s, R12", s.args["m"])
	}
	s.p("MOVQ %s, SI", s.args["x"])
	s.p("MOVQ %s, R11", s.args["ldx"])
	s.p("SHLQ $2, R11")
	if rows > 3 {
		s.p("LEAQ (R11)(R11*2), R8")
		s.p("ADDQ SI, R8")
	}
	turn := 32 * 16 // bytes of weights
	if form.wide {
		turn = 32 / form.each * apartBytes(form.each/4)
		s.p("VMOVDQU consts<>+%d(SB), Y15", s.constant(0x00010001, 4))
	} else {
		s.p("LEAQ consts<>+%d(SB), R9", s.constant(0x00010001, 4)) // short to name in the loop
		s.p("LEAQ consts<>+%d(SB), R10", s.constant(0x60606060, 4))
	}
	s.p("PCALIGN $64")
	s.place("loop")
	for part := range 32 / form.each {
		first := part * form.each / 4
		if form.wide {
			s.widePart(rows, part*apartBytes(form.each/4), first, form.each/4, place)
		} else {
			for i := range rows {
				s.p("VPBROADCASTD %s, Y%d", place(i, form.sumAt(part)), rows+i)
				s.p("VPSLLD $5, Y%d, Y%d", rows+i, rows+i)
			}
			for word := first; word < first+form.each/4; word += 2 {
				for j := range 2 {
					s.p("VMOVDQU %d(DI), Y%d", (word+j)*64, weights+j)
					s.p("VPSUBB (R10), Y%d, Y%d", weights+j, weights+j)
				}
				for i := range rows {
					for j := range 2 {
						s.p("VPBROADCASTD %s, Y%d", place(i, 4*(word+j)), scratch+j)
						s.p("VPMADDUBSW Y%d, Y%d, Y%d", scratch+j, weights+j, scratch+j)
					}
					s.p("VPADDW Y%d, Y%d, Y%d", scratch+1, scratch, scratch)
					s.p("VPMADDWD (R9), Y%d, Y%d", scratch, scratch)
					s.p("VPADDD Y%d, Y%d, Y%d", scratch, rows+i, rows+i)
				}
			}
		}
		s.p("VMOVUPS %d(DX), Y%d", part*64, weights)
		for i := range rows {
			a := rows + i
			s.p("VBROADCASTSS %s, Y%d", place(i, recordScale), scratch)
			s.p("VMULPS Y%d, Y%d, Y%d", scratch, weights, scratch)
			s.p("VCVTDQ2PS Y%d, Y%d", a, a)
			s.p("VMULPS Y%d, Y%d, Y%d", scratch, a, a)
			s.p("VADDPS Y%d, Y%d, Y%d", a, i, i)
		}
		if !form.offset {
			continue
		}
		s.p("VMOVUPS %d(R12), Y%d", part*64, weights)
		for i := range rows {
			s.p("VBROADCASTSS %s, Y%d", place(i, form.scaledSumAt(part)), scratch)
			s.p("VMULPS Y%d, Y%d, Y%d", scratch, weights, scratch)
			s.p("VADDPS Y%d, Y%d, Y%d", scratch, i, i)
		}
	}
	if form.offset {
		s.p("ADDQ $%d, R12", 64*32/form.each)
	}
	s.p("ADDQ $%d, DI", turn)
	s.p("ADDQ $%d, DX", 64*32/form.each)
	s.p("ADDQ $%d, SI", recordBytes)
	if rows > 3 {
		s.p("ADDQ $%d, R8", recordBytes)
	}
	s.p("DECQ CX")
	s.p("JNE loop")
	eachC(func(at string, i int) { s.p("VMOVUPS Y%d, %s", i, at) })
	s.p("VZEROUPPER")
	s.p("RET")
}

// apartBytes is the bytes that so many words of weights of 8 columns take when they are taken apart.
func apartBytes(words int) int { return 32 + 64*words }

// qdotApart writes how weights of 8 bits are taken apart for the tiles of AVX2.
func (s *source) qdotApart() {
	cases := ""
	for _, form := range tileForms {
		if !form.wide {
			continue
		}
		words := form.each / 4
		f := s.declare(fmt.Sprintf("apart%d", form.each), "dst, w *byte, groups int",
			fmt.Sprintf("apart%d takes so many groups of weights of half a panel apart: for each %d of a row it writes to "+
				"dst -Σ|w|·s as a word, s being -1 where w is negative and 0 elsewhere, and then, of each word of "+
				"weights, |w| and s; all of 8 rows.", form.each, form.each))
		f.local = true
		s.begin(f, avx2, fmt.Sprintf("A turn reads %d bytes and writes %d.", 32*words, apartBytes(words)))
		s.p("MOVQ %s, DI", s.args["dst"])
		s.p("MOVQ %s, SI", s.args["w"])
		s.p("MOVQ %s, CX", s.args["groups"])
		if form.each == 16 {
			s.p("ADDQ CX, CX")
		}
		s.p("VMOVDQU consts<>+%d(SB), Y15", s.constant(0x00010001, 4))
		s.p("VMOVDQU consts<>+%d(SB), Y14", s.constant(0x80808080, 4))
		s.p("VPXOR Y13, Y13, Y13")
		s.place("loop")
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
		s.p("ADDQ $%d, SI", 64*words)
		s.p("ADDQ $%d, DI", apartBytes(words))
		s.p("DECQ CX")
		s.p("JNE loop")
		s.p("VZEROUPPER")
		s.p("RET")
		cases += fmt.Sprintf("case %d:\n%s%s(dst, w, groups)\n", form.each, f.name, avx2.suffix)
	}
	const panics = "panic(\"no weights are taken apart\")\n"
	const doc = "\n// takenApart tells whether the current tier's tiles of wide forms have their weights taken apart.\n" +
		"func takenApart() bool {\n%s}\n" +
		"\n// apart takes weights of which so many share a scale apart for a tile; see apart32.\n" +
		"//\n//go:noinline\nfunc apart(each int, dst, w *byte, groups int) {\n%s}\n"
	is := func(t *tier) string { return fmt.Sprintf("return %t\n", t == avx2) }
	s.extra["amd64"] += fmt.Sprintf(doc, byTier(is, avx512, avxvnni, avx2),
		fmt.Sprintf("switch each {\n%sdefault:\n%s}\n", cases, panics))
	s.extra["arm64"] += fmt.Sprintf(doc, "return false\n", panics)
	s.extra["none"] += fmt.Sprintf("\nfunc takenApart() bool { %s }\n"+
		"\nfunc apart(each int, dst, w *byte, groups int) { %s }\n", noAssembly, noAssembly)
}

// widePart writes the products of so many words of weights of 8 bits, at the given place of those that were taken apart.
func (s *source) widePart(rows, at, first, words int, place func(i, offset int) string) {
	const magnitudes, signs, scratch, ones = 12, 13, 14, 15
	for i := range rows {
		s.p("VMOVDQU %d(DI), Y%d", at, rows+i)
	}
	for word := range words {
		s.p("VMOVDQU %d(DI), Y%d", at+32+64*word, magnitudes)
		s.p("VMOVDQU %d(DI), Y%d", at+64+64*word, signs)
		for i := range rows {
			s.p("VPBROADCASTD %s, Y%d", place(i, 4*(first+word)), scratch)
			s.p("VPXOR Y%d, Y%d, Y%d", signs, scratch, scratch)
			s.p("VPMADDUBSW Y%d, Y%d, Y%d", scratch, magnitudes, scratch)
			s.p("VPMADDWD Y%d, Y%d, Y%d", ones, scratch, scratch)
			s.p("VPADDD Y%d, Y%d, Y%d", scratch, rows+i, rows+i)
		}
	}
}
