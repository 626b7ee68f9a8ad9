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
	s.begin(f, avxvnni, fmt.Sprintf("A turn reads 32 weights of 16 rows, %d bytes, and %d bytes of x. Sums in Y0 to "+
		"Y%d, integers in Y%d to Y%d, weights in Y12 and Y13.", 32*16, rows*recordBytes, rows*vectors-1, rows*vectors,
		2*rows*vectors-1))
	sum := func(i, v int) int { return i*vectors + v }
	acc := func(i, v int) int { return (rows+i)*vectors + v }
	const weights, scratch, other = 12, 14, 15
	place := func(i, offset int) string {
		return fmt.Sprintf("%d(SI)%s", offset, []string{"", "(R11*1)", "(R11*2)"}[i])
	}
	eachC := func(write func(at string, r int)) {
		s.p("MOVQ %s, AX", s.args["c"])
		s.p("MOVQ %s, BX", s.args["ldc"])
		s.p("SHLQ $2, BX")
		for i := range rows {
			for v := range vectors {
				write(fmt.Sprintf("%d(AX)", 32*v), sum(i, v))
			}
			if i+1 < rows {
				s.p("ADDQ BX, AX")
			}
		}
	}
	s.p("CMPB %s, $0", s.args["add"])
	s.p("JEQ zero")
	eachC(func(at string, r int) { s.p("VMOVUPS %s, Y%d", at, r) })
	s.p("JMP start")
	s.place("zero")
	for r := range rows * vectors {
		s.p("VXORPS Y%d, Y%d, Y%d", r, r, r)
	}
	s.place("start")
	s.p("MOVQ %s, CX", s.args["groups"])
	s.p("MOVQ %s, DI", s.args["w"])
	s.p("MOVQ %s, DX", s.args["s"])
	if form.offsets > 0 {
		s.p("MOVQ %s, R12", s.args["m"])
	}
	s.p("MOVQ %s, SI", s.args["x"])
	s.p("MOVQ %s, R11", s.args["ldx"])
	s.p("SHLQ $2, R11")
	s.p("PCALIGN $64")
	s.place("loop")
	for part := range 32 / form.each {
		for i := range rows { // 128 was added to the weights
			s.p("VPBROADCASTD %s, Y%d", place(i, form.sumAt(part)), scratch)
			for v := range vectors {
				s.p("VPSLLD $7, Y%d, Y%d", scratch, acc(i, v))
			}
		}
		for word := part * form.each / 4; word < (part+1)*form.each/4; word++ {
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
		for v := range vectors {
			s.p("VMOVUPS %d(DX), Y%d", 64*part+32*v, weights+v)
		}
		for i := range rows {
			s.p("VBROADCASTSS %s, Y%d", place(i, recordScale), scratch)
			for v := range vectors {
				a := acc(i, v)
				s.p("VMULPS Y%d, Y%d, Y%d", scratch, weights+v, other)
				s.p("VCVTDQ2PS Y%d, Y%d", a, a)
				s.p("VMULPS Y%d, Y%d, Y%d", other, a, a)
				s.p("VADDPS Y%d, Y%d, Y%d", a, sum(i, v), sum(i, v))
			}
		}
		for o := part * form.offsets; o < (part+1)*form.offsets; o++ {
			for v := range vectors {
				s.p("VMOVUPS %d(R12), Y%d", 64*o+32*v, weights+v)
			}
			for i := range rows {
				s.p("VBROADCASTSS %s, Y%d", place(i, form.scaledSumAt(o)), scratch)
				for v := range vectors {
					s.p("VMULPS Y%d, Y%d, Y%d", scratch, weights+v, other)
					s.p("VADDPS Y%d, Y%d, Y%d", other, sum(i, v), sum(i, v))
				}
			}
		}
	}
	if form.offsets > 0 {
		s.p("ADDQ $%d, R12", 64*32/form.each*form.offsets)
	}
	s.p("ADDQ $%d, DI", 32*16)
	s.p("ADDQ $%d, DX", 64*32/form.each)
	s.p("ADDQ $%d, SI", recordBytes)
	s.p("DECQ CX")
	s.p("JNE loop")
	eachC(func(at string, r int) { s.p("VMOVUPS Y%d, %s", r, at) })
	s.p("VZEROUPPER")
	s.p("RET")
}
