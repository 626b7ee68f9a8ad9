package main

import "fmt"

// qdotPack writes the transposition of blocks of 16 rows into a panel. It takes four words of all rows at a time: lane
// j of vector i is row 4j+i, so a transposition within lanes leaves the rows in order. The last four words may include
// some that are already done.
func (s *source) qdotPack() {
	f := s.declare("packPanel", "panel, rows *byte, stride, blocks, odd, oddAt, toWords, words, toNext int",
		"packPanel writes so many blocks of 16 rows, stride bytes apart, to a panel: of each block the odd bytes of "+
			"all rows, 0 to 2, which begin at oddAt, then its words, at least 4, one by one of all rows. The words "+
			"begin toWords bytes after the odd bytes, the next block toNext bytes after the words.")
	s.qdotPackAMD64(f)
	s.qdotPackARM64(f)
	s.qdotPieces()
}

// qdotPieces writes the moving of a packed block's bits to their places.
func (s *source) qdotPieces() {
	f := s.declare("movePieces", "panel, block *byte, pieces *int, n int", "movePieces puts n pieces of the words of "+
		"16 rows at block, structures of 5 words, where they belong in those at panel. See piece.")
	s.begin(f, avx2, "A turn reads and writes a word of 16 rows.")
	s.p("MOVQ %s, DI", s.args["panel"])
	s.p("MOVQ %s, SI", s.args["block"])
	s.p("MOVQ %s, DX", s.args["pieces"])
	s.p("MOVQ %s, CX", s.args["n"])
	s.place("loop")
	for i, r := range []string{"R8", "R9"} { // from, to
		s.p("MOVQ %d(DX), %s", 8*i, r)
		s.p("SHLQ $6, %s", r)
	}
	s.p("VMOVQ 16(DX), X4")
	s.p("VMOVQ 24(DX), X5")
	s.p("VPBROADCASTD 32(DX), Y6")
	for at := 0; at < 64; at += 32 {
		s.p("VPAND %d(SI)(R8*1), Y6, Y0", at)
		s.p("VPSLLD X4, Y0, Y0")
		s.p("VPSRLD X5, Y0, Y0")
		s.p("VPOR %d(DI)(R9*1), Y0, Y0", at)
		s.p("VMOVDQU Y0, %d(DI)(R9*1)", at)
	}
	s.p("ADDQ $40, DX")
	s.p("DECQ CX")
	s.p("JNE loop")
	s.p("VZEROUPPER")
	s.p("RET")
	s.begin(f, neon, "A turn reads and writes a word of 16 rows.")
	s.p("MOVD %s, R0", s.args["panel"])
	s.p("MOVD %s, R1", s.args["block"])
	s.p("MOVD %s, R2", s.args["pieces"])
	s.p("MOVD %s, R3", s.args["n"])
	s.place("loop")
	for i, base := range []string{"R1", "R0"} {
		s.p("MOVD %d(R2), R%d", 8*i, 4+i)
		s.p("ADD R%d<<6, %s, R%d", 4+i, base, 4+i)
	}
	s.p("MOVD 16(R2), R6")
	s.p("MOVD 24(R2), R7")
	s.p("SUB R7, R6")
	s.p("VDUP R6, V5.S4")
	s.p("MOVD 32(R2), R8")
	s.p("VDUP R8, V6.S4")
	for at := 0; at < 64; at += 16 {
		s.p("FMOVQ %d(R4), F0", at)
		s.p("FMOVQ %d(R5), F1", at)
		s.p("VAND V6.B16, V0.B16, V0.B16")
		s.panelWord("ushl", 0, 0, 5)
		s.p("VORR V1.B16, V0.B16, V0.B16")
		s.p("FMOVQ F0, %d(R5)", at)
	}
	s.p("ADD $40, R2")
	s.p("SUBS $1, R3")
	s.p("BNE loop")
	s.p("RET")
}

