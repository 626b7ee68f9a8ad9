package main

import (
	"fmt"
	"strings"
)

// gemm writes package gemm: tiles of a product, the product of one row with 16
// rows, and the transposition into panels. A panel is 16 columns; it may be of
// 16-bit floats, which are widened as they are read.
func gemm() *source {
	s := newSource("gemm")
	for _, elem := range []int{4, 8} {
		s.tiles(elem, "")
		s.rowsInto(elem)
		s.copied(elem)
	}
	s.tiles(4, "F16")
	s.widening()
	s.pairTiles()
	s.transposed()
	s.parts()
	s.peak()
	return s
}

// shapes lists rows × panels of the tiles of a tier: as many accumulators as
// the registers hold, and four panels for few rows, which are bound by memory.
func shapes(t *tier, elem int) (list [][2]int) {
	perPanel := 16 * elem / t.bytes // vectors
	for _, panels := range []int{1, 2, 4} {
		vectors := panels * perPanel
		most := (t.registers - 1) / (vectors + 1) // rows: one operand, then accumulators and a factor for each
		if byColumn := (t.registers - vectors - 1) / vectors; byColumn > most {
			most = byColumn
		}
		most = min(most, 12)
		switch {
		case panels == 2 && most < 12: // one panel is as good
			most = 0
		case panels == 4 && vectors >= t.registers-2:
			most = 0
		case panels == 4:
			most = min(most, 4)
		}
		for rows := 1; rows <= most; rows++ {
			list = append(list, [2]int{rows, panels})
		}
	}
	return list
}

// tiles writes the tiles for a and c with elements of that size, b having the
// same or the 16-bit format called half.
func (s *source) tiles(elem int, half string) {
	list := "k int, a *float, lda int, b *float, bstep, bnext int, c *float, ldc, cnext int, add bool, ahead int"
	what := "a[i·lda+p]·b[p·bstep+q·bnext+j]"
	named := func(name string) string { return typed(name, elem) }
	if half != "" {
		list = strings.Replace(list, "b *float", "b *uint16", 1)
		what += ", the elements of b being " + strings.ToLower(half)
		named = func(name string) string { return name + half }
	}
	params := strings.ReplaceAll(list, "float", float(elem))
	byShape := map[[2]int]*function{}
	chooser := map[string]*strings.Builder{"amd64": {}, "arm64": {}}
	rowsOf := map[string]*strings.Builder{"amd64": {}, "arm64": {}}
	for _, t := range tiers {
		var cases strings.Builder
		most := map[int]int{}
		for _, shape := range shapes(t, elem) {
			rows, panels := shape[0], shape[1]
			f := byShape[shape]
			if f == nil {
				name := named(fmt.Sprintf("tile%dx%d", rows, panels))
				f = s.declare(name, params, fmt.Sprintf(
					"%s computes c = a·b, or c += a·b if add, of %d rows and %d panels: c[i·ldc+q·cnext+j] "+
						"is one chain of fused multiply-adds over p < k of %s. Four panels have what lies ahead bytes "+
						"behind each line fetched when they read it.",
					name, rows, panels, what))
				f.local = true
				byShape[shape] = f
			}
			if t.arch == "amd64" {
				s.tileAMD64(f, t, elem, half, rows, panels)
			} else {
				s.tileARM64(f, t, elem, half, rows, panels)
			}
			most[panels] = max(most[panels], rows)
			fmt.Fprintf(&cases, "case %d<<2 + %d:\n%s%s(k, a, lda, b, bstep, bnext, c, ldc, cnext, add, ahead)\n",
				rows, panels-1, f.name, t.suffix)
		}
		body := fmt.Sprintf("switch rows<<2 + panels-1 {\n%sdefault:\npanic(\"no such tile\")\n}\n", cases.String())
		limits := fmt.Sprintf("return [5]int{1: %d, 2: %d, 4: %d}[panels]\n", most[1], most[2], most[4])
		if t == avx512 {
			body = "if cpu.Current() == cpu.AVX512 {\n" + body + "return\n}\n"
			limits = "if cpu.Current() == cpu.AVX512 {\n" + limits + "}\n"
		}
		chooser[t.arch].WriteString(body)
		rowsOf[t.arch].WriteString(limits)
	}
	signatures := [2]string{
		fmt.Sprintf("func %s(rows, panels, %s)", named("tile"), params),
		fmt.Sprintf("func %s(panels int) int", named("tileRows")),
	}
	for arch, b := range chooser {
		const text = "\n// %s %s.\n%s {\n%s}\n"
		s.extra[arch] += fmt.Sprintf(text, named("tile"), "computes a tile in the current tier; see tile1x1F32",
			signatures[0], b.String())
		s.extra[arch] += fmt.Sprintf(text, named("tileRows"), "is the most rows of a tile, 0 if there is none",
			signatures[1], rowsOf[arch].String())
	}
	s.extra["none"] += fmt.Sprintf("\n%s { %s }\n\n%s { %s }\n",
		signatures[0], noAssembly, signatures[1], noAssembly)
}

