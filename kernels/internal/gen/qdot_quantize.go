package main

import (
	"fmt"
	"math"
)

// qdotQuantize writes the rounding of activations to records. A group that is zeros or not finite is rare.
func (s *source) qdotQuantize() {
	f := s.declare("quantizeRow", "dst *uint32, x *float32, groups int",
		"quantizeRow writes the records of so many groups of 32 activations: see quantizeGroup.")
	s.qdotQuantizeAMD64(f)
	s.qdotQuantizeARM64(f)
}

const infinity = 0x7F800000

// smallestBits is 2⁻¹⁰⁰: a group below counts as zeros.
var smallestBits = math.Float32bits(0x1p-100)

// qdotQuantizeAMD64: X15 is 127. Wider vectors are no faster.
func (s *source) qdotQuantizeAMD64(f *function) {
	s.begin(f, avx2, fmt.Sprintf("A turn reads 128 bytes and writes %d.", recordBytes))
	s.p("MOVQ %s, DI", s.args["dst"])
	s.p("MOVQ %s, SI", s.args["x"])
	s.p("MOVQ %s, CX", s.args["groups"])
	s.p("VMOVSS consts<>+%d(SB), X15", s.constant(uint64(math.Float32bits(127)), 4))
	s.p("VMOVUPS consts<>+%d(SB), Y14", s.constant(0x7FFFFFFF, 4))
	s.p("VMOVUPS consts<>+%d(SB), Y13", s.constant(0x80808080, 4))
	s.p("VPXOR Y12, Y12, Y12")
	s.p("MOVQ $0x0703060205010400, AX") // the order of what packing leaves
	s.p("MOVQ AX, X11")
	s.p("VPMOVZXBD X11, Y11")
	s.place("loop")
	for i := range 4 {
		s.p("VMOVUPS %d(SI), Y%d", 32*i, i)
		s.p("VPAND Y14, Y%d, Y%d", i, 4+i)
	}
	s.p("VPMAXUD Y5, Y4, Y4")
	s.p("VPMAXUD Y7, Y6, Y5")
	s.p("VPMAXUD Y5, Y4, Y4")
	s.p("VEXTRACTI128 $1, Y4, X5")
	s.p("VPMAXUD X5, X4, X4")
	s.p("VPSHUFD $0x4e, X4, X5")
	s.p("VPMAXUD X5, X4, X4")
	s.p("VPSHUFD $0xb1, X4, X5")
	s.p("VPMAXUD X5, X4, X4")
	s.p("VMOVD X4, AX")
	s.p("LEAL -%d(AX), DX", smallestBits)
	s.p("CMPL DX, $%d", infinity-smallestBits)
	s.p("JCC rare")
	s.p("VDIVSS X4, X15, X5")
	s.p("VDIVSS X15, X4, X4")
	s.p("VBROADCASTSS X5, Y5")
	for i := range 4 {
		s.p("VMULPS Y5, Y%d, Y%d", i, i)
		s.p("VCVTPS2DQ Y%d, Y%d", i, i)
	}
	s.p("VPACKSSDW Y1, Y0, Y0")
	s.p("VPACKSSDW Y3, Y2, Y2")
	s.p("VPACKSSWB Y2, Y0, Y0")
	s.p("VPERMD Y0, Y11, Y0")
	s.p("VMOVDQU Y0, (DI)")
	s.p("VPXOR Y13, Y0, Y0") // sums of bytes are without sign: 128 more each
	s.p("VPSADBW Y12, Y0, Y0")
	s.p("VEXTRACTI128 $1, Y0, X1")
	s.p("VPUNPCKLQDQ X1, X0, X2")
	s.p("VPUNPCKHQDQ X1, X0, X3")
	s.p("VPADDQ X3, X2, X2")
	s.p("VMOVQ X2, AX")
	s.p("VPEXTRQ $1, X2, DX")
	s.p("MOVL $%d, BX", 16*128)
	s.p("MOVL BX, R8")
	s.p("SUBL AX, BX")
	s.p("SUBL DX, R8")
	s.p("MOVL BX, %d(DI)", recordLow)
	s.p("MOVL R8, %d(DI)", recordHigh)
	s.p("LEAL (BX)(R8*1), R9")
	s.p("MOVL R9, %d(DI)", recordSum)
	s.p("VMOVSS X4, %d(DI)", recordScale)
	for i, r := range []string{"R9", "BX", "R8"} {
		s.p("NEGL %s", r)
		s.p("VCVTSI2SSL %s, X15, X5", r)
		s.p("VMULSS X4, X5, X5")
		s.p("VMOVSS X5, %d(DI)", []int{recordScaledSum, recordScaledLow, recordScaledLow + 4}[i])
	}
	s.place("next")
	s.p("ADDQ $128, SI")
	s.p("ADDQ $%d, DI", recordBytes)
	s.p("DECQ CX")
	s.p("JNE loop")
	s.p("VZEROUPPER")
	s.p("RET")
	s.place("rare")
	s.p("VMOVDQU Y12, (DI)")
	s.p("VMOVDQU Y12, %d(DI)", recordBytes-32)
	s.p("CMPL AX, $%d", infinity)
	s.p("JCS next")
	for _, at := range []int{recordScale, recordScaledSum, recordScaledLow, recordScaledLow + 4} {
		s.p("MOVL $0x7FC00000, %d(DI)", at)
	}
	s.p("JMP next")
}

