package main

import "fmt"

// pointerRegs64 hold the pointers of a loop; AX counts elements up to CX, R11
// points to the accumulators.
var pointerRegs64 = []string{"DI", "SI", "DX", "R8", "R9", "R10"}

// amd64 writes the loop around the instructions.
func (w *writer) amd64(units int) {
	for i, p := range w.loop.pointers() {
		w.p("MOVQ %s, %s", w.args[p.name], pointerRegs64[i])
	}
	w.p("MOVQ %s, CX", w.args["n"])
	for i := range w.values {
		v := &w.values[i]
		at, scalar := w.args[v.name]
		switch {
		case v.kind == konst && v.reg >= 0 && w.t == avx512:
			w.p("VBROADCASTSD consts<>+%d(SB), %s", w.constOffset(v), w.vec(v.reg))
		case v.kind == konst && v.reg >= 0:
			w.p("VMOVUPS consts<>+%d(SB), %s", w.constOffset(v), w.vec(v.reg))
		case v.kind == pinned && scalar:
			w.p("VBROADCASTS%s %s, %s", w.precision(), at, w.vec(v.reg))
		}
	}
	w.accumulators("load")
	end := "end"
	w.p("XORQ AX, AX")
	w.p("TESTQ CX, CX")
	w.p("JEQ %s", end)
	w.place("loop")
	for _, ptr := range w.loop.prefetch {
		w.p("PREFETCHT0 %d(%s)(AX*%d)", prefetchAhead, pointerRegs64[ptr], w.loop.pointers()[ptr].bytes)
	}
	for i := range w.ins {
		w.amd64Ins(i)
	}
	w.p("ADDQ $%d, AX", units*w.width)
	w.p("CMPQ AX, CX")
	w.p("JLT loop")
	w.place(end)
	w.accumulators("store")
	w.p("VZEROUPPER")
	w.p("RET")
}

// accumulators loads or stores the 16 lanes.
func (w *writer) accumulators(what string) {
	if !w.loop.accumulates {
		return
	}
	if what == "load" {
		w.p("MOVQ %s, R11", w.args["lanes"])
	}
	for unit := range 16 / w.width {
		acc := w.vec(w.values[w.named(fmt.Sprintf("acc%d", unit))].reg)
		if what == "load" {
			w.p("VMOVUPS %d(R11), %s", unit*w.t.bytes, acc)
		} else {
			w.p("VMOVUPS %s, %d(R11)", acc, unit*w.t.bytes)
		}
	}
}

func (w *writer) precision() string {
	if w.elem == 8 {
		return "D"
	}
	return "S"
}

// letter is the last one of an integer instruction.
func (w *writer) letter() string {
	if w.elem == 8 {
		return "Q"
	}
	return "D"
}

// operand is v as an operand; one that may stand in memory need not be loaded.
func (w *writer) operand(v val, mayBeMemory bool) string {
	x := w.values[v]
	if x.reg >= 0 {
		if x.kind == mask && w.t == avx512 {
			return fmt.Sprintf("K%d", x.reg)
		}
		return w.vec(x.reg)
	}
	at := w.constOffset(&x)
	if mayBeMemory {
		return fmt.Sprintf("consts<>+%d(SB)", at)
	}
	w.p("VMOVUPS consts<>+%d(SB), %s", at, w.vec(w.scratch))
	return w.vec(w.scratch)
}

// constOffset is the place of a constant in the pool.
func (w *writer) constOffset(v *value) int {
	if v.wide {
		return w.constant(v.bits, 8)
	}
	return w.constant(v.bits, w.elem)
}

func (w *writer) inMemory(v val) bool { return w.values[v].kind == konst && w.values[v].reg < 0 }

// place64 is the memory that a pointer means in this turn.
func (w *writer) place64(ptr int) string {
	size := w.loop.pointers()[ptr].bytes
	return fmt.Sprintf("%d(%s)(AX*%d)", w.unit*w.width*size, pointerRegs64[ptr], size)
}