// tileRegs names the vector registers of a micro-kernel. With few columns the
// vectors of b stay in registers while the rows pass (byColumn), otherwise the
// factors of a do.
type tileRegs struct {
	t                     *tier
	elem, registers       int
	rows, panels, vectors int
	byColumn              bool
}

func newTile(t *tier, elem, rows, panels int) *tileRegs {
	x := &tileRegs{t: t, elem: elem, registers: t.registers, rows: rows, panels: panels,
		vectors: panels * 16 * elem / t.bytes}
	x.byColumn = rows*x.vectors+x.vectors+1 <= t.registers && x.vectors <= rows
	return x
}

func (x *tileRegs) acc(row, v int) int { return row*x.vectors + v }

// fixed is the register that holds operand i through the inner loop; moving is
// one for the others, in turn.
func (x *tileRegs) fixed(i int) int { return x.rows*x.vectors + i }

func (x *tileRegs) moving(i int) int {
	first := x.rows*x.vectors + x.rows
	if x.byColumn {
		first = x.rows*x.vectors + x.vectors
	}
	return first + i%(x.registers-first)
}

func (x *tileRegs) notes() string {
	return fmt.Sprintf("Accumulators in the lowest %d vector registers, row by row; one p touches %d bytes.",
		x.rows*x.vectors, x.panels*16*x.elem+x.rows*x.elem)
}

// prefetchAhead is how far the loops over four rows of a matrix fetch ahead, in bytes. How far tiles do is an argument.
const prefetchAhead = 256

