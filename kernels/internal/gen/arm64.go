package main

import "fmt"

// A loop on arm64 keeps its pointers in R0, R1, …, the number of elements left
// in R9, the address of the accumulators in R10 and of the constants in R11.

// arm64 writes the loop around the instructions.
func (w *writer) arm64(units int) {
	for i, p := range w.loop.pointers() {
		w.p("MOVD %s, R%d", w.args[p.name], i)
	}
	w.p("MOVD %s, R9", w.args["n"])
	if len(w.constOf) > 0 {
		w.p("MOVD $consts<>(SB), R11")
	}
	for i := range w.values {
		v := &w.values[i]
		at, scalar := w.args[v.name]
		switch {
		case v.kind == konst && v.reg >= 0:
			w.p("FMOVQ %d(R11), F%d", w.constOffset(v), v.reg)
		case v.kind == pinned && scalar:
			w.p("FMOV%s %s, F%d", w.precision(), at, v.reg)
			w.p("VDUP V%d.%s[0], V%d.%s", v.reg, w.precision(), v.reg, w.arrangement())
		}
	}
	w.accumulatorsARM("load")
	w.p("CBZ R9, end")
	w.place("loop")
	for i := range w.ins {
		w.arm64Ins(i)
	}
	for i, p := range w.loop.pointers() {
		w.p("ADD $%d, R%d", units*w.width*p.bytes, i)
	}
	w.p("SUBS $%d, R9", units*w.width)
	w.p("BNE loop")
	w.place("end")
	w.accumulatorsARM("store")
	w.p("RET")
}

func (w *writer) accumulatorsARM(what string) {
	if !w.loop.accumulates {
		return
	}
	if what == "load" {
		w.p("MOVD %s, R10", w.args["lanes"])
	}
	for unit := range 16 / w.width {
		acc := w.values[w.named(fmt.Sprintf("acc%d", unit))].reg
		if what == "load" {
			w.p("FMOVQ %d(R10), F%d", unit*16, acc)
		} else {
			w.p("FMOVQ F%d, %d(R10)", acc, unit*16)
		}
	}
}

func (w *writer) arrangement() string { return arrangement(w.elem) }

func arrangement(elem int) string {
	if elem == 8 {
		return "D2"
	}
	return "S4"
}

// A code is an instruction on whole vectors that Go's assembler lacks. wide is
// the bit that makes it one of two 64-bit lanes.
type code struct {
	name string
	bits uint32
	wide uint32
}

const sz = 1 << 22

var arm64Codes = map[string]code{
	"add":     {"FADD", 0x4E20D400, sz},
	"sub":     {"FSUB", 0x4EA0D400, sz},
	"mul":     {"FMUL", 0x6E20DC00, sz},
	"div":     {"FDIV", 0x6E20FC00, sz},
	"min":     {"FMIN", 0x4EA0F400, sz},
	"max":     {"FMAX", 0x4E20F400, sz},
	"fma":     {"FMLA", 0x4E20CC00, sz},
	"fnma":    {"FMLS", 0x4EA0CC00, sz},
	"sqrt":    {"FSQRT", 0x6EA1F800, sz},
	"and":     {"AND", 0x4E201C00, 0},
	"or":      {"ORR", 0x4EA01C00, 0},
	"xor":     {"EOR", 0x6E201C00, 0},
	"choose":  {"BSL", 0x6E601C00, 0},
	"not":     {"NOT", 0x6E205800, 0},
	"iadd":    {"ADD", 0x4EA08400, sz},
	"isub":    {"SUB", 0x6EA08400, sz},
	"toFloat": {"SCVTF", 0x4E21D800, sz},
	"eq":      {"FCMEQ", 0x4E20E400, sz},
	"lt":      {"FCMGT", 0x6EA0E400, sz}, // with swapped operands
	"le":      {"FCMGE", 0x6E20E400, sz},
	"shl":     {"SHL", 0x4F005400, 0},
	"shr":     {"USHR", 0x6F000400, 0},
	"sar":     {"SSHR", 0x4F000400, 0},
	"zip1":    {"ZIP1", 0x4E803800, sz},
	"zip2":    {"ZIP2", 0x4E807800, sz},
	"fmla0":   {"FMLA by element 0", 0x4F801000, sz},
	"fcvtl":   {"FCVTL", 0x0E217800, 0}, // 4 halves to 4 singles
	"fcvtn":   {"FCVTN", 0x0E216800, 0},
	"uxtl":    {"UXTL", 0x2F10A400, 0}, // 4 halfwords to 4 words
	"xtn":     {"XTN", 0x0E612800, 0},  // 4 words to 4 halfwords
	"xtn8":    {"XTN", 0x0E212800, 0},  // 8 halfwords to 8 bytes
}

// word writes an instruction as a number: d = a op b; with one operand b is 0.
func (s *source) word(op string, elem, d, a, b int) {
	c := arm64Codes[op]
	bits := c.bits
	if elem == 8 {
		bits |= c.wide
	}
	s.p("WORD $0x%08x // %s V%d, V%d, V%d of %d-byte lanes", bits|uint32(b<<16|a<<5|d), c.name, d, a, b, elem)
}

// elementCodes are instructions with one lane of the second operand.
var elementCodes = map[string]code{
	"fma":  {"FMLA", 0x4F801000, 0},
	"mul":  {"FMUL", 0x4F809000, 0},
	"sdot": {"SDOT", 0x4F80E000, 0}, // of 4 bytes each
}

