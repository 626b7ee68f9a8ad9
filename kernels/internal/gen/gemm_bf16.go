package main

import (
	"fmt"
	"strings"
)

// pairTiers are those that products of bf16 are written in, the best first.
var pairTiers = []*tier{avx512bf16, avx512, avx2, neon}

// pairTiles writes the tiles of products of bf16: two neighbours of the contracted index lie side by side in a word, of
// a as of b, in whose panels each pair of rows is 16 words. See kernels/gemm/bf16.go for what they compute.
func (s *source) pairTiles() {
	const list = "k int, a *uint16, lda int, b *uint16, bnext int, c *float32, ldc, cnext int, add bool, ahead int, " +
		"near *uint32"
	byShape := map[[2]int]*function{}
	choices, limits := map[*tier]string{}, map[*tier]string{}
	for _, t := range pairTiers {
		var cases strings.Builder
		most := map[int]int{}
		tiles := shapes(t, 4)
		if t.bytes == 64 { // as many accumulators as of 12 rows and two panels
			tiles = append(tiles, [2]int{5, 4}, [2]int{6, 4})
		}
		for _, shape := range tiles {
			rows, panels := shape[0], shape[1]
			f := byShape[shape]
			if f == nil {
				name := fmt.Sprintf("pairs%dx%d", rows, panels)
				f = s.declare(name, list, fmt.Sprintf("%s computes c = a·b, or c += a·b if add, of %d rows and %d "+
					"panels of bf16, as BF16 does. Four panels have what lies ahead bytes behind each line fetched "+
					"when they read it. NEON sets near to 1 and leaves c as it was if a sum came so near to 0 that it "+
					"does not know what to round it to.", name, rows, panels))
				f.local = true
				byShape[shape] = f
			}
			s.pairTile(f, t, rows, panels)
			most[panels] = max(most[panels], rows)
			fmt.Fprintf(&cases, "case %d<<2 + %d:\n%s%s(k, a, lda, b, bnext, c, ldc, cnext, add, ahead, near)\n",
				rows, panels-1, f.name, t.suffix)
		}
		choices[t] = fmt.Sprintf("switch rows<<2 + panels-1 {\n%sdefault:\npanic(\"no such tile\")\n}\n",
			cases.String())
		limits[t] = fmt.Sprintf("return [5]int{1: %d, 2: %d, 4: %d}[panels]\n", most[1], most[2], most[4])
	}
	signatures := [2]string{"func pairs(rows, panels, " + list + ")", "func pairsRows(panels int) int"}
	for i, text := range []string{"pairs computes a tile in the current tier; see pairs1x1",
		"pairsRows is the most rows of a tile, 0 if there is none"} {
		chosen := []map[*tier]string{choices, limits}[i]
		write := func(t *tier) string { return chosen[t] }
		const format = "\n// %s.\n%s {\n%s}\n"
		s.extra["amd64"] += fmt.Sprintf(format, text, signatures[i], byTier(write, pairTiers[:3]...))
		s.extra["arm64"] += fmt.Sprintf(format, text, signatures[i], byTier(write, neon))
		s.extra["none"] += fmt.Sprintf("\n%s { %s }\n", signatures[i], noAssembly)
	}
}

func (s *source) pairTile(f *function, t *tier, rows, panels int) {
	x := newTile(t, 4, rows, panels)
	if t != avx512bf16 {
		x.registers-- // a mask is in the last one
	}
	switch t {
	case avx512bf16:
	case neon:
		s.pairsARM64(f, x)
		return
	default:
		s.locals = 8 // for MXCSR
	}
	s.begin(f, t, x.notes())
	(&pairs64{source: s, tileRegs: x}).write()
}

// pairs64 writes a tile on amd64. Rows 0, 3, 6 and 9 of a begin at SI, R8, R9 and R10, R11 is from one row to the next;
// panel 0 begins at DI, R13 is from one panel to the next and AX three times that.
type pairs64 struct {
	*source
	*tileRegs
}

func (w *pairs64) vec(r int) string {
	if w.t == avx2 {
		return fmt.Sprintf("Y%d", r)
	}
	return fmt.Sprintf("Z%d", r)
}

func (w *pairs64) perPanel() int { return w.vectors / w.panels }

