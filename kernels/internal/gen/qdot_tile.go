package main

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// A tileForm is how the weights of a tile are scaled.
type tileForm struct {
	name    string
	each    int  // weights that share a scale
	offsets int  // that these have: none, 1, or 8 for each 16 of 128
	wide    bool // weights may have 8 bits, not 6: of concern to AVX2
	factors bool // 16 weights, of 3 bits, have an integer by which they are multiplied besides: a tile of AVX2 only
	doc     string
}

// tileForms are in the order of their numbers in package qdot.
var tileForms = []tileForm{
	{"tile32", 32, 0, false, false, "a scale for 32 weights"},
	{"tileOffset", 32, 1, false, false, "a scale and an offset for 32 weights"},
	{"tile16", 16, 0, false, false, "a scale for 16 weights"},
	{"tileWide", 32, 0, true, false, "a scale for 32 weights"},
	{"tileOffsets", 128, 8, false, false, "a scale for 128 weights and an offset for 16"},
	{"tile16Wide", 16, 0, true, false, "a scale for 16 weights"},
	{"tileFactors", 128, 0, false, true, "a scale for 128 weights and, as m, factors for 16, twice in a word,"},
	{"tile128", 128, 0, false, false, "a scale for 128 weights"},
}

// added is what AVX2 adds to weights of up to 6 bits: where there are two offsets, these have no sign.
func (f *tileForm) added() int {
	switch {
	case f.factors:
		return 4
	case f.wide, f.offsets > 1:
		return 0
	}
	return 32
}

// A turn of a tile's loop takes one group of activations, or as many as share a scale of weights.
func (f *tileForm) groups() int { return max(1, f.each/32) }

// parts is how many scales the weights of a group have, if not one together with others, and words how many words the
// weights of such a part.
func (f *tileForm) parts() int { return max(1, 32/f.each) }
func (f *tileForm) words() int { return min(f.each, 32) / 4 }

// sumAt is where a record has the negative sum of a part.
func (f *tileForm) sumAt(part int) int {
	if f.each == 16 {
		return recordLow + 4*part
	}
	return recordSum
}

// seconds is how many vectors at m belong to a scale.
func (f *tileForm) seconds() int {
	if f.factors {
		return f.each / 16
	}
	return f.offsets
}

// kept tells whether the sums of floats are those of what shares a scale of weights or of activations, and results,
// where there are no registers for them, stay in c.
func (f *tileForm) kept() bool { return f.each != 32 }

// scaledSumAt is where a record has what the offset of the i-th weights that share one is multiplied by, seen from the
// end of several groups, otherwise from the beginning of the only one.
func (f *tileForm) scaledSumAt(i int) int {
	if f.offsets > 1 {
		return (i/2-f.groups())*recordBytes + recordScaledLow + i%2*4
	}
	return recordScaledSum
}

// narrow is the number of the form that is this one but for being wide.
func (f *tileForm) narrow() int {
	return slices.IndexFunc(tileForms, func(o tileForm) bool { return o.each == f.each && o.offsets == 0 && !o.wide })
}

// qdotRows is the most rows of a tile, qdotColumns the columns of all its tiles.
var (
	qdotRows    = map[*tier]int{avx512: 6, avxvnni: 3, avx2: 4, i8mm: 6, neon: 4}
	qdotColumns = map[*tier]int{avx512: 32, avxvnni: 16, avx2: 16, i8mm: 8, neon: 8}
)

// mostRows is the most rows of a tile of the form.
func (f *tileForm) mostRows(t *tier) int {
	switch {
	case f.wide && t == avx2:
		return 5
	case f.each == 16 && t == avx512: // registers for the sums of halves
		return 4
	}
	return qdotRows[t]
}

// fewKinds is added to the number of a form for the tiles of AVX2 for few rows, which have up to fewRows rows and
// fewColumns columns.
const fewKinds, fewRows, fewColumns = 8, 6, 8