func (s *source) tileAMD64(f *function, t *tier, elem int, half string, rows, panels int) {
	x := newTile(t, elem, rows, panels)
	s.begin(f, t, x.notes())
	vec := func(r int) string { return fmt.Sprintf("%c%d", map[*tier]byte{avx512: 'Z', avx2: 'Y'}[t], r) }
	perPanel := x.vectors / panels
	shift := map[int]int{4: 2, 8: 3}[elem]
	shiftB, elemB, bytesB := shift, elem, t.bytes // of a vector's elements
	if half != "" {
		shiftB, elemB, bytesB = 1, 2, t.bytes*2/elem
	}
	eachC := func(write func(at string, acc string)) {
		s.p("MOVQ %s, DX", s.args["c"])
		s.p("MOVQ %s, BX", s.args["ldc"])
		s.p("SHLQ $%d, BX", shift)
		s.p("MOVQ %s, R8", s.args["cnext"])
		s.p("SHLQ $%d, R8", shift)
		if panels == 4 {
			s.p("LEAQ (R8)(R8*2), R9")
		}
		for i := range rows {
			for v := range x.vectors {
				index := []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[v/perPanel]
				write(fmt.Sprintf("%d(DX)%s", v%perPanel*t.bytes, index), vec(x.acc(i, v)))
			}
			if i+1 < rows {
				s.p("ADDQ BX, DX")
			}
		}
	}
	s.p("CMPB %s, $0", s.args["add"])
	s.p("JEQ zero")
	eachC(func(at, acc string) { s.p("VMOVUPS %s, %s", at, acc) })
	s.p("JMP start")
	s.place("zero")
	for i := range rows * x.vectors {
		s.p("%s %s, %s, %s", map[*tier]string{avx512: "VPXORQ", avx2: "VXORPS"}[t], vec(i), vec(i), vec(i))
	}
	s.place("start")
	s.p("MOVQ %s, CX", s.args["k"])
	s.p("MOVQ %s, SI", s.args["a"])
	s.p("MOVQ %s, R11", s.args["lda"])
	s.p("SHLQ $%d, R11", shift)
	bases := []string{"SI", "R8", "R9", "R10"}[:(rows+2)/3]
	if len(bases) > 1 {
		s.p("LEAQ (R11)(R11*2), AX")
	}
	for i := 1; i < len(bases); i++ {
		s.p("LEAQ (%s)(AX*1), %s", bases[i-1], bases[i])
	}
	s.p("MOVQ %s, DI", s.args["b"])
	s.p("MOVQ %s, R12", s.args["bstep"])
	s.p("SHLQ $%d, R12", shiftB)
	s.p("MOVQ %s, R13", s.args["bnext"])
	s.p("SHLQ $%d, R13", shiftB)
	// With more rows the panels that come next are fetched into the second level cache meanwhile: where they
	// begin, far from these, no hardware guesses.
	fetched := panels == 2 && rows > 4 || panels == 1 && t == avx2
	if panels == 4 || fetched {
		s.p("LEAQ (R13)(R13*2), AX")
	}
	if panels == 4 {
		s.p("MOVQ %s, BX", s.args["ahead"])
		s.p("ADDQ DI, BX")
	}
	placeB := func(v, offset int) string {
		index := []string{"", "(R13*1)", "(R13*2)", "(AX*1)"}[v/perPanel]
		return fmt.Sprintf("%d(DI)%s", v%perPanel*bytesB+offset, index)
	}
	loadB := func(v, r int) {
		switch b := placeB(v, 0); half {
		case "F16":
			s.p("VCVTPH2PS %s, %s", b, vec(r))
		default:
			s.p("VMOVUPS %s, %s", b, vec(r))
		}
	}
	step := func(p int) {
		loadA := func(i, r int) {
			s.p("VBROADCASTS%s %d(%s)%s, %s", map[int]string{4: "S", 8: "D"}[elem], p*elem, bases[i/3],
				[]string{"", "(R11*1)", "(R11*2)"}[i%3], vec(r))
		}
		fma := func(b, a string, i, v int) {
			s.p("VFMADD231P%s %s, %s, %s", map[int]string{4: "S", 8: "D"}[elem], b, a, vec(x.acc(i, v)))
		}
		if panels == 4 && p*16*elemB%64 == 0 { // once for each line of the cache
			for at := 0; at < 16*elemB; at += 64 {
				for q := range 4 {
					s.p("PREFETCHT1 %s", strings.Replace(placeB(q*perPanel, at), "(DI)", "(BX)", 1))
				}
			}
		}
		if fetched && p*16*elemB%64 == 0 {
			for at := 0; at < 16*elemB; at += 64 {
				if panels == 1 {
					s.p("PREFETCHT1 %d(DI)(R13*1)", at)
				} else {
					s.p("PREFETCHT1 %d(DI)(R13*2)", at)
					s.p("PREFETCHT1 %d(DI)(AX*1)", at)
				}
			}
		}
		if x.byColumn {
			for v := range x.vectors {
				loadB(v, x.fixed(v))
			}
			for i := range rows {
				r := x.moving(p*rows + i)
				loadA(i, r)
				for v := range x.vectors {
					fma(vec(x.fixed(v)), vec(r), i, v)
				}
			}
		} else {
			for i := range rows {
				loadA(i, x.fixed(i))
			}
			for v := range x.vectors {
				b := placeB(v, 0)
				if rows > 1 || half != "" {
					r := x.moving(p*x.vectors + v)
					loadB(v, r)
					b = vec(r)
				}
				for i := range rows {
					fma(b, vec(x.fixed(i)), i, v)
				}
			}
		}
		s.p("ADDQ R12, DI")
		if panels == 4 {
			s.p("ADDQ R12, BX")
		}
	}
	advance := func(n int) {
		for _, base := range bases {
			s.p("ADDQ $%d, %s", n*elem, base)
		}
	}
	const unroll = 4
	s.p("SUBQ $%d, CX", unroll)
	s.p("JLT rest")
	s.place("loop")
	for p := range unroll {
		step(p)
	}
	advance(unroll)
	s.p("SUBQ $%d, CX", unroll)
	s.p("JGE loop")
	s.place("rest")
	s.p("ADDQ $%d, CX", unroll)
	s.p("JEQ done")
	s.place("single")
	step(0)
	advance(1)
	s.p("DECQ CX")
	s.p("JNE single")
	s.place("done")
	eachC(func(at, acc string) { s.p("VMOVUPS %s, %s", acc, at) })
	s.p("VZEROUPPER")
	s.p("RET")
}