// results writes something for each vector of c, whose rows and panels pass.
func (w *pairs64) results(write func(at, acc string)) {
	w.p("MOVQ %s, DX", w.args["c"])
	w.p("MOVQ %s, BX", w.args["ldc"])
	w.p("SHLQ $2, BX")
	w.p("MOVQ %s, R8", w.args["cnext"])
	w.p("SHLQ $2, R8")
	if w.panels == 4 {
		w.p("LEAQ (R8)(R8*2), R9")
	}
	for i := range w.rows {
		for v := range w.vectors {
			index := []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[v/w.perPanel()]
			write(fmt.Sprintf("%d(DX)%s", v%w.perPanel()*w.t.bytes, index), w.vec(w.acc(i, v)))
		}
		if i+1 < w.rows {
			w.p("ADDQ BX, DX")
		}
	}
}

func (w *pairs64) write() {
	fused := w.t != avx512bf16
	if fused { // numbers below the least normal one count as 0, as they do in VDPBF16PS
		w.p("STMXCSR mode-8(SP)")
		w.p("MOVL mode-8(SP), AX")
		w.p("ORL $0x8040, AX")
		w.p("MOVL AX, mode-4(SP)")
		w.p("LDMXCSR mode-4(SP)")
		w.p("VPBROADCASTD consts<>+%d(SB), %s", w.constant(0xffff0000, 4), w.vec(w.registers))
	}
	w.p("CMPB %s, $0", w.args["add"])
	w.p("JEQ zero")
	w.results(func(at, acc string) { w.p("VMOVUPS %s, %s", at, acc) })
	w.p("JMP start")
	w.place("zero")
	for i := range w.rows * w.vectors {
		r, clear := w.vec(i), map[bool]string{true: "VXORPS", false: "VPXORQ"}[w.t == avx2]
		w.p("%s %s, %s, %s", clear, r, r, r)
	}
	w.place("start")
	w.p("MOVQ %s, SI", w.args["a"])
	w.p("MOVQ %s, R11", w.args["lda"])
	w.p("SHLQ $1, R11")
	bases := []string{"SI", "R8", "R9", "R10"}[:(w.rows+2)/3]
	if len(bases) > 1 {
		w.p("LEAQ (R11)(R11*2), AX")
	}
	for i := 1; i < len(bases); i++ {
		w.p("LEAQ (%s)(AX*1), %s", bases[i-1], bases[i])
	}
	w.p("MOVQ %s, DI", w.args["b"])
	w.p("MOVQ %s, R13", w.args["bnext"])
	w.p("SHLQ $1, R13")
	w.p("LEAQ (R13)(R13*2), AX")
	if w.panels == 4 {
		w.p("MOVQ %s, BX", w.args["ahead"])
		w.p("ADDQ DI, BX")
	}
	advance := func(pairs int) {
		for _, base := range bases {
			w.p("ADDQ $%d, %s", 4*pairs, base)
		}
		w.p("ADDQ $%d, DI", 64*pairs)
		if w.panels == 4 {
			w.p("ADDQ $%d, BX", 64*pairs)
		}
	}
	const unroll = 4
	w.p("MOVQ %s, CX", w.args["k"])
	w.p("SHRQ $1, CX")
	w.p("SUBQ $%d, CX", unroll)
	w.p("JLT rest")
	w.p("PCALIGN $64")
	w.place("loop")
	for p := range unroll {
		w.step(p, false)
	}
	advance(unroll)
	w.p("SUBQ $%d, CX", unroll)
	w.p("JGE loop")
	w.place("rest")
	w.p("ADDQ $%d, CX", unroll)
	w.p("JEQ last")
	w.place("single")
	w.step(0, false)
	advance(1)
	w.p("DECQ CX")
	w.p("JNE single")
	w.place("last")
	w.p("TESTQ $1, %s", w.args["k"])
	w.p("JEQ done")
	w.step(0, true)
	w.place("done")
	w.results(func(at, acc string) { w.p("VMOVUPS %s, %s", acc, at) })
	if fused {
		w.p("LDMXCSR mode-8(SP)")
	}
	w.p("VZEROUPPER")
	w.p("RET")
}

// step adds the products of pair p, or, if half, of what lies there alone, with 0 beside it.
func (w *pairs64) step(p int, half bool) {
	w.fetch(p)
	if w.t == avx512bf16 {
		w.pass(p, half, "")
		return
	}
	w.pass(p, half, "odd") // the upper ones first
	w.pass(p, half, "even")
}

func (w *pairs64) placeB(v, offset int) string {
	return fmt.Sprintf("%d(DI)%s", offset, []string{"", "(R13*1)", "(R13*2)", "(AX*1)"}[v/w.perPanel()])
}