// qdotTiles writes the products of a form with a few rows of activations. With AVX-512 a tile has two panels, with
// AVX-VNNI and AVX2 one, otherwise half of one.
func (s *source) qdotTiles() {
	const list = "groups int, w *byte, wnext int, s, m *float32, snext int, x *uint32, ldx int, " +
		"c *float32, ldc int, add bool"
	const args = "(groups, w, wnext, s, m, snext, x, ldx, c, ldc, add)"
	cases := map[*tier]*strings.Builder{avx512: {}, avxvnni: {}, avx2: {}, i8mm: {}, neon: {}}
	for number, form := range tileForms {
		s.qdotTilesFew(form, number, list, args, cases[avx2])
		for rows := 1; rows <= qdotRows[avx512]; rows++ {
			name := fmt.Sprintf("%sx%d", form.name, rows)
			doc := fmt.Sprintf("%s computes c[i·ldc+j] = (row i of x)·(row j of w), or adds it, for %d rows of x, ldx "+
				"words apart, of so many groups. w has %s. With AVX-512 it has two panels, the bytes of the other "+
				"beginning wnext bytes and its scales snext numbers further on, its offsets as many or twice as many; "+
				"with AVX-VNNI one; with AVX2 one, its halves as apart writes them, wnext bytes apart; otherwise half "+
				"a panel.", name, rows, form.doc)
			f := s.declare(name, list, doc)
			f.local = true
			for _, t := range []*tier{avx512, avxvnni, avx2, i8mm, neon} {
				most := form.mostRows(t)
				if rows > most || t == avx2 && rows < most-1 || form.factors && t != avx2 { // see qdotTilesFew
					continue
				}
				kernel := name
				switch {
				case form.wide && t != avx2:
					kernel = fmt.Sprintf("%sx%d", tileForms[form.narrow()].name, rows)
				case t == avx512:
					s.qdotTile512(f, form, rows)
				case t == avxvnni:
					s.qdotTileVNNI(f, form, rows)
				case t == avx2:
					s.qdotTile256(f, form, rows)
				case t == i8mm && rows > 1:
					s.qdotTileI8MM(f, form, rows)
				case t == neon:
					s.qdotTileARM64(f, form, rows)
				}
				if t == i8mm && rows == 1 { // half of its products would be of nothing
					kernel += neon.suffix
				} else {
					kernel += t.suffix
				}
				fmt.Fprintf(cases[t], "case %d<<3 + %d:\n%s%s\n", number, rows, kernel, args)
			}
		}
	}
	choose := func(t *tier) string {
		return fmt.Sprintf("switch kind<<3 + rows {\n%sdefault:\npanic(\"no such tile\")\n}\n", cases[t])
	}
	shape := func(t *tier) string {
		text, others := fmt.Sprintf("return %d, %d\n", qdotRows[t], qdotColumns[t]), map[int]string{}
		for number, form := range tileForms {
			if most := form.mostRows(t); most != qdotRows[t] {
				others[most] += fmt.Sprintf(", %d", number)
			}
		}
		for most, kinds := range others { // one at most
			text = fmt.Sprintf("switch kind {\ncase %s:\nreturn %d, %d\n}\n", kinds[2:], most, qdotColumns[t]) + text
		}
		if t == avx2 {
			text = fmt.Sprintf("if kind >= %d {\nreturn %d, %d\n}\n", fewKinds, fewRows, fewColumns) + text
		}
		return text
	}
	const text = "\n// tileShape is the most rows and the columns of a tile of a kind in the current tier.\n" +
		"func tileShape(kind int) (rows, columns int) {\n%s}\n" +
		"\n// tile computes a tile in the current tier; see tile32x1.\nfunc tile(kind, rows int, " + list + ") {\n%s}\n"
	s.extra["amd64"] += fmt.Sprintf(text, byTier(shape, avx512, avxvnni, avx2), byTier(choose, avx512, avxvnni, avx2))
	s.extra["arm64"] += fmt.Sprintf(text, byTier(shape, i8mm, neon), byTier(choose, i8mm, neon))
	s.extra["none"] += fmt.Sprintf("\nfunc tileShape(kind int) (rows, columns int) { %s }\n"+
		"\nfunc tile(kind, rows int, %s) { %s }\n", noAssembly, list, noAssembly)
}

