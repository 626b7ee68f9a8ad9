package main

import "fmt"

// qdotTileFew: a tile of AVX2 for so few rows that taking weights apart is not worth it, with half a panel as the form
// has it. Rows of x are at SI or R8 (row 3) + 0, R11, 2·R11. For what is done with weights of 6 and of 8 bits see
// qdotApart: -Σ|w|·s is found on the way.
func (s *source) qdotTileFew(f *function, form tileForm, rows int) {
	s.begin(f, avx2, fmt.Sprintf("A turn reads %d weights of 8 rows, %d bytes, and %d bytes of x. Sums in Y0 to Y%d, "+
		"integers in Y%d to Y%d, weights or their magnitudes and signs in Y12 and Y13.", 32*form.groups(),
		32*8*form.groups(), rows*recordBytes*form.groups(), rows-1, rows, 2*rows-1))
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
	eachOffset := func(part, to int) {
		for o := part * form.offsets; o < (part+1)*form.offsets; o++ {
			s.p("VMOVUPS %d(R12), Y%d", o*64, weights)
			for i := range rows {
				s.p("VBROADCASTSS %s, Y%d", place(i, form.scaledSumAt(o)), scratch)
				s.p("VMULPS Y%d, Y%d, Y%d", scratch, weights, scratch)
				s.p("VADDPS Y%d, Y%d, Y%d", scratch, to+i, to+i)
			}
		}
	}
	kept := form.kept()
	s.p("CMPB %s, $0", s.args["add"])
	s.p("JEQ zero")
	if !kept {
		eachC(func(at string, i int) { s.p("VMOVUPS %s, Y%d", at, i) })
	}
	s.p("JMP start")
	s.place("zero")
	eachC(func(at string, i int) {
		if s.p("VXORPS Y%d, Y%d, Y%d", i, i, i); kept {
			s.p("VMOVUPS Y%d, %s", i, at)
		}
	})
	s.place("start")
	s.p("LEAQ consts<>+%d(SB), R9", s.constant(0x00010001, 4)) // short to name in the loop
	s.p("LEAQ consts<>+%d(SB), R10", s.constant(uint64(128-form.added())*0x01010101, 4))
	begin := func() {
		for i := range rows {
			s.p("VXORPS Y%d, Y%d, Y%d", i, i, i)
		}
	}
	s.tileLoop(form, rows, 32*16, begin, func(part int) {
		if form.wide {
			s.fewWide(rows, part*form.words(), form.words(), place)
		} else {
			s.fewNarrow(form, rows, part, place)
		}
		if form.groups() == 1 {
			s.p("VMOVUPS %d(DX), Y%d", part*64, weights)
		}
		for i := range rows {
			a, by := rows+i, weights
			if form.parts() == 1 {
				by = scratch
				s.p("VBROADCASTSS %s, Y%d", place(i, recordScale), by)
			}
			if !kept {
				s.p("VMULPS Y%d, Y%d, Y%d", by, weights, by)
			}
			s.p("VCVTDQ2PS Y%d, Y%d", a, a)
			if kept && form.parts() > 1 && part == 0 {
				s.p("VMULPS Y%d, Y%d, Y%d", by, a, i)
				continue
			}
			s.p("VMULPS Y%d, Y%d, Y%d", by, a, a)
			s.p("VADDPS Y%d, Y%d, Y%d", a, i, i)
		}
		if !kept {
			eachOffset(part, 0)
		}
	}, func() {
		if form.groups() == 1 {
			eachC(func(at string, i int) {
				s.p("VBROADCASTSS %s, Y%d", place(i, recordScale-recordBytes), scratch)
				s.p("VMULPS Y%d, Y%d, Y%d", scratch, i, i)
				s.p("VADDPS %s, Y%d, Y%d", at, i, i)
				s.p("VMOVUPS Y%d, %s", i, at)
			})
			return
		}
		eachC(func(at string, i int) { s.p("VMOVUPS %s, Y%d", at, rows+i) })
		eachOffset(0, rows)
		s.p("VMOVUPS (DX), Y%d", weights)
		eachC(func(at string, i int) {
			s.p("VMULPS Y%d, Y%d, Y%d", weights, i, i)
			s.p("VADDPS Y%d, Y%d, Y%d", i, rows+i, i)
			s.p("VMOVUPS Y%d, %s", i, at)
		})
	})
	if !kept {
		eachC(func(at string, i int) { s.p("VMOVUPS Y%d, %s", i, at) })
	}
	s.p("VZEROUPPER")
	s.p("RET")
}