// qdotPackAMD64: rows 4q to 4q+3 are at (base q) + 0, R11, 2·R11, R12. Wider vectors are no faster.
func (s *source) qdotPackAMD64(f *function) {
	s.begin(f, avx2, "A turn of the inner loop reads and writes 256 bytes.")
	bases := []string{"SI", "R8", "R9", "R10"}
	place := func(row int) string {
		return fmt.Sprintf("(%s)%s", bases[row/4], []string{"", "(R11*1)", "(R11*2)", "(R12*1)"}[row%4])
	}
	move := func(format string, args ...any) {
		for _, base := range bases {
			s.p(format+", "+base, args...)
		}
	}
	s.p("MOVQ %s, DI", s.args["panel"])
	s.p("MOVQ %s, SI", s.args["rows"])
	s.p("MOVQ %s, R11", s.args["stride"])
	s.p("LEAQ (R11)(R11*2), R12")
	for q := 1; q < 4; q++ {
		s.p("LEAQ (%s)(R11*4), %s", bases[q-1], bases[q])
	}
	s.p("MOVQ %s, CX", s.args["blocks"])
	s.p("MOVQ %s, R13", s.args["odd"])
	s.place("block")
	s.p("MOVQ %s, AX", s.args["oddAt"])
	move("ADDQ AX")
	s.p("CMPQ R13, $1")
	s.p("JLT words")
	s.p("JEQ one")
	for row := range 16 {
		s.p("MOVWLZX %s, AX", place(row))
		s.p("MOVW AX, %d(DI)", 2*row)
	}
	s.p("ADDQ $32, DI")
	s.p("JMP words")
	s.place("one")
	for row := range 16 {
		s.p("MOVBLZX %s, AX", place(row))
		s.p("MOVB AX, %d(DI)", row)
	}
	s.p("ADDQ $16, DI")
	s.place("words")
	s.p("MOVQ %s, AX", s.args["toWords"])
	s.p("MOVQ %s, BX", s.args["words"])
	s.p("MOVQ $4, R14")
	s.place("loop")
	move("ADDQ AX")
	n := &network{source: s, vec: "Y"}
	for half := range 2 { // of the rows
		n.free = []int{4, 5, 6, 7}
		at := []int{0, 1, 2, 3}
		for i := range at {
			s.p("VMOVDQU %s, X%d", place(8*half+i), i)
			s.p("VINSERTI128 $1, %s, Y%d, Y%d", place(8*half+4+i), i, i)
		}
		n.lanes(at)
		for i, r := range at {
			s.p("VMOVUPS Y%d, %d(DI)", r, 64*columnOf(i)+32*half)
		}
	}
	// On by four words, or by fewer if that many are left.
	s.p("SUBQ $4, BX")
	s.p("JEQ done")
	s.p("MOVQ BX, AX")
	s.p("CMPQ BX, R14")
	s.p("CMOVQGT R14, AX")
	s.p("CMOVQLT R14, BX")
	s.p("MOVQ AX, DX")
	s.p("SHLQ $6, DX")
	s.p("ADDQ DX, DI")
	s.p("SHLQ $2, AX")
	s.p("JMP loop")
	s.place("done")
	s.p("ADDQ $256, DI")
	s.p("MOVQ %s, AX", s.args["toNext"])
	s.p("ADDQ $16, AX")
	move("ADDQ AX")
	s.p("DECQ CX")
	s.p("JNE block")
	s.p("VZEROUPPER")
	s.p("RET")
}

// qdotPackARM64: row 4g+i is at R1 + g·R6 + i·R5.
func (s *source) qdotPackARM64(f *function) {
	s.begin(f, neon, "A turn of the inner loop reads and writes 256 bytes.")
	s.p("MOVD %s, R0", s.args["panel"])
	s.p("MOVD %s, R1", s.args["rows"])
	s.p("MOVD %s, R5", s.args["stride"])
	s.p("LSL $2, R5, R6")
	s.p("MOVD %s, R7", s.args["blocks"])
	s.p("MOVD %s, R8", s.args["odd"])
	s.p("MOVD %s, R9", s.args["oddAt"])
	s.p("MOVD %s, R10", s.args["toWords"])
	s.p("MOVD %s, R11", s.args["words"])
	s.p("MOVD %s, R12", s.args["toNext"])
	s.p("ADD $16, R12")
	s.place("block")
	s.p("ADD R9, R1")
	s.p("MOVD R1, R2")
	s.p("CMP $1, R8")
	s.p("BLT words")
	s.p("BEQ one")
	for range 16 {
		s.p("MOVHU (R2), R3")
		s.p("ADD R5, R2")
		s.p("MOVH.P R3, 2(R0)")
	}
	s.p("JMP words")
	s.place("one")
	for range 16 {
		s.p("MOVBU (R2), R3")
		s.p("ADD R5, R2")
		s.p("MOVB.P R3, 1(R0)")
	}
	s.place("words")
	s.p("ADD R10, R1")
	s.p("MOVD R11, R13")
	s.place("loop")
	s.p("MOVD R1, R2")
	for g := range 4 {
		s.p("MOVD R2, R3")
		for i := range 4 {
			s.p("FMOVQ (R3), F%d", i)
			if i < 3 {
				s.p("ADD R5, R3")
			}
		}
		s.squareARM()
		for p := range 4 {
			s.p("FMOVQ F%d, %d(R0)", 8+p, 64*p+16*g)
		}
		if g < 3 {
			s.p("ADD R6, R2")
		}
	}
	s.p("SUBS $4, R13")
	s.p("BEQ done")
	s.p("MOVD $4, R4")
	s.p("CMP R4, R13")
	s.p("CSEL GT, R4, R13, R3") // on by four words, or by fewer if that many are left
	s.p("CSEL LT, R4, R13, R13")
	s.p("ADD R3<<2, R1")
	s.p("ADD R3<<6, R0")
	s.p("JMP loop")
	s.place("done")
	s.p("ADD $256, R0")
	s.p("ADD R12, R1")
	s.p("SUBS $1, R7")
	s.p("BNE block")
	s.p("RET")
}