// qdotTilesFew writes the tiles of AVX2 for few rows and their cases.
func (s *source) qdotTilesFew(form tileForm, number int, list, args string, cases *strings.Builder) {
	for rows := 1; rows <= fewRows; rows++ {
		name := fmt.Sprintf("%sFewx%d", form.name, rows)
		f := s.declare(name, list, fmt.Sprintf("%s is %sx%d for half a panel as a form has it.", name, form.name, rows))
		f.local = true
		s.qdotTileFew(f, form, rows)
		fmt.Fprintf(cases, "case %d<<3 + %d:\n%s%s%s\n", fewKinds+number, rows, name, avx2.suffix, args)
	}
}

// qdotTile512: rows of x are at SI or R8 (row 3) + 0, R11, 2·R11. 12 sums of floats, 12 of integers, in the order of
// rows, are in the lowest registers.
func (s *source) qdotTile512(f *function, form tileForm, rows int) {
	const panels = 2
	s.begin(f, avx512, fmt.Sprintf("A turn reads %d weights of 32 rows, %d bytes, and %d bytes of x. Sums in Z0 "+
		"to Z%d, integers in Z%d to Z%d, weights in Z24 and Z25.", 32*form.groups(), panels*32*16*form.groups(),
		rows*recordBytes*form.groups(), rows*panels-1, rows*panels, 2*rows*panels-1))
	sum := func(i, p int) int { return i*panels + p }
	acc := func(i, p int) int { return rows*panels + i*panels + p }
	half := func(i, p int) int { return 2*rows*panels + i*panels + p } // what the first half of a group is worth
	turn := 0
	spare := func() int { turn++; return 26 + turn%6 }
	place := func(i, offset int) string {
		return fmt.Sprintf("%d(%s)%s", offset, []string{"SI", "R8"}[i/3], []string{"", "(R11*1)", "(R11*2)"}[i%3])
	}
	eachC := func(write func(at string, i, p int)) {
		s.p("MOVQ %s, AX", s.args["c"])
		s.p("MOVQ %s, BX", s.args["ldc"])
		s.p("SHLQ $2, BX")
		for i := range rows {
			for p := range panels {
				write(fmt.Sprintf("%d(AX)", 64*p), i, p)
			}
			if i+1 < rows {
				s.p("ADDQ BX, AX")
			}
		}
	}
	eachOffset := func(part int, to func(i, p int) int) {
		for o := part * form.offsets; o < (part+1)*form.offsets; o++ {
			s.p("VMOVUPS %d(R12), Z24", o*64)
			s.p("VMOVUPS %d(R12)(R10*%d), Z25", o*64, form.offsets)
			for i := range rows {
				for p := range panels {
					x := spare()
					s.p("VMULPS.BCST %s, Z%d, Z%d", place(i, form.scaledSumAt(o)), 24+p, x)
					s.p("VADDPS Z%d, Z%d, Z%d", x, to(i, p), to(i, p))
				}
			}
		}
	}
	kept := form.groups() > 1
	s.p("CMPB %s, $0", s.args["add"])
	s.p("JEQ zero")
	if !kept {
		eachC(func(at string, i, p int) { s.p("VMOVUPS %s, Z%d", at, sum(i, p)) })
	}
	s.p("JMP start")
	s.place("zero")
	zero := func(i, p int) { s.p("VPXORQ Z%d, Z%d, Z%d", sum(i, p), sum(i, p), sum(i, p)) }
	eachC(func(at string, i, p int) {
		if zero(i, p); kept {
			s.p("VMOVUPS Z%d, %s", sum(i, p), at)
		} else { // stores at the end would wait for their lines
			s.p("PREFETCHT0 %s", at)
		}
	})
	s.place("start")
	s.p("MOVQ %s, R9", s.args["wnext"])
	s.p("MOVQ %s, R10", s.args["snext"])
	s.p("SHLQ $2, R10")
	begin := func() {
		for i := range rows * panels {
			zero(i/panels, i%panels)
		}
	}
	s.tileLoop(form, rows, 32*16, begin, func(part int) {
		for i := range rows { // 128 was added to the weights
			for p := range panels {
				s.p("VPSLLD.BCST $7, %s, Z%d", place(i, form.sumAt(part)), acc(i, p))
			}
		}
		for word := part * form.words(); word < (part+1)*form.words(); word++ {
			s.p("VMOVDQU64 %d(DI), Z24", word*64)
			s.p("VMOVDQU64 %d(DI)(R9*1), Z25", word*64)
			for i := range rows {
				x := spare()
				s.p("VPBROADCASTD %s, Z%d", place(i, 4*word), x)
				for p := range panels {
					s.p("VPDPBUSD Z%d, Z%d, Z%d", x, 24+p, acc(i, p))
				}
			}
		}
		if form.groups() == 1 {
			s.p("VMOVUPS %d(DX), Z24", part*64)
			s.p("VMOVUPS %d(DX)(R10*1), Z25", part*64)
		}
		for i := range rows {
			for p := range panels {
				a, at := acc(i, p), place(i, recordScale)
				s.p("VCVTDQ2PS Z%d, Z%d", a, a)
				switch {
				case form.groups() > 1:
					s.p("VMULPS.BCST %s, Z%d, Z%d", at, a, a)
				case form.parts() > 1 && part == 0:
					s.p("VMULPS Z%d, Z%d, Z%d", 24+p, a, half(i, p))
					continue
				case form.parts() > 1:
					s.p("VMULPS Z%d, Z%d, Z%d", 24+p, a, a)
					s.p("VADDPS Z%d, Z%d, Z%d", a, half(i, p), a)
					s.p("VMULPS.BCST %s, Z%d, Z%d", at, a, a)
				default:
					scale := spare()
					s.p("VMULPS.BCST %s, Z%d, Z%d", at, 24+p, scale)
					s.p("VMULPS Z%d, Z%d, Z%d", scale, a, a)
				}
				s.p("VADDPS Z%d, Z%d, Z%d", a, sum(i, p), sum(i, p))
			}
		}
		if !kept {
			eachOffset(part, sum)
		}
	}, func() {
		if !kept {
			return
		}
		eachC(func(at string, i, p int) { s.p("VMOVUPS %s, Z%d", at, acc(i, p)) })
		eachOffset(0, acc)
		s.p("VMOVUPS (DX), Z24")
		s.p("VMOVUPS (DX)(R10*1), Z25")
		eachC(func(at string, i, p int) {
			s.p("VMULPS Z%d, Z%d, Z%d", 24+p, sum(i, p), sum(i, p))
			s.p("VADDPS Z%d, Z%d, Z%d", sum(i, p), acc(i, p), acc(i, p))
			s.p("VMOVUPS Z%d, %s", acc(i, p), at)
		})
	})
	if !kept {
		eachC(func(at string, i, p int) { s.p("VMOVUPS Z%d, %s", sum(i, p), at) })
	}
	s.p("VZEROUPPER")
	s.p("RET")
}