// fewNarrow writes the products of weights of 6 bits that share a scale, as narrow and factors do for more columns.
func (s *source) fewNarrow(form tileForm, rows, part int, place func(i, offset int) string) {
	const weights, scratch = 12, 14
	begun := form.added() == 32
	for i := 0; i < rows && begun; i++ {
		s.p("VPBROADCASTD %s, Y%d", place(i, form.sumAt(part)), rows+i)
		s.p("VPSLLD $5, Y%d, Y%d", rows+i, rows+i)
	}
	first := part * form.words()
	for word := first; word < first+form.words(); word += 2 {
		for j := range 2 {
			s.p("VMOVDQU %d(DI), Y%d", (word+j)*64, weights+j)
			s.p("VPSUBB (R10), Y%d, Y%d", weights+j, weights+j)
		}
		by := "(R9)"
		if form.factors {
			by = fmt.Sprintf("%d(R12)", word/4*64)
		}
		for i := range rows {
			for j := range 2 {
				s.p("VPBROADCASTD %s, Y%d", place(i, 4*(word+j)), scratch+j)
				s.p("VPMADDUBSW Y%d, Y%d, Y%d", scratch+j, weights+j, scratch+j)
			}
			s.p("VPADDW Y%d, Y%d, Y%d", scratch+1, scratch, scratch)
			if form.factors && word%4 == 0 {
				s.timesFour(place(i, recordLow+word), scratch+1)
				s.p("VPADDW Y%d, Y%d, Y%d", scratch+1, scratch, scratch)
			}
			if word == first && !begun {
				s.p("VPMADDWD %s, Y%d, Y%d", by, scratch, rows+i)
				continue
			}
			s.p("VPMADDWD %s, Y%d, Y%d", by, scratch, scratch)
			s.p("VPADDD Y%d, Y%d, Y%d", scratch, rows+i, rows+i)
		}
	}
}

// timesFour sets the lower halves of the words of a register to four times the one at a place, and the upper ones to 0.
func (s *source) timesFour(place string, register int) {
	s.p("VPBROADCASTD %s, Y%d", place, register)
	s.p("VPSLLD $18, Y%d, Y%d", register, register)
	s.p("VPSRLD $16, Y%d, Y%d", register, register)
}

// fewWide writes the products of so many words of weights of 8 bits.
func (s *source) fewWide(rows, first, words int, place func(i, offset int) string) {
	const magnitudes, signs, scratch, excess = 12, 13, 14, 15
	for word := first; word < first+words; word++ {
		s.p("VMOVDQU %d(DI), Y%d", word*64, signs)
		s.p("VPXOR (R10), Y%d, Y%d", signs, signs)
		s.p("VPABSB Y%d, Y%d", signs, magnitudes)
		s.p("VPXOR Y%d, Y%d, Y%d", scratch, scratch, scratch)
		s.p("VPCMPGTB Y%d, Y%d, Y%d", signs, scratch, signs)
		if word == first {
			s.p("VPMADDUBSW Y%d, Y%d, Y%d", signs, magnitudes, excess)
		} else {
			s.p("VPMADDUBSW Y%d, Y%d, Y%d", signs, magnitudes, scratch)
			s.p("VPADDW Y%d, Y%d, Y%d", scratch, excess, excess)
		}
		for i := range rows {
			s.p("VPBROADCASTD %s, Y%d", place(i, 4*word), scratch)
			s.p("VPXOR Y%d, Y%d, Y%d", signs, scratch, scratch)
			s.p("VPMADDUBSW Y%d, Y%d, Y%d", scratch, magnitudes, scratch)
			if word == first {
				s.p("VPMADDWD (R9), Y%d, Y%d", scratch, rows+i)
			} else {
				s.p("VPMADDWD (R9), Y%d, Y%d", scratch, scratch)
				s.p("VPADDD Y%d, Y%d, Y%d", scratch, rows+i, rows+i)
			}
		}
	}
	s.p("VPMADDWD (R9), Y%d, Y%d", excess, excess)
	for i := range rows {
		s.p("VPSUBD Y%d, Y%d, Y%d", excess, rows+i, rows+i)
	}
}
