package main

import "fmt"

// The tiles of AVX2 for weights of 8 bits. Their products with activations are |w|·(a^s), s being -1 where w is negative
// and 0 elsewhere, as VPMADDUBSW wants one side without sign: -a is (a^-1) + 1, so a sum begins with -Σ|w|·s. Weights
// are taken apart, into all this, once for many rows.

// apartRows is the most rows of such a tile, apartColumns its columns.
const apartRows, apartColumns = 5, 16

// apartBytes is the bytes that so many words of weights of 8 columns take when they are taken apart.
func apartBytes(words int) int { return 32 + 64*words }

// qdotApart writes how weights are taken apart.
func (s *source) qdotApart() {
	cases := ""
	for _, form := range tileForms {
		if !form.wide {
			continue
		}
		words := form.each / 4
		f := s.declare(fmt.Sprintf("apart%d", form.each), "dst, w *byte, groups int",
			fmt.Sprintf("apart%d takes so many groups of weights of half a panel apart: for each %d of a row it writes "+
				"to dst -Σ|w|·s as a word, s being -1 where w is negative and 0 elsewhere, and then, of each word of "+
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
	const text = "\n// apartShape is the most rows and the columns of a tile of a wide form if the current tier has the " +
		"weights taken\n// apart, otherwise 0.\nfunc apartShape() (rows, columns int) {\n%s}\n" +
		"\n// apart takes weights of which so many share a scale apart for a tile; see apart32.\n//\n//go:noinline\n" +
		"func apart(each int, dst, w *byte, groups int) {\n%s}\n"
	shape := func(t *tier) string {
		if t == avx2 {
			return fmt.Sprintf("return %d, %d\n", apartRows, apartColumns)
		}
		return "return 0, 0\n"
	}
	s.extra["amd64"] += fmt.Sprintf(text, byTier(shape, avx512, avxvnni, avx2),
		fmt.Sprintf("switch each {\n%sdefault:\n%s}\n", cases, panics))
	s.extra["arm64"] += fmt.Sprintf(text, shape(neon), panics)
	s.extra["none"] += fmt.Sprintf("\nfunc apartShape() (rows, columns int) { %s }\n"+
		"\nfunc apart(each int, dst, w *byte, groups int) { %s }\n", noAssembly, noAssembly)
}

// qdotTileApart: rows of x are at SI or R8 (row 3) + 0, R11, 2·R11. A row of weights wants 4 products of its own, a load
// of activations is for two vectors, and the sums of floats are in memory, to which they cost a store a group: of loads
// and operations on vectors only four find a place in a cycle.
func (s *source) qdotTileApart(f *function, form tileForm, rows int) {
	const vectors = 2
	s.locals = rows*vectors*32 + 32
	s.begin(f, avx2, fmt.Sprintf("A turn reads 32 weights of 16 rows, taken apart, %d bytes, and %d bytes of x. Sums at "+
		"R10, integers in Y0 to Y%d, magnitudes of weights in Y10 and Y11.",
		vectors*32/form.each*apartBytes(form.each/4), rows*recordBytes, rows*vectors-1))
	const weights, activations, scratch, other, ones = 10, 12, 13, 14, 15
	place := func(i, offset int) string {
		return fmt.Sprintf("%d(%s)%s", offset, []string{"SI", "R8"}[i/3], []string{"", "(R11*1)", "(R11*2)"}[i%3])
	}
	eachSum := func(write func(at string, i int)) {
		s.p("MOVQ %s, AX", s.args["c"])
		s.p("MOVQ %s, BX", s.args["ldc"])
		s.p("SHLQ $2, BX")
		for i := range rows * vectors {
			if write(fmt.Sprintf("%d(AX)", i%vectors*32), i); i%vectors == vectors-1 {
				s.p("ADDQ BX, AX")
			}
		}
	}
	s.p("LEAQ 31(SP), R10")
	s.p("ANDQ $-32, R10")
	s.p("CMPB %s, $0", s.args["add"])
	s.p("JEQ zero")
	eachSum(func(at string, i int) {
		s.p("VMOVUPS %s, Y0", at)
		s.p("VMOVAPS Y0, %d(R10)", 32*i)
	})
	s.p("JMP start")
	s.place("zero")
	s.p("VXORPS Y0, Y0, Y0")
	for i := range rows * vectors {
		s.p("VMOVAPS Y0, %d(R10)", 32*i)
	}
	s.place("start")
	for _, arg := range [][2]string{{"groups", "CX"}, {"w", "DI"}, {"wnext", "R9"}, {"s", "DX"}, {"x", "SI"},
		{"ldx", "R11"}} {
		s.p("MOVQ %s, %s", s.args[arg[0]], arg[1])
	}
	s.p("SHLQ $2, R11")
	if rows > 3 {
		s.p("LEAQ (R11)(R11*2), R8")
		s.p("ADDQ SI, R8")
	}
	s.p("VMOVDQU consts<>+%d(SB), Y%d", s.constant(0x00010001, 4), ones)
	s.p("PCALIGN $64")
	s.place("loop")
	for part := range 32 / form.each {
		words := form.each / 4
		from := func(offset, v int) string {
			return fmt.Sprintf("%d(DI)%s", part*apartBytes(words)+offset, []string{"", "(R9*1)"}[v])
		}
		for i := range rows * vectors {
			s.p("VMOVDQU %s, Y%d", from(0, i%vectors), i)
		}
		for word := range words {
			for v := range vectors {
				s.p("VMOVDQU %s, Y%d", from(32+64*word, v), weights+v)
			}
			for i := range rows {
				s.p("VPBROADCASTD %s, Y%d", place(i, part*form.each+4*word), activations)
				for v := range vectors {
					s.p("VPXOR %s, Y%d, Y%d", from(64+64*word, v), activations, scratch+v)
					s.p("VPMADDUBSW Y%d, Y%d, Y%d", scratch+v, weights+v, scratch+v)
					s.p("VPMADDWD Y%d, Y%d, Y%d", ones, scratch+v, scratch+v)
					s.p("VPADDD Y%d, Y%d, Y%d", scratch+v, i*vectors+v, i*vectors+v)
				}
			}
		}
		for v := range vectors {
			s.p("VMOVUPS %d(DX), Y%d", 64*part+32*v, weights+v)
		}
		for i := range rows {
			s.p("VBROADCASTSS %s, Y%d", place(i, recordScale), activations)
			for v := range vectors {
				a := i*vectors + v
				s.p("VMULPS Y%d, Y%d, Y%d", activations, weights+v, scratch)
				s.p("VCVTDQ2PS Y%d, Y%d", a, a)
				s.p("VMULPS Y%d, Y%d, Y%d", scratch, a, a)
				s.p("VADDPS %d(R10), Y%d, Y%d", 32*a, a, other)
				s.p("VMOVAPS Y%d, %d(R10)", other, 32*a)
			}
		}
	}
	s.p("ADDQ $%d, DI", 32/form.each*apartBytes(form.each/4))
	s.p("ADDQ $%d, DX", 64*32/form.each)
	s.p("ADDQ $%d, SI", recordBytes)
	if rows > 3 {
		s.p("ADDQ $%d, R8", recordBytes)
	}
	s.p("DECQ CX")
	s.p("JNE loop")
	eachSum(func(at string, i int) {
		s.p("VMOVAPS %d(R10), Y0", 32*i)
		s.p("VMOVUPS Y0, %s", at)
	})
	s.p("VZEROUPPER")
	s.p("RET")
}