// tileLoop writes the loop of a tile of amd64. In CX are the turns, at DI the weights, of which a group takes so many
// bytes, at DX their scales, at R12 what stands at m, at SI the first row of activations and, of more than 3, at R8 the
// fourth; R11 bytes lie between two. part is called for the parts of a group. Where a scale is one for several groups
// begin is called before the first of them; R13 counts them. If results are kept, end is called behind what shares a
// scale.
func (s *source) tileLoop(form tileForm, rows, weights int, begin func(), part func(part int), end func()) {
	s.p("MOVQ %s, CX", s.args["groups"])
	if n := form.groups(); n > 1 {
		s.p("SHRQ $%d, CX", bits.TrailingZeros(uint(n)))
	}
	s.p("MOVQ %s, DI", s.args["w"])
	s.p("MOVQ %s, DX", s.args["s"])
	if form.seconds() > 0 {
		s.p("MOVQ %s, R12", s.args["m"])
	}
	s.p("MOVQ %s, SI", s.args["x"])
	s.p("MOVQ %s, R11", s.args["ldx"])
	s.p("SHLQ $2, R11")
	if rows > 3 {
		s.p("LEAQ (R11)(R11*2), R8")
		s.p("ADDQ SI, R8")
	}
	s.p("PCALIGN $64")
	s.place("loop")
	if form.groups() > 1 {
		begin()
		s.p("MOVQ $%d, R13", form.groups())
		s.p("PCALIGN $64")
		s.place("group")
	}
	for i := range form.parts() {
		part(i)
	}
	s.p("ADDQ $%d, DI", weights)
	s.p("ADDQ $%d, SI", recordBytes)
	if rows > 3 {
		s.p("ADDQ $%d, R8", recordBytes)
	}
	if form.factors {
		s.p("ADDQ $%d, R12", 64*2)
	}
	if form.groups() > 1 {
		s.p("DECQ R13")
		s.p("JNE group")
	}
	if form.kept() {
		end()
	}
	if form.offsets > 0 {
		s.p("ADDQ $%d, R12", 64*form.parts()*form.offsets)
	}
	s.p("ADDQ $%d, DX", 64*form.parts())
	s.p("DECQ CX")
	s.p("JNE loop")
}