// fetch asks for lines further on: of four panels as far as an argument says, else of the panels that come next.
func (w *pairs64) fetch(p int) {
	switch {
	case w.panels == 4:
		for q := range 4 {
			w.p("PREFETCHT1 %s", strings.Replace(w.placeB(q*w.perPanel(), 64*p), "(DI)", "(BX)", 1))
		}
	case w.panels == 2 && w.rows > 4:
		w.p("PREFETCHT1 %d(DI)(R13*2)", 64*p)
		w.p("PREFETCHT1 %d(DI)(AX*1)", 64*p)
	case w.t == avx2:
		w.p("PREFETCHT1 %d(DI)(R13*1)", 64*p)
	}
}

// pass adds the products of a pair, or of one of the two.
func (w *pairs64) pass(p int, half bool, which string) {
	loadB := func(v, r int) {
		at := w.placeB(v, 64*p+v%w.perPanel()*w.t.bytes)
		if half {
			w.p("VPMOVZXWD %s, %s", w.placeB(v, v%w.perPanel()*w.t.bytes/2), w.vec(r))
		} else {
			w.p("VMOVUPS %s, %s", at, w.vec(r))
		}
		w.part(which, r)
	}
	loadA := func(i, r int) {
		at := fmt.Sprintf("%d(%s)%s", 4*p, []string{"SI", "R8", "R9", "R10"}[i/3],
			[]string{"", "(R11*1)", "(R11*2)"}[i%3])
		switch {
		case !half:
			w.p("VPBROADCASTD %s, %s", at, w.vec(r))
		case w.t == avx2:
			w.p("MOVWLZX %s, DX", at)
			w.p("VMOVD DX, X%d", r)
			w.p("VPBROADCASTD X%d, Y%d", r, r)
		default:
			w.p("MOVWLZX %s, DX", at)
			w.p("VPBROADCASTD DX, Z%d", r)
		}
		w.part(which, r)
	}
	if w.byColumn {
		for v := range w.vectors {
			loadB(v, w.fixed(v))
		}
		for i := range w.rows {
			r := w.moving(p*w.rows + i)
			loadA(i, r)
			for v := range w.vectors {
				w.multiply(w.fixed(v), r, w.acc(i, v))
			}
		}
		return
	}
	for i := range w.rows {
		loadA(i, w.fixed(i))
	}
	for v := range w.vectors {
		r := w.moving(p*w.vectors + v)
		loadB(v, r)
		for i := range w.rows {
			w.multiply(r, w.fixed(i), w.acc(i, v))
		}
	}
}

// part makes pairs in a register f32, those of one place.
func (w *pairs64) part(which string, r int) {
	switch {
	case which == "even":
		w.p("VPSLLD $16, %s, %s", w.vec(r), w.vec(r))
	case which == "odd" && w.t == avx2:
		w.p("VPAND %s, %s, %s", w.vec(w.registers), w.vec(r), w.vec(r))
	case which == "odd":
		w.p("VPANDD %s, %s, %s", w.vec(w.registers), w.vec(r), w.vec(r))
	}
}

func (w *pairs64) multiply(b, a, acc int) {
	if w.t == avx512bf16 {
		w.dotPairs(b, a, acc)
	} else {
		w.p("VFMADD231PS %s, %s, %s", w.vec(b), w.vec(a), w.vec(acc))
	}
}

// evexPairs is VDPBF16PS of zmm registers, which Go's assembler lacks: EVEX.512.F3.0F38.W0 52 /r.
func evexPairs(b, a, acc int) [6]byte {
	inverted := func(r, bit int) byte { return ^byte(r>>bit) & 1 }
	return [6]byte{
		0x62,
		inverted(acc, 3)<<7 | inverted(b, 4)<<6 | inverted(b, 3)<<5 | inverted(acc, 4)<<4 | 0b010, // the map 0F38
		byte(^a&15)<<3 | 1<<2 | 0b10, // W0; vvvv, inverted; F3
		0b10<<5 | inverted(a, 4)<<3,  // 512 bits; the upper bit of vvvv, inverted; no mask
		0x52,
		0b11<<6 | byte(acc&7)<<3 | byte(b&7),
	}
}

// dotPairs adds to the words of acc the products of the two bf16 in each of b and of a, the upper ones first.
func (s *source) dotPairs(b, a, acc int) {
	x := evexPairs(b, a, acc)
	s.p("LONG $0x%02x%02x%02x%02x; WORD $0x%02x%02x // VDPBF16PS Z%d, Z%d, Z%d", x[3], x[2], x[1], x[0], x[5], x[4],
		b, a, acc)
}