// half is the lower half of a register, which holds half as wide elements.
func (w *writer) half(r int) string {
	if w.t == avx512 {
		return fmt.Sprintf("Y%d", r)
	}
	return fmt.Sprintf("X%d", r)
}

var amd64Names = map[string]string{
	"add": "VADDP", "sub": "VSUBP", "mul": "VMULP", "div": "VDIVP", "min": "VMINP", "max": "VMAXP",
	"and": "VANDP", "or": "VORP", "xor": "VXORP", "scalef": "VSCALEFP", "iadd": "VPADD", "isub": "VPSUB",
	"shl": "VPSLL", "shr": "VPSRL", "sar": "VPSRA",
}

var predicates = map[string]int{"eq": 0, "ne": 4, "lt": 17, "le": 18}

func (w *writer) amd64Ins(i int) {
	in := w.ins[i]
	name := amd64Names[in.op] + w.precision()
	switch in.op {
	case "unit":
		w.unit = in.n
	case "load", "loadF16", "loadU16":
		name := map[string]string{"load": "VMOVUPS", "loadF16": "VCVTPH2PS", "loadU16": "VPMOVZXWD"}[in.op]
		w.p("%s %s, %s", name, w.place64(in.n), w.vec(w.grant(i)))
	case "store":
		w.p("VMOVUPS %s, %s", w.operand(in.args[0], false), w.place64(in.n))
		w.release(i)
	case "storeF16":
		w.p("VCVTPS2PH $0, %s, %s", w.operand(in.args[0], false), w.place64(in.n))
		w.release(i)
	case "storeU16", "storeBools":
		w.storeNarrow(in)
		w.release(i)
	case "add", "mul", "and", "or", "xor", "sub", "div", "min", "max", "scalef":
		w.binary64(i, name, in.op == "add" || in.op == "mul" || in.op == "and" || in.op == "or" || in.op == "xor")
	case "iadd", "isub":
		w.binary64(i, amd64Names[in.op]+w.letter(), in.op == "iadd")
	case "shl", "shr", "sar":
		x := w.operand(in.args[0], false)
		w.release(i)
		w.p("%s%s $%d, %s, %s", amd64Names[in.op], w.letter(), in.n, x, w.vec(w.grant(i)))
	case "sqrt":
		x := w.operand(in.args[0], true)
		w.release(i)
		w.p("VSQRTP%s %s, %s", w.precision(), x, w.vec(w.grant(i)))
	case "toFloat":
		x := w.operand(in.args[0], false)
		w.release(i)
		w.p("%s %s, %s", map[int]string{4: "VCVTDQ2PS", 8: "VCVTQQ2PD"}[w.elem], x, w.vec(w.grant(i)))
	case "eq", "ne", "lt", "le":
		y, x := w.operand(in.args[1], true), w.operand(in.args[0], false)
		w.release(i)
		w.grant(i)
		w.p("VCMPP%s $%d, %s, %s, %s", w.precision(), predicates[in.op], y, x, w.operand(in.dst, false))
	case "choose":
		m, no := w.operand(in.args[0], false), w.operand(in.args[2], false)
		yes := w.operand(in.args[1], true)
		w.release(i)
		dst := w.vec(w.grant(i))
		if w.t == avx512 {
			w.p("VBLENDMP%s %s, %s, %s, %s", w.precision(), yes, no, m, dst)
		} else {
			w.p("VBLENDVP%s %s, %s, %s, %s", w.precision(), m, yes, no, dst)
		}
	case "fma", "fnma":
		w.fma64(i, map[string]string{"fma": "VFMADD", "fnma": "VFNMADD"}[in.op])
	case "moveInto":
		w.p("VMOVAPS %s, %s", w.operand(in.args[1], false), w.operand(in.args[0], false))
		w.release(i)
	case "loadTwice":
		r := w.vec(w.grant(i))
		w.p("VPMOVZXDQ %s, %s", w.place64(in.n), r)
		w.p("VMOVSLDUP %s, %s", r, r)
	case "swapPairs":
		x := w.operand(in.args[0], false)
		w.release(i)
		w.p("VPERMILPS $0xb1, %s, %s", x, w.vec(w.grant(i)))
	case "addInto":
		acc := w.operand(in.args[0], false)
		w.p("VADDP%s %s, %s, %s", w.precision(), w.operand(in.args[1], true), acc, acc)
		w.release(i)
	case "fmaInto":
		x := w.operand(in.args[1], false)
		w.p("VFMADD231P%s %s, %s, %s", w.precision(), w.operand(in.args[2], true), x, w.operand(in.args[0], false))
		w.release(i)
	default:
		panic("amd64: no instruction " + in.op)
	}
}

