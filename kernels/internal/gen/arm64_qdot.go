package main

import "fmt"

// On arm64 a block of a panel begins at R0. The rows of a body have their words at R9 and what stands before the
// words at R10; what they fetch ahead is at R12. R7 points to their results, R3 to the activations. R1 is from a
// panel to that of the next strip, R6 from the end of its results to the next ones, R4 points to the first strip's
// results, R2 is the number of strips, R5 that of blocks; R8, R13 and R19 count strips, bodies and units; R11 points
// to the constants, R14 to the points of a grid. An unpacking has its bytes, scales and offsets at R3, R4 and R7.
func (w *panelWriter) vecARM64() {
	for _, arg := range [][2]string{{"c", "R4"}, {"ldc", "R6"}, {"panels", "R0"}, {"next", "R1"}, {"count", "R2"},
		{"units", "R19"}} {
		w.p("MOVD %s, %s", w.args[arg[0]], arg[1])
	}
	w.prologueARM64()
	w.pointsARM64()
	parts, odd := w.b.parts(), w.b.f.odd*w.width
	y := w.values[w.named(resultName(0))].reg
	w.p("SUB $64, R6")
	w.place("unit")
	w.p("MOVD %s, R3", w.args["x"])
	w.p("MOVD %s, R5", w.args["blocks"])
	w.place("loop")
	w.steps(func(step int) {
		w.p("MOVD R0, R9")
		w.p("MOVD R0, R10")
		w.p("ADD $%d, R0, R12", w.b.from[step])
		w.p("MOVD R4, R7")
		w.p("MOVD R2, R8")
		w.place(fmt.Sprintf("panel%d", step))
		w.p("MOVD $%d, R13", parts)
		w.place(fmt.Sprintf("part%d", step))
		w.p("FMOVQ (R7), F%d", y)
	}, w.insARM64, func(step int) {
		w.p("FMOVQ.P F%d, 16(R7)", y)
		w.p("ADD $16, R9")
		w.p("ADD $%d, R10", odd)
		w.p("ADD $%d, R12", w.b.portion[step])
		w.p("SUBS $1, R13")
		w.p("BNE part%d", step)
		w.p("ADD R6, R7")
		w.p("ADD R1, R9")
		w.p("SUB $%d, R9", 16*parts)
		w.p("ADD R1, R10")
		w.p("SUB $%d, R10", odd*parts)
		w.p("ADD R1, R12")
		w.p("SUB $%d, R12", w.b.portion[step]*parts)
		w.p("SUBS $1, R8")
		w.p("BNE panel%d", step)
	})
	w.p("ADD $%d, R0", 16*w.b.f.bytes)
	w.p("ADD $%d, R3", w.b.f.block/32*recordBytes)
	w.p("SUBS $1, R5")
	w.p("BNE loop")
	w.p("ADD $64, R4")
	w.p("SUBS $1, R19")
	w.p("BNE unit")
	w.p("RET")
}

func (w *panelWriter) unpackARM64() {
	for _, arg := range [][2]string{{"panel", "R0"}, {"bytes", "R3"}, {"s", "R4"}, {"m", "R7"}, {"blocks", "R5"}} {
		w.p("MOVD %s, %s", w.args[arg[0]], arg[1])
	}
	w.prologueARM64()
	w.pointsARM64()
	w.place("loop")
	w.p("MOVD R0, R9")
	w.p("MOVD R0, R10")
	w.p("MOVD R0, R12")
	w.p("MOVD $%d, R13", w.b.parts())
	w.place("part")
	for i := range w.ins {
		w.insARM64(i)
	}
	for _, r := range []string{"R9", "R3", "R4", "R7"} {
		w.p("ADD $16, %s", r)
	}
	w.p("ADD $%d, R10", w.b.f.odd*w.width)
	w.p("ADD $%d, R12", w.b.fetched())
	w.p("SUBS $1, R13")
	w.p("BNE part")
	bytes, scales, offsets := w.turn()
	w.p("ADD $%d, R3", bytes)
	w.p("ADD $%d, R4", scales)
	w.p("ADD $%d, R7", offsets)
	w.p("ADD $%d, R0", 16*w.b.f.bytes)
	w.p("SUBS $1, R5")
	w.p("BNE loop")
	w.p("RET")
}

// pointsARM64 loads the address of the points of a format that has some.
func (w *panelWriter) pointsARM64() {
	if w.b.f.point > 0 {
		w.p("MOVD %s, %s", w.args["points"], w.pointsRegister())
	}
}

// prologueARM64 loads constants and tables.
func (w *panelWriter) prologueARM64() {
	w.p("MOVD $consts<>(SB), R11")
	for i := range w.values {
		v := &w.values[i]
		content, table := w.b.content[val(i)]
		switch {
		case v.kind == konst && v.reg >= 0:
			w.p("FMOVQ %d(R11), F%d", w.constOffset(v), v.reg)
		case table:
			w.p("FMOVQ %d(R11), F%d", w.constantBytes(content), v.reg)
		}
	}
}

