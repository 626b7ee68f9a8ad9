package main

import (
	"fmt"
	"math/bits"
)

// qdotTileARM64: rows of x are at R1 to R4. Of eight columns, v is the vector of the first or of the last four.
func (s *source) qdotTileARM64(f *function, form tileForm, rows int) {
	s.begin(f, neon, fmt.Sprintf("A turn reads %d weights of 8 rows, %d bytes, and %d bytes of x. Sums in the lowest "+
		"%d registers, then as many integers, weights in V16 and V17, activations in V20 to V23, the sign of bytes in "+
		"V31.", 32*form.groups(), 32*8*form.groups(), rows*recordBytes*form.groups(), 2*rows))
	sum := func(i, v int) int { return 2*i + v }
	acc := func(i, v int) int { return 2*rows + 2*i + v }
	const weights, scratch, activations, sign = 16, 18, 20, 31
	eachC := func(write func(at string, i, v int)) {
		s.p("MOVD %s, R5", s.args["c"])
		s.p("MOVD %s, R6", s.args["ldc"])
		s.p("LSL $2, R6")
		for i := range rows {
			for v := range 2 {
				write(fmt.Sprintf("%d(R5)", 16*v), i, v)
			}
			if i+1 < rows {
				s.p("ADD R6, R5")
			}
		}
	}
	eachOffset := func(part int, to func(i, v int) int) {
		for o := part * form.offsets; o < (part+1)*form.offsets; o++ {
			for v := range 2 {
				s.p("FMOVQ %d(R9), F%d", 64*o+16*v, weights+v)
			}
			for i := range rows {
				s.p("FMOVS %d(R%d), F%d", form.scaledSumAt(o), 1+i, activations+i)
				for v := range 2 {
					s.element("mul", scratch, weights+v, activations+i, 0)
					s.word("add", 4, to(i, v), to(i, v), scratch)
				}
			}
		}
	}
	kept := form.kept()
	s.p("MOVBU %s, R0", s.args["add"])
	s.p("CBZ R0, zero")
	if !kept {
		eachC(func(at string, i, v int) { s.p("FMOVQ %s, F%d", at, sum(i, v)) })
	}
	s.p("JMP start")
	s.place("zero")
	eachC(func(at string, i, v int) {
		if s.p("VEOR V%d.B16, V%d.B16, V%d.B16", sum(i, v), sum(i, v), sum(i, v)); kept {
			s.p("FMOVQ F%d, %s", sum(i, v), at)
		}
	})
	s.place("start")
	s.p("MOVD %s, R1", s.args["x"])
	s.p("MOVD %s, R5", s.args["ldx"])
	s.p("LSL $2, R5")
	for i := 1; i < rows; i++ {
		s.p("ADD R5, R%d, R%d", i, i+1)
	}
	s.p("VMOVI $0x80, V%d.B16", sign)
	begin := func() {
		for r := range 2 * rows {
			s.p("VEOR V%d.B16, V%d.B16, V%d.B16", r, r, r)
		}
	}
	s.loopARM64(form, rows, begin, func(part int) {
		for r := acc(0, 0); r < acc(rows, 0); r++ {
			s.p("VEOR V%d.B16, V%d.B16, V%d.B16", r, r, r)
		}
		for word := part * form.words(); word < (part+1)*form.words(); word++ {
			if word%4 == 0 {
				for i := range rows {
					s.p("FMOVQ %d(R%d), F%d", 4*word, 1+i, activations+i)
				}
			}
			for v := range 2 {
				s.p("FMOVQ %d(R7), F%d", 64*word+16*v, weights+v)
				s.p("VEOR V%d.B16, V%d.B16, V%d.B16", sign, weights+v, weights+v)
			}
			for i := range rows {
				for v := range 2 {
					s.element("sdot", acc(i, v), weights+v, activations+i, word%4)
				}
			}
		}
		for v := 0; v < 2 && form.groups() == 1; v++ {
			s.p("FMOVQ %d(R8), F%d", 64*part+16*v, weights+v)
		}
		for i := range rows {
			s.p("FMOVS %d(R%d), F%d", recordScale, 1+i, activations+i)
			for v := range 2 {
				a := acc(i, v)
				s.word("toFloat", 4, a, a, 0)
				switch {
				case form.groups() > 1:
					s.element("mul", a, a, activations+i, 0)
				case kept && part == 0:
					s.word("mul", 4, sum(i, v), a, weights+v)
					continue
				case kept:
					s.word("mul", 4, a, a, weights+v)
				default:
					s.element("mul", scratch, weights+v, activations+i, 0)
					s.word("mul", 4, a, a, scratch)
				}
				s.word("add", 4, sum(i, v), sum(i, v), a)
			}
		}
		if !kept {
			eachOffset(part, sum)
		}
	}, func() {
		eachC(func(at string, i, v int) { s.p("FMOVQ %s, F%d", at, acc(i, v)) })
		if form.groups() == 1 {
			eachC(func(at string, i, v int) {
				s.p("FMOVS %d(R%d), F%d", recordScale-recordBytes, 1+i, activations+i)
				s.element("mul", sum(i, v), sum(i, v), activations+i, 0)
				s.word("add", 4, acc(i, v), acc(i, v), sum(i, v))
				s.p("FMOVQ F%d, %s", acc(i, v), at)
			})
			return
		}
		eachOffset(0, acc)
		for v := range 2 {
			s.p("FMOVQ %d(R8), F%d", 16*v, weights+v)
		}
		eachC(func(at string, i, v int) {
			s.word("mul", 4, sum(i, v), sum(i, v), weights+v)
			s.word("add", 4, acc(i, v), acc(i, v), sum(i, v))
			s.p("FMOVQ F%d, %s", acc(i, v), at)
		})
	})
	if !kept {
		eachC(func(at string, i, v int) { s.p("FMOVQ F%d, %s", sum(i, v), at) })
	}
	s.p("RET")
}

// loopARM64 is tileLoop of arm64: turns are in R0, weights at R7, scales at R8, what stands at m at R9; R13 counts
// groups.
func (s *source) loopARM64(form tileForm, rows int, begin func(), part func(part int), end func()) {
	s.p("MOVD %s, R0", s.args["groups"])
	if n := form.groups(); n > 1 {
		s.p("LSR $%d, R0", bits.TrailingZeros(uint(n)))
	}
	s.p("MOVD %s, R7", s.args["w"])
	s.p("MOVD %s, R8", s.args["s"])
	if form.offsets > 0 {
		s.p("MOVD %s, R9", s.args["m"])
	}
	s.place("loop")
	if form.groups() > 1 {
		begin()
		s.p("MOVD $%d, R13", form.groups())
		s.place("group")
	}
	for i := range form.parts() {
		part(i)
	}
	s.p("ADD $%d, R7", 32*16)
	for i := range rows {
		s.p("ADD $%d, R%d", recordBytes, 1+i)
	}
	if form.groups() > 1 {
		s.p("SUBS $1, R13")
		s.p("BNE group")
	}
	if form.kept() {
		end()
	}
	if form.offsets > 0 {
		s.p("ADD $%d, R9", 64*form.parts()*form.offsets)
	}
	s.p("ADD $%d, R8", 64*form.parts())
	s.p("SUBS $1, R0")
	s.p("BNE loop")
}