// qdotQuantizeARM64: F31 is 127.
func (s *source) qdotQuantizeARM64(f *function) {
	s.begin(f, neon, fmt.Sprintf("A turn reads 128 bytes and writes %d.", recordBytes))
	op := func(name string, bits, d, a, b int) {
		s.p("WORD $0x%08x // %s V%d, V%d, V%d", bits|b<<16|a<<5|d, name, d, a, b)
	}
	s.p("MOVD %s, R0", s.args["dst"])
	s.p("MOVD %s, R1", s.args["x"])
	s.p("MOVD %s, R2", s.args["groups"])
	s.p("FMOVS $127.0, F31")
	s.p("MOVD $%d, R9", smallestBits)
	s.p("MOVD $%d, R10", infinity)
	s.place("loop")
	for i := range 8 {
		s.p("FMOVQ %d(R1), F%d", 16*i, i)
		op("FABS", 0x4EA0F800, 8+i, i, 0)
	}
	for distance := 1; distance < 8; distance *= 2 {
		for i := 8; i < 16; i += 2 * distance {
			op("UMAX", 0x6EA06400, i, i, i+distance)
		}
	}
	op("UMAXV", 0x6EB0A800, 8, 8, 0)
	s.p("FMOVS F8, R3")
	s.p("CMPW R9, R3")
	s.p("BLO rare")
	s.p("CMPW R10, R3")
	s.p("BHS rare")
	s.p("FDIVS F8, F31, F9")
	s.p("FDIVS F31, F8, F10")
	for i := range 8 {
		s.element("mul", i, i, 9, 0)
		op("FCVTNS", 0x4E21A800, i, i, 0)
	}
	for i := 0; i < 8; i += 2 { // of words to halves, then to bytes
		op("XTN", 0x0E612800, i, i, 0)
		op("XTN2", 0x4E612800, i, i+1, 0)
	}
	for i := 0; i < 8; i += 4 {
		op("XTN", 0x0E212800, i, i, 0)
		op("XTN2", 0x4E212800, i, i+2, 0)
		s.p("FMOVQ F%d, %d(R0)", i, 4*i)
		op("SADDLV", 0x4E303800, 16, i, 0)
		s.p("VMOV V16.H[0], R%d", 4+i/4)
		s.p("MOVH R%d, R%d", 4+i/4, 4+i/4)
		s.p("NEGW R%d, R%d", 4+i/4, 4+i/4)
		s.p("MOVW R%d, %d(R0)", 4+i/4, recordLow+i)
	}
	s.p("ADDW R4, R5, R6")
	s.p("MOVW R6, %d(R0)", recordSum)
	s.p("FMOVS F10, %d(R0)", recordScale)
	for i, at := range []int{recordScaledLow, recordScaledLow + 4, recordScaledSum} {
		s.p("NEGW R%d, R%d", 4+i, 4+i)
		s.p("SCVTFWS R%d, F11", 4+i)
		s.p("FMULS F10, F11, F11")
		s.p("FMOVS F11, %d(R0)", at)
	}
	s.place("next")
	s.p("ADD $128, R1")
	s.p("ADD $%d, R0", recordBytes)
	s.p("SUBS $1, R2")
	s.p("BNE loop")
	s.p("RET")
	s.place("rare")
	s.p("VEOR V0.B16, V0.B16, V0.B16")
	for _, at := range []int{0, 16, recordBytes - 32, recordBytes - 16} {
		s.p("FMOVQ F0, %d(R0)", at)
	}
	s.p("CMPW R10, R3")
	s.p("BLO next")
	s.p("MOVW $%d, R6", 0x7FC00000)
	for _, at := range []int{recordScale, recordScaledSum, recordScaledLow, recordScaledLow + 4} {
		s.p("MOVW R6, %d(R0)", at)
	}
	s.p("JMP next")
}