// qdotPeak writes what no product can be faster than: the dots of a tile, of registers.
func (s *source) qdotPeak() {
	f := s.declare("dotPeak", "turns int",
		"dotPeak is for benchmarks: so many turns of 12 products of vectors of bytes and nothing else.")
	f.local = true
	const head = "\n// peak is dotPeak of the current tier.\nfunc peak(turns int) {\n%s}\n"
	call := func(t *tier) string { return fmt.Sprintf("%s%s(turns)\n", f.name, t.suffix) }
	s.extra["amd64"] += fmt.Sprintf(head, byTier(call, avx512, avxvnni, avx2))
	s.extra["arm64"] += fmt.Sprintf(head, byTier(call, i8mm, neon))
	s.extra["none"] += fmt.Sprintf("\nfunc peak(turns int) { %s }\n", noAssembly)
	s.begin(f, avx512, "VPDPBUSD: 12·128 operations a turn.")
	s.p("MOVQ %s, CX", s.args["turns"])
	s.p("PCALIGN $64")
	s.place("loop")
	for i := range 12 {
		s.p("VPDPBUSD Z24, Z25, Z%d", i)
	}
	s.p("DECQ CX")
	s.p("JNE loop")
	s.p("VZEROUPPER")
	s.p("RET")
	s.begin(f, avxvnni, "VPDPBUSD: 12·64 operations a turn.")
	s.p("MOVQ %s, CX", s.args["turns"])
	s.p("PCALIGN $64")
	s.place("loop")
	for i := range 12 {
		s.dot256(14, 15, i)
	}
	s.p("DECQ CX")
	s.p("JNE loop")
	s.p("VZEROUPPER")
	s.p("RET")
	s.begin(f, avx2, "VPMADDUBSW, VPMADDWD and VPADDD: 12·64 operations a turn.")
	s.p("MOVQ %s, CX", s.args["turns"])
	s.p("PCALIGN $64")
	s.place("loop")
	for i := range 12 {
		s.p("VPMADDUBSW Y13, Y14, Y12")
		s.p("VPMADDWD Y15, Y12, Y12")
		s.p("VPADDD Y12, Y%d, Y%d", i, i)
	}
	s.p("DECQ CX")
	s.p("JNE loop")
	s.p("VZEROUPPER")
	s.p("RET")
	s.begin(f, i8mm, fmt.Sprintf("USMMLA: %d operations a turn.", 12*64))
	s.p("MOVD %s, R0", s.args["turns"])
	s.p("PCALIGN $64")
	s.place("loop")
	for i := range 12 {
		s.usmmla(i, 24, 25)
	}
	s.p("SUBS $1, R0")
	s.p("BNE loop")
	s.p("RET")
	s.begin(f, neon, fmt.Sprintf("SDOT: %d operations a turn.", 12*32))
	s.p("MOVD %s, R0", s.args["turns"])
	s.p("PCALIGN $64")
	s.place("loop")
	for i := range 12 {
		s.element("sdot", i, 24, 25, 0)
	}
	s.p("SUBS $1, R0")
	s.p("BNE loop")
	s.p("RET")
}