func (s *source) tileARM64(f *function, t *tier, elem int, half string, rows, panels int) {
	x := newTile(t, elem, rows, panels)
	s.begin(f, t, x.notes())
	perPanel := x.vectors / panels
	shift := map[int]int{4: 2, 8: 3}[elem]
	shiftB := shift
	if half != "" {
		shiftB = 1
	}
	strided := func(name, reg string, shift int) {
		s.p("MOVD %s, %s", s.args[name], reg)
		s.p("LSL $%d, %s", shift, reg)
	}
	eachC := func(write func(at string, acc int)) {
		s.p("MOVD %s, R1", s.args["c"])
		strided("ldc", "R2", shift)
		strided("cnext", "R3", shift)
		for i := range rows {
			s.p("MOVD R1, R4")
			for v := range x.vectors {
				write(fmt.Sprintf("%d(R4)", v%perPanel*16), x.acc(i, v))
				if v%perPanel == perPanel-1 && v+1 < x.vectors {
					s.p("ADD R3, R4")
				}
			}
			if i+1 < rows {
				s.p("ADD R2, R1")
			}
		}
	}
	s.p("MOVBU %s, R0", s.args["add"])
	s.p("CBZ R0, zero")
	eachC(func(at string, acc int) { s.p("FMOVQ %s, F%d", at, acc) })
	s.p("JMP start")
	s.place("zero")
	for i := range rows * x.vectors {
		s.p("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	s.place("start")
	s.p("MOVD %s, R0", s.args["k"])
	s.p("CBZ R0, done")
	s.p("MOVD %s, R1", s.args["a"])
	strided("lda", "R8", shift)
	for i := 1; i < rows; i++ {
		s.p("ADD R8, R%d, R%d", i, i+1)
	}
	// R13, R14, R15, R16: the panels
	s.p("MOVD %s, R13", s.args["b"])
	strided("bstep", "R9", shiftB)
	strided("bnext", "R10", shiftB)
	for q := 1; q < panels; q++ {
		s.p("ADD R10, R%d, R%d", 12+q, 13+q)
	}
	s.place("loop")
	for i := range rows {
		s.p("FMOV%s.P %d(R%d), F%d", map[int]string{4: "S", 8: "D"}[elem], elem, i+1, x.fixed(i))
	}
	for v := range x.vectors {
		r := x.rows*x.vectors + x.rows + v%(t.registers-x.rows*x.vectors-x.rows)
		switch half {
		case "F16":
			s.p("FMOVD %d(R%d), F%d", v%perPanel*8, 13+v/perPanel, r)
			s.word("fcvtl", 4, r, r, 0)
		default:
			s.p("FMOVQ %d(R%d), F%d", v%perPanel*16, 13+v/perPanel, r)
		}
		for i := range rows {
			s.word("fmla0", elem, x.acc(i, v), r, x.fixed(i))
		}
	}
	for q := range panels {
		s.p("ADD R9, R%d", 13+q)
	}
	s.p("SUBS $1, R0")
	s.p("BNE loop")
	s.place("done")
	eachC(func(at string, acc int) { s.p("FMOVQ F%d, %s", acc, at) })
	s.p("RET")
}

// rowsInto writes the product of one row with a few rows of a matrix, which
// adds multiples of these rows to the result.
func (s *source) rowsInto(elem int) {
	name := typed("addRows", elem)
	typ := float(elem)
	s.write(&loop{name: name, elem: elem, prefetch: []int{1, 2, 3, 4},
		list: fmt.Sprintf("c, b0, b1, b2, b3 *%s, a0, a1, a2, a3 %s, n int", typ, typ),
		doc: name + " adds a0·b0, then a1·b1, a2·b2 and a3·b3, each fused, to the n elements of c, a multiple of 16. " +
			"Each pointer is the start of a row.",
		body: func(b *body) {
			c := b.load(0)
			for i := range 4 {
				c = b.fma(b.load(i+1), b.scalar(fmt.Sprintf("a%d", i)), c)
			}
			b.store(0, c)
		}})
}

// peakPairs is the multiplications of a turn of peak, each with an addition.
const peakPairs = 384

// peak writes a loop of nothing but multiply-adds on registers, so many that none
// waits for another.
func (s *source) peak() {
	f := s.declare("peakF32", "turns int", fmt.Sprintf("peakF32 does nothing useful: %d fused multiply-adds of zeros "+
		"a turn, on registers.", peakPairs))
	for _, t := range tiers {
		count := t.registers * 3 / 4
		s.begin(f, t, "")
		vec := func(r int) string {
			return fmt.Sprintf("%c%d", map[*tier]byte{avx512: 'Z', avx2: 'Y', neon: 'V'}[t], r)
		}
		counter := map[string]string{"amd64": "CX", "arm64": "R0"}[t.arch]
		s.p("MOV%s %s, %s", map[string]string{"amd64": "Q", "arm64": "D"}[t.arch], s.args["turns"], counter)
		for r := range t.registers {
			switch t {
			case avx512:
				s.p("VPXORQ %s, %s, %s", vec(r), vec(r), vec(r))
			case avx2:
				s.p("VXORPS %s, %s, %s", vec(r), vec(r), vec(r))
			default:
				s.p("VEOR %s.B16, %s.B16, %s.B16", vec(r), vec(r), vec(r))
			}
		}
		s.place("loop")
		for i := range peakPairs * 4 / t.bytes {
			if t == neon {
				s.word("fma", 4, i%count, count, count+1)
			} else {
				s.p("VFMADD231PS %s, %s, %s", vec(count), vec(count+1), vec(i%count))
			}
		}
		if t == neon {
			s.p("SUBS $1, R0")
			s.p("BGT loop")
		} else {
			s.p("DECQ CX")
			s.p("JGT loop")
			s.p("VZEROUPPER")
		}
		s.p("RET")
	}
	for _, arch := range []string{"amd64", "arm64", "none"} {
		const text = "\n// peakPairs is the multiplications of a turn of peakF32.\nconst peakPairs = %d\n"
		s.extra[arch] += fmt.Sprintf(text, peakPairs)
	}
}
