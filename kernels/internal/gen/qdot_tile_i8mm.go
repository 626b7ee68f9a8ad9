package main

import "fmt"

// usmmla adds to the words 2i+j of d the products of the eight bytes i of a, without sign, and the eight bytes j of b,
// with sign.
func (s *source) usmmla(d, a, b int) {
	s.p("WORD $0x%08x // USMMLA V%d, V%d, V%d", 0x4E80AC00|uint32(b<<16|a<<5|d), d, a, b)
}

// qdotTileI8MM: rows of x are at R1 to R6. Two rows of x and two columns share a register, in the order of the columns
// and then of the rows; so do their sums, their scales, each twice, and the factors of the rows, both twice. Without a
// second row the first one takes its place, and what comes out of that is not stored.
func (s *source) qdotTileI8MM(f *function, form tileForm, rows int) {
	pairs := (rows + 1) / 2
	s.begin(f, i8mm, fmt.Sprintf("A turn reads %d weights of 8 rows, %d bytes, and %d bytes of x. Sums in the lowest "+
		"%d registers, then as many integers; weights in V24 to V26 and V28.", 32*form.groups(), 32*8*form.groups(),
		rows*recordBytes*form.groups(), 4*pairs))
	sum := func(p, c int) int { return 4*p + c }
	acc := func(p, c int) int { return 4*pairs + 4*p + c }
	row := func(i int) int { return 1 + min(i, rows-1) }
	columns := [4]int{28, 24, 26, 25} // the registers of two columns each
	// two sets columns to the words of two times two vectors, one of each in turn.
	two := func(a0, a1, b0, b1 int) {
		zip := func(half, a, b, d int) { s.p("VZIP%d V%d.S4, V%d.S4, V%d.S4", half, b, a, d) }
		zip(1, a0, b0, columns[0])
		zip(2, a0, b0, columns[1])
		zip(1, a1, b1, columns[2])
		zip(2, a1, b1, columns[3])
	}
	// ofRows sets V29 to the words that the rows of pair p have at so many bytes, both twice.
	ofRows := func(p, at int) {
		s.p("FMOVS %d(R%d), F29", at, row(2*p))
		s.p("FMOVS %d(R%d), F30", at, row(2*p+1))
		s.p("VZIP1 V30.S4, V29.S4, V29.S4")
		s.p("VDUP V29.D[0], V29.D2")
	}
	// scale sets a register to the scales or offsets of two columns, times what the rows have.
	scale := func(c int) int {
		r := []int{27, 31}[c%2]
		s.word("mul", 4, r, columns[c], 29)
		return r
	}
	eachC := func(write func(p int)) {
		s.p("MOVD %s, R10", s.args["c"])
		s.p("MOVD %s, R11", s.args["ldc"])
		s.p("LSL $2, R11")
		for p := range pairs {
			if 2*p+1 < rows {
				s.p("ADD R11, R10, R12")
			} else {
				s.p("MOVD R10, R12")
			}
			write(p)
			if p+1 < pairs {
				s.p("ADD R11, R12, R10")
			}
		}
	}
	load := func(p int, to func(p, c int) int) {
		for v := range 2 {
			s.p("FMOVQ %d(R10), F24", 16*v)
			s.p("FMOVQ %d(R12), F25", 16*v)
			for half := range 2 {
				s.p("VZIP%d V25.S4, V24.S4, V%d.S4", 1+half, to(p, 2*v+half))
			}
		}
	}
	store := func(p int, from func(p, c int) int) {
		for v := range 2 {
			s.p("VUZP1 V%d.S4, V%d.S4, V30.S4", from(p, 2*v+1), from(p, 2*v))
			s.p("FMOVQ F30, %d(R10)", 16*v)
			if 2*p+1 < rows {
				s.p("VUZP2 V%d.S4, V%d.S4, V30.S4", from(p, 2*v+1), from(p, 2*v))
				s.p("FMOVQ F30, %d(R12)", 16*v)
			}
		}
	}
	eachOffset := func(part int, to func(p, c int) int) {
		for o := part * form.offsets; o < (part+1)*form.offsets; o++ {
			for v := range 2 {
				s.p("FMOVQ %d(R9), F%d", 64*o+16*v, 24+v)
			}
			two(24, 25, 24, 25)
			for p := range pairs {
				ofRows(p, form.scaledSumAt(o))
				for c := range columns {
					s.word("add", 4, to(p, c), to(p, c), scale(c))
				}
			}
		}
	}
	kept := form.kept()
	s.p("MOVBU %s, R0", s.args["add"])
	s.p("CBZ R0, zero")
	if !kept {
		eachC(func(p int) { load(p, sum) })
	}
	s.p("JMP start")
	s.place("zero")
	begin := func() {
		for r := range 4 * pairs {
			s.p("VEOR V%d.B16, V%d.B16, V%d.B16", r, r, r)
		}
	}
	if begin(); kept {
		eachC(func(p int) { store(p, sum) })
	}
	s.place("start")
	s.p("MOVD %s, R1", s.args["x"])
	s.p("MOVD %s, R10", s.args["ldx"])
	s.p("LSL $2, R10")
	for i := 1; i < rows; i++ {
		s.p("ADD R10, R%d, R%d", i, i+1)
	}
	s.loopARM64(form, rows, begin, func(part int) {
		for p := range pairs { // 128 was added to the weights
			ofRows(p, form.sumAt(part))
			s.shiftARM("shl", 4, acc(p, 0), 29, 7)
			for c := 1; c < len(columns); c++ {
				s.moveARM(acc(p, c), acc(p, 0)) // many processors move by renaming
			}
		}
		for word := part * form.words(); word < (part+1)*form.words(); word += 2 {
			for i := range 4 {
				s.p("FMOVQ %d(R7), F%d", 64*(word+i/2)+16*(i%2), 24+i)
			}
			two(24, 25, 26, 27)
			for p := range pairs {
				x, other := 29+p%2*2, []int{30, 27}[p%2]
				s.p("FMOVD %d(R%d), F%d", 4*word, row(2*p), x)
				s.p("FMOVD %d(R%d), F%d", 4*word, row(2*p+1), other)
				s.p("VZIP1 V%d.D2, V%d.D2, V%d.D2", other, x, x)
				for c, w := range columns {
					s.usmmla(acc(p, c), w, x)
				}
			}
		}
		if form.groups() > 1 {
			for p := range pairs {
				ofRows(p, recordScale)
				for c := range columns {
					a := acc(p, c)
					s.word("toFloat", 4, a, a, 0)
					s.word("mul", 4, a, a, 29)
					s.word("add", 4, sum(p, c), sum(p, c), a)
				}
			}
			return
		}
		for v := range 2 {
			s.p("FMOVQ %d(R8), F%d", 64*part+16*v, 24+v)
		}
		two(24, 25, 24, 25)
		for p := range pairs {
			if !kept {
				ofRows(p, recordScale)
			}
			for c, by := range columns {
				if !kept {
					by = scale(c)
				}
				a := acc(p, c)
				if s.word("toFloat", 4, a, a, 0); kept && part == 0 {
					s.word("mul", 4, sum(p, c), a, by)
					continue
				}
				s.word("mul", 4, a, a, by)
				s.word("add", 4, sum(p, c), sum(p, c), a)
			}
		}
		eachOffset(part, sum)
	}, func() {
		eachC(func(p int) { load(p, acc) })
		if form.groups() == 1 {
			eachC(func(p int) {
				ofRows(p, recordScale-recordBytes)
				for c := range columns {
					s.word("mul", 4, sum(p, c), sum(p, c), 29)
					s.word("add", 4, acc(p, c), acc(p, c), sum(p, c))
				}
				store(p, acc)
			})
			return
		}
		eachOffset(0, acc)
		for v := range 2 {
			s.p("FMOVQ %d(R8), F%d", 16*v, 24+v)
		}
		two(24, 25, 24, 25)
		eachC(func(p int) {
			for c, w := range columns {
				s.word("mul", 4, sum(p, c), sum(p, c), w)
				s.word("add", 4, acc(p, c), acc(p, c), sum(p, c))
			}
			store(p, acc)
		})
	})
	if !kept {
		eachC(func(p int) { store(p, sum) })
	}
	s.p("RET")
}