// panelCodes are instructions on 16 bytes or 4 words that Go's assembler lacks.
var panelCodes = map[string]code{
	"tbl":    {"TBL", 0x4E000000, 0},
	"imul":   {"MUL", 0x4EA09C00, 0},
	"bitSet": {"CMTST", 0x4E208C00, 0}, // bytes of ones where two have a bit in common
	"sdot":   {"SDOT by element", 0x4F80E000, 0},
	"evens":  {"UZP1", 0x4E801800, 0},
	"odds":   {"UZP2", 0x4E805800, 0},
	"ushl":   {"USHL", 0x6EA04400, 0}, // to the right if the count is negative
	"uxt8":   {"UXTL", 0x2F08A400, 0}, // 8 bytes to 8 halfwords
}

func (s *source) panelWord(op string, d, a, b int) {
	c := panelCodes[op]
	s.p("WORD $0x%08x // %s V%d, V%d, V%d", c.bits|uint32(b<<16|a<<5|d), c.name, d, a, b)
}

// sdot writes d += the four bytes of each word of a times those of word index of b.
func (s *source) sdot(d, a, b, index int) {
	bits := panelCodes["sdot"].bits | uint32(index&1<<21|index>>1<<11|b<<16|a<<5|d)
	s.p("WORD $0x%08x // SDOT V%d, V%d, V%d[%d]", bits, d, a, b, index)
}

// insARM64 writes an instruction that is peculiar to panels, or one of any loop.
func (w *panelWriter) insARM64(i int) {
	in := w.ins[i]
	arg := func(k int) int { return w.regARM(in.args[k]) }
	switch in.op {
	case "step": // see the loops
	case "fetch":
		near, _ := w.b.ahead()
		w.p("PRFM %d(R12), PLDL1KEEP", near+in.n)
	case "word":
		w.p("FMOVQ %d(R9), F%d", in.n, w.grant(i))
	case "activations":
		w.p("FMOVQ %d(R3), F%d", in.n, w.grant(i))
	case "halves":
		r := w.grant(i)
		w.p("FMOVD (R10), F%d", r)
		w.word("fcvtl", 4, r, r, 0)
	case "exponents":
		r := w.grant(i)
		w.p("FMOVS (R10), F%d", r)
		w.panelWord("uxt8", r, r, 0)
		w.word("uxtl", 4, r, r, 0)
	case "broadcast":
		r := w.grant(i)
		w.p("FMOVS %d(R3), F%d", in.n, r)
		w.p("VDUP V%d.S[0], V%d.S4", r, r)
	case "lowHalf":
		x := arg(0)
		w.release(i)
		r := w.grant(i)
		w.word("xtn", 4, r, x, 0)
		w.word("fcvtl", 4, r, r, 0)
	case "zero":
		r := w.grant(i)
		w.p("VEOR V%d.B16, V%d.B16, V%d.B16", r, r, r)
	case "dot":
		x, a := arg(1), arg(2)
		w.sdot(w.inherit(i, in.args[0]), x, a, in.n)
		w.release(i)
	case "lookup", "imul", "bitSet":
		x, y := arg(0), arg(1)
		w.release(i)
		w.panelWord(map[string]string{"lookup": "tbl", "imul": "imul", "bitSet": "bitSet"}[in.op], w.grant(i), x, y)
	case "andOr":
		x, m, y := arg(0), arg(1), arg(2)
		r := w.grant(i)
		w.word("and", 4, r, x, m)
		w.word("or", 4, r, r, y)
		w.release(i)
	case "gather":
		x, r := arg(0), w.grant(i)
		for lane := range 4 {
			w.p("VMOV V%d.S[%d], R15", x, lane)
			w.p("ADD R15<<2, R14, R15")
			w.p("VLD1 (R15), V%d.S[%d]", r, lane)
		}
		w.release(i)
	case "gatherPairs":
		x, r := arg(0), w.grant(i)
		for lane := range 2 {
			w.p("VMOV V%d.S[%d], R15", x, lane)
			w.p("ADD R15<<3, R14, R15")
			w.p("VLD1 (R15), V%d.D[%d]", r, lane)
		}
		w.release(i)
	case "upper":
		x := arg(0)
		w.release(i)
		w.p("VEXT $8, V%d.B16, V%d.B16, V%d.B16", x, x, w.grant(i))
	case "evens", "odds":
		x, y := arg(0), arg(1)
		w.release(i)
		w.panelWord(in.op, w.grant(i), x, y)
	case "storeBytes":
		w.p("FMOVQ F%d, %d(R3)", arg(0), in.n)
		w.release(i)
	case "storeScale":
		w.p("FMOVQ F%d, %d(R4)", arg(0), in.n)
		w.release(i)
	case "storeOffset":
		w.p("FMOVQ F%d, %d(R7)", arg(0), in.n)
		w.release(i)
	default:
		w.arm64Ins(i)
	}
}