// element writes d = a op b[index], or d += a·b[index], of 4-byte lanes.
func (s *source) element(op string, d, a, b, index int) {
	c := elementCodes[op]
	bits := c.bits | uint32(index&1<<21|index>>1<<11|b<<16|a<<5|d)
	s.p("WORD $0x%08x // %s V%d, V%d, V%d[%d] of 4-byte lanes", bits, c.name, d, a, b, index)
}

// shiftARM writes a shift of every lane by n bits.
func (s *source) shiftARM(op string, elem, d, a, n int) {
	field := 16*elem - n // twice the width of a lane, minus n
	if op == "shl" {
		field = 8*elem + n
	}
	c := arm64Codes[op]
	s.p("WORD $0x%08x // %s V%d, V%d, $%d of %d-byte lanes", c.bits|uint32(field<<16|a<<5|d), c.name, d, a, n, elem)
}

func (s *source) moveARM(d, a int) {
	if d != a {
		s.p("VORR V%d.B16, V%d.B16, V%d.B16", a, a, d)
	}
}

// placeARM is the memory that a pointer means in this turn.
func (w *writer) placeARM(ptr int) string {
	return fmt.Sprintf("%d(R%d)", w.unit*w.width*w.loop.pointers()[ptr].bytes, ptr)
}

// regARM is the register of v, into which a constant may have to be loaded.
func (w *writer) regARM(v val) int {
	x := w.values[v]
	if x.reg >= 0 {
		return x.reg
	}
	w.p("FMOVQ %d(R11), F%d", w.constOffset(&x), w.scratch)
	return w.scratch
}

func (w *writer) arm64Ins(i int) {
	in := w.ins[i]
	arg := func(k int) int { return w.regARM(in.args[k]) }
	switch in.op {
	case "unit":
		w.unit = in.n
	case "load":
		w.p("FMOVQ %s, F%d", w.placeARM(in.n), w.grant(i))
	case "loadF16", "loadU16":
		r := w.grant(i)
		w.p("FMOVD %s, F%d", w.placeARM(in.n), r)
		w.word(map[string]string{"loadF16": "fcvtl", "loadU16": "uxtl"}[in.op], 4, r, r, 0)
	case "store":
		w.p("FMOVQ F%d, %s", arg(0), w.placeARM(in.n))
		w.release(i)
	case "storeF16", "storeU16":
		w.word(map[string]string{"storeF16": "fcvtn", "storeU16": "xtn"}[in.op], 4, w.scratch, arg(0), 0)
		w.p("FMOVD F%d, %s", w.scratch, w.placeARM(in.n))
		w.release(i)
	case "storeBools":
		w.word("xtn", 4, w.scratch, arg(0), 0)
		w.word("xtn8", 4, w.scratch, w.scratch, 0)
		w.p("WORD $0x%08x // USHR V%d.8B, V%d.8B, $7", 0x2F090400|w.scratch<<5|w.scratch, w.scratch, w.scratch)
		w.p("FMOVS F%d, %s", w.scratch, w.placeARM(in.n))
		w.release(i)
	case "add", "sub", "mul", "div", "min", "max", "and", "or", "xor", "iadd", "isub", "eq":
		x, y := arg(0), arg(1)
		w.release(i)
		w.word(in.op, w.elem, w.grant(i), x, y)
	case "lt", "le":
		x, y := arg(0), arg(1)
		w.release(i)
		w.word(in.op, w.elem, w.grant(i), y, x)
	case "ne":
		x, y := arg(0), arg(1)
		w.release(i)
		r := w.grant(i)
		w.word("eq", w.elem, r, x, y)
		w.word("not", w.elem, r, r, 0)
	case "sqrt", "toFloat":
		x := arg(0)
		w.release(i)
		w.word(in.op, w.elem, w.grant(i), x, 0)
	case "shl", "shr", "sar":
		x := arg(0)
		w.release(i)
		w.shiftARM(in.op, w.elem, w.grant(i), x, in.n)
	case "fma", "fnma":
		w.overwrites(i, in.op, in.args[2], in.args[0], in.args[1])
	case "choose":
		w.overwrites(i, in.op, in.args[0], in.args[1], in.args[2])
	case "moveInto":
		w.moveARM(arg(0), arg(1))
		w.release(i)
	case "loadTwice":
		r := w.grant(i)
		w.p("FMOVD %s, F%d", w.placeARM(in.n), r)
		w.word("zip1", 4, r, r, r)
	case "swapPairs":
		x := arg(0)
		w.release(i)
		w.p("VREV64 V%d.S4, V%d.S4", x, w.grant(i))
	case "addInto":
		w.word("add", w.elem, arg(0), arg(0), arg(1))
		w.release(i)
	case "fmaInto":
		w.word("fma", w.elem, arg(0), arg(1), arg(2))
		w.release(i)
	default:
		panic("arm64: no instruction " + in.op)
	}
}

// overwrites writes an instruction whose result replaces its operand d.
func (w *writer) overwrites(i int, op string, d, a, b val) {
	var r int
	switch {
	case w.dies(d, i):
		r = w.inherit(i, d)
	case w.inMemory(d):
		r = w.grant(i)
		w.p("FMOVQ %d(R11), F%d", w.constOffset(&w.values[d]), r)
	default:
		r = w.grant(i)
		w.moveARM(r, w.values[d].reg)
	}
	x, y := w.regARM(a), w.regARM(b)
	w.word(op, w.elem, r, x, y)
	w.release(i)
}
