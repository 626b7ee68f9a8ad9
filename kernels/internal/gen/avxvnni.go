package main

import "fmt"

// Go's assembler has VPDPBUSD only in the EVEX encoding, that of AVX-512. Processors with AVX-VNNI know it by the VEX
// encoding, which is written here as bytes.

// vexDot256 is VPDPBUSD of ymm registers in the VEX encoding, VEX.256.66.0F38.W0 50 /r: each word of acc grows by its
// four bytes of w, which have no sign, times those of x, which have one.
func vexDot256(x, w, acc int) [5]byte {
	above7 := func(r int) byte { return byte(r >> 3) }
	return [5]byte{
		0xC4,
		^above7(acc)<<7 | 1<<6 | ^above7(x)&1<<5 | 0b00010, // R, X and B, inverted; the map 0F38
		byte(^w&15)<<3 | 1<<2 | 0b01,                       // W0; vvvv, inverted; 256 bits; 66
		0x50,
		0b11<<6 | byte(acc&7)<<3 | byte(x&7),
	}
}

// dot256 adds to the words of acc the products of the bytes of w, without sign, and of x, with sign.
func (s *source) dot256(x, w, acc int) {
	b := vexDot256(x, w, acc)
	s.p("LONG $0x%02x%02x%02x%02x; BYTE $0x%02x // VPDPBUSD Y%d, Y%d, Y%d", b[3], b[2], b[1], b[0], b[4], x, w, acc)
}

// qdotTileVNNI: rows of x are at SI + 0, R11, 2·R11. A panel is two vectors. The lowest registers have the sums of
// floats and then those of integers, in the order of rows.
func (s *source) qdotTileVNNI(f *function, form tileForm, rows int) {
	const vectors = 2
	s.begin(f, avxvnni, fmt.Sprintf("A turn reads %d weights of 16 rows, %d bytes, and %d bytes of x. Sums in Y0 to "+
		"Y%d, integers in Y%d to Y%d, weights in Y12 and Y13.", 32*form.groups(), 32*16*form.groups(),
		rows*recordBytes*form.groups(), rows*vectors-1, rows*vectors, 2*rows*vectors-1))
	sum := func(i, v int) int { return i*vectors + v }
	acc := func(i, v int) int { return (rows+i)*vectors + v }
	const weights, scratch, other = 12, 14, 15
	place := func(i, offset int) string {
		return fmt.Sprintf("%d(SI)%s", offset, []string{"", "(R11*1)", "(R11*2)"}[i])
	}
	eachC := func(write func(at string, i, v int)) {
		s.p("MOVQ %s, AX", s.args["c"])
		s.p("MOVQ %s, BX", s.args["ldc"])
		s.p("SHLQ $2, BX")
		for i := range rows {
			for v := range vectors {
				write(fmt.Sprintf("%d(AX)", 32*v), i, v)
			}
			if i+1 < rows {
				s.p("ADDQ BX, AX")
			}
		}
	}
	eachOffset := func(part int, to func(i, v int) int) {
		for o := part * form.offsets; o < (part+1)*form.offsets; o++ {
			for v := range vectors {
				s.p("VMOVUPS %d(R12), Y%d", 64*o+32*v, weights+v)
			}
			for i := range rows {
				s.p("VBROADCASTSS %s, Y%d", place(i, form.scaledSumAt(o)), scratch)
				for v := range vectors {
					s.p("VMULPS Y%d, Y%d, Y%d", scratch, weights+v, other)
					s.p("VADDPS Y%d, Y%d, Y%d", other, to(i, v), to(i, v))
				}
			}
		}
	}
	kept := form.kept()
	s.p("CMPB %s, $0", s.args["add"])
	s.p("JEQ zero")
	if !kept {
		eachC(func(at string, i, v int) { s.p("VMOVUPS %s, Y%d", at, sum(i, v)) })
	}
	s.p("JMP start")
	s.place("zero")
	zero := func(r int) { s.p("VXORPS Y%d, Y%d, Y%d", r, r, r) }
	eachC(func(at string, i, v int) {
		if zero(sum(i, v)); kept {
			s.p("VMOVUPS Y%d, %s", sum(i, v), at)
		}
	})
	s.place("start")
	begin := func() {
		for r := range rows * vectors {
			zero(r)
		}
	}
	s.tileLoop(form, rows, 32*16, begin, func(part int) {
		for i := range rows { // 128 was added to the weights
			s.p("VPBROADCASTD %s, Y%d", place(i, form.sumAt(part)), scratch)
			for v := range vectors {
				s.p("VPSLLD $7, Y%d, Y%d", scratch, acc(i, v))
			}
		}
		for word := part * form.words(); word < (part+1)*form.words(); word++ {
			for v := range vectors {
				s.p("VMOVDQU %d(DI), Y%d", 64*word+32*v, weights+v)
			}
			for i := range rows {
				x := scratch + i%2
				s.p("VPBROADCASTD %s, Y%d", place(i, 4*word), x)
				for v := range vectors {
					s.dot256(x, weights+v, acc(i, v))
				}
			}
		}
		for v := 0; v < vectors && form.groups() == 1; v++ {
			s.p("VMOVUPS %d(DX), Y%d", 64*part+32*v, weights+v)
		}
		for i := range rows {
			if form.parts() == 1 {
				s.p("VBROADCASTSS %s, Y%d", place(i, recordScale), scratch)
			}
			for v := range vectors {
				a, by := acc(i, v), scratch
				switch {
				case !kept:
					by = other
					s.p("VMULPS Y%d, Y%d, Y%d", scratch, weights+v, by)
				case form.parts() > 1:
					by = weights + v
				}
				s.p("VCVTDQ2PS Y%d, Y%d", a, a)
				if form.parts() > 1 && part == 0 {
					s.p("VMULPS Y%d, Y%d, Y%d", by, a, sum(i, v))
					continue
				}
				s.p("VMULPS Y%d, Y%d, Y%d", by, a, a)
				s.p("VADDPS Y%d, Y%d, Y%d", a, sum(i, v), sum(i, v))
			}
		}
		if !kept {
			eachOffset(part, sum)
		}
	}, func() {
		if form.groups() == 1 {
			eachC(func(at string, i, v int) {
				if v == 0 {
					s.p("VBROADCASTSS %s, Y%d", place(i, recordScale-recordBytes), scratch)
				}
				s.p("VMULPS Y%d, Y%d, Y%d", scratch, sum(i, v), sum(i, v))
				s.p("VADDPS %s, Y%d, Y%d", at, sum(i, v), sum(i, v))
				s.p("VMOVUPS Y%d, %s", sum(i, v), at)
			})
			return
		}
		eachC(func(at string, i, v int) { s.p("VMOVUPS %s, Y%d", at, acc(i, v)) })
		eachOffset(0, acc)
		for v := range vectors {
			s.p("VMOVUPS %d(DX), Y%d", 32*v, weights+v)
		}
		eachC(func(at string, i, v int) {
			s.p("VMULPS Y%d, Y%d, Y%d", weights+v, sum(i, v), sum(i, v))
			s.p("VADDPS Y%d, Y%d, Y%d", sum(i, v), acc(i, v), acc(i, v))
			s.p("VMOVUPS Y%d, %s", acc(i, v), at)
		})
	})
	if !kept {
		eachC(func(at string, i, v int) { s.p("VMOVUPS Y%d, %s", sum(i, v), at) })
	}
	s.p("VZEROUPPER")
	s.p("RET")
}