// binary64 writes x op y; memory can be y only.
func (w *writer) binary64(i int, name string, commutes bool) {
	x, y := w.ins[i].args[0], w.ins[i].args[1]
	if commutes && w.inMemory(x) {
		x, y = y, x
	}
	first := w.operand(x, false)
	second := w.operand(y, true)
	w.release(i)
	w.p("%s %s, %s, %s", name, second, first, w.vec(w.grant(i)))
}

// fma64 writes ±x·y + z. One operand is overwritten: 231 overwrites z, 213 and
// 132 overwrite a factor.
func (w *writer) fma64(i int, name string) {
	x, y, z := w.ins[i].args[0], w.ins[i].args[1], w.ins[i].args[2]
	if !w.dies(x, i) && w.dies(y, i) || w.inMemory(x) {
		x, y = y, x
	}
	end := "P" + w.precision()
	switch {
	case w.dies(z, i):
		a, b := w.operand(x, false), w.operand(y, true)
		acc := w.vec(w.inherit(i, z))
		w.p("%s231%s %s, %s, %s", name, end, b, a, acc)
	case w.dies(x, i) && !w.inMemory(y):
		c, b := w.operand(z, true), w.operand(y, false)
		w.p("%s213%s %s, %s, %s", name, end, c, b, w.vec(w.inherit(i, x)))
	case w.dies(x, i):
		c, b := w.operand(z, false), w.operand(y, true)
		w.p("%s132%s %s, %s, %s", name, end, b, c, w.vec(w.inherit(i, x)))
	default:
		acc := w.vec(w.grant(i))
		if w.inMemory(z) {
			w.p("VMOVUPS consts<>+%d(SB), %s", w.constOffset(&w.values[z]), acc)
		} else {
			w.p("VMOVAPS %s, %s", w.operand(z, false), acc)
		}
		a, b := w.operand(x, false), w.operand(y, true)
		w.p("%s231%s %s, %s, %s", name, end, b, a, acc)
	}
	w.release(i)
}

// storeNarrow stores the low words of the lanes, or 1 for a true lane of a mask
// and 0 for a false one.
func (w *writer) storeNarrow(in ins) {
	x, s := w.operand(in.args[0], false), fmt.Sprintf("X%d", w.scratch)
	switch {
	case w.t == avx512 && in.op == "storeU16":
		w.p("VPMOVDW %s, %s", x, w.place64(in.n))
	case w.t == avx512:
		w.p("VPMOVM2B %s, %s", x, s)
		w.p("VPABSB %s, %s", s, s)
		w.p("VMOVDQU8 %s, %s", s, w.place64(in.n))
	case in.op == "storeU16":
		w.p("VEXTRACTI128 $1, %s, %s", x, s)
		w.p("VPACKUSDW %s, %s, %s", s, w.half(w.values[in.args[0]].reg), s)
		w.p("VMOVDQU %s, %s", s, w.place64(in.n))
	default:
		w.p("VEXTRACTI128 $1, %s, %s", x, s)
		w.p("VPACKSSDW %s, %s, %s", s, w.half(w.values[in.args[0]].reg), s)
		w.p("VPACKSSWB %s, %s, %s", s, s, s)
		w.p("VPABSB %s, %s", s, s)
		w.p("VMOVQ %s, %s", s, w.place64(in.n))
	}
}