// pairsARM64: rows of a begin at R1, R2, …, panels at R13 to R16. FPCR and FPSR are kept in R11 and R12 while numbers
// below the least normal one count as 0. This processor flushes what is below it before it has been rounded, others
// after that: if it did so at all, which it notes as an underflow, the tile is left to plain Go.
func (s *source) pairsARM64(f *function, x *tileRegs) {
	s.begin(f, neon, x.notes())
	perPanel := x.vectors / x.panels
	strided := func(name, reg string, shift int) {
		s.p("MOVD %s, %s", s.args[name], reg)
		s.p("LSL $%d, %s", shift, reg)
	}
	eachC := func(write func(at string, acc int)) {
		s.p("MOVD %s, R1", s.args["c"])
		strided("ldc", "R2", 2)
		strided("cnext", "R3", 2)
		for i := range x.rows {
			s.p("MOVD R1, R4")
			for v := range x.vectors {
				write(fmt.Sprintf("%d(R4)", v%perPanel*16), x.acc(i, v))
				if v%perPanel == perPanel-1 && v+1 < x.vectors {
					s.p("ADD R3, R4")
				}
			}
			if i+1 < x.rows {
				s.p("ADD R2, R1")
			}
		}
	}
	s.p("MOVD FPCR, R11")
	s.p("MOVD FPSR, R12")
	s.p("ORR $(1<<24), R11, R7")
	s.p("MOVD R7, FPCR")
	s.p("MOVD $0, R7")
	s.p("MOVD R7, FPSR")
	s.p("MOVD $0xffff0000, R7")
	s.p("VDUP R7, V%d.S4", x.registers)
	s.p("MOVBU %s, R0", s.args["add"])
	s.p("CBZ R0, zero")
	eachC(func(at string, acc int) { s.p("FMOVQ %s, F%d", at, acc) })
	s.p("JMP start")
	s.place("zero")
	for i := range x.rows * x.vectors {
		s.p("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	s.place("start")
	s.p("MOVD %s, R0", s.args["k"])
	s.p("MOVD %s, R1", s.args["a"])
	strided("lda", "R8", 1)
	for i := 1; i < x.rows; i++ {
		s.p("ADD R8, R%d, R%d", i, i+1)
	}
	s.p("MOVD %s, R13", s.args["b"])
	strided("bnext", "R10", 1)
	for q := 1; q < x.panels; q++ {
		s.p("ADD R10, R%d, R%d", 12+q, 13+q)
	}
	// part makes pairs in a register f32, those of one place.
	part := func(which string, r int) {
		if which == "odd" {
			s.word("and", 4, r, r, x.registers)
		} else {
			s.shiftARM("shl", 4, r, r, 16)
		}
	}
	step := func(half bool) {
		for _, which := range []string{"odd", "even"} { // the upper ones first
			for i := range x.rows {
				if half {
					s.p("MOVHU (R%d), R7", i+1)
					s.p("FMOVS R7, F%d", x.rows*x.vectors+i)
				} else {
					s.p("FMOVS (R%d), F%d", i+1, x.rows*x.vectors+i)
				}
				part(which, x.rows*x.vectors+i)
			}
			for v := range x.vectors {
				first := x.rows * (x.vectors + 1)
				r := first + v%(x.registers-first)
				if half {
					s.p("FMOVD %d(R%d), F%d", v%perPanel*8, 13+v/perPanel, r)
					s.word("uxtl", 4, r, r, 0)
				} else {
					s.p("FMOVQ %d(R%d), F%d", v%perPanel*16, 13+v/perPanel, r)
				}
				part(which, r)
				for i := range x.rows {
					s.word("fmla0", 4, x.acc(i, v), r, x.rows*x.vectors+i)
				}
			}
		}
	}
	s.p("SUBS $2, R0")
	s.p("BLT last")
	s.place("loop")
	step(false)
	for i := range x.rows {
		s.p("ADD $4, R%d", i+1)
	}
	for q := range x.panels {
		s.p("ADD $64, R%d", 13+q)
	}
	s.p("SUBS $2, R0")
	s.p("BGE loop")
	s.place("last")
	s.p("TBZ $0, R0, done") // -1 if k is odd
	step(true)
	s.place("done")
	s.p("MOVD FPSR, R7")
	s.p("MOVD R11, FPCR")
	s.p("MOVD R12, FPSR")
	s.p("TBNZ $3, R7, near")
	eachC(func(at string, acc int) { s.p("FMOVQ F%d, %s", acc, at) })
	s.p("RET")
	s.place("near")
	s.p("MOVD %s, R1", s.args["near"])
	s.p("MOVD $1, R0")
	s.p("MOVW R0, (R1)")
	s.p("RET")
}
