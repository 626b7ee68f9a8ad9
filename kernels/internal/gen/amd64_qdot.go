package main

import "fmt"

// insAMD64 writes an instruction that is peculiar to panels, or one of any loop.
func (w *panelWriter) insAMD64(i int) {
	in := w.ins[i]
	odd := "R10"
	if w.b.parts() == 1 {
		odd = "R9"
	}
	emit := func(format string, args ...any) {
		w.release(i)
		w.p(format+", %s", append(args, w.vec(w.grant(i)))...)
	}
	arg := func(k int) string { return w.operand(in.args[k], false) }
	switch in.op {
	case "step": // see the loops
	case "fetch":
		w.fetchAMD64(in.n)
	case "word":
		emit("VMOVUPS %d(R9)", in.n)
	case "halves":
		emit("VCVTPH2PS (%s)", odd)
	case "exponents":
		emit("VPMOVZXBD (%s)", odd)
	case "broadcast":
		emit("VBROADCASTSS %d(DI)", in.n)
	case "lowHalf":
		x := arg(0)
		w.release(i)
		r := w.grant(i)
		dst, half := w.vec(r), w.half(r)
		if w.t == avx512 {
			w.p("VPMOVDW %s, %s", x, half)
		} else {
			w.p("VPSLLD $16, %s, %s", x, dst)
			w.p("VPSRLD $16, %s, %s", dst, dst)
			w.p("VPACKUSDW %s, %s, %s", dst, dst, dst)
			w.p("VPERMQ $0x08, %s, %s", dst, dst)
		}
		w.p("VCVTPH2PS %s, %s", half, dst)
	case "zero":
		if r := w.grant(i); r > 15 {
			w.p("VPXORD Z%d, Z%d, Z%d", r, r, r)
		} else {
			w.p("VPXOR X%d, X%d, X%d", r, r, r)
		}
	case "copy":
		emit("VMOVUPS %s", w.operand(in.args[0], true))
	case "mulBroadcast":
		x := arg(0)
		w.release(i)
		w.p("VMULPS.BCST %d(DI), %s, %s", in.n, x, w.vec(w.grant(i)))
	case "shlBroadcast":
		emit("VPSLLD.BCST $%d, %d(DI)", in.n&31, in.n>>5)
	case "broadcastLocal":
		emit("VBROADCASTSS %d(SP)", in.n)
	case "dot", "dotLocal":
		x := arg(1)
		acc := w.vec(w.inherit(i, in.args[0]))
		w.p("VPDPBUSD.BCST %d(%s), %s, %s", in.n, map[string]string{"dot": "DI", "dotLocal": "SP"}[in.op], x, acc)
		w.release(i)
	case "dot256":
		x, y := w.values[in.args[1]].reg, w.values[in.args[2]].reg
		w.dot256(y, x, w.inherit(i, in.args[0]))
		w.release(i)
	case "multiplyBytes": // signed activations, unsigned weights
		emit("VPMADDUBSW %s, %s", arg(0), arg(1))
	case "addPairs":
		emit("VPMADDWD %s, %s", w.operand(in.args[1], true), arg(0))
	case "add16":
		emit("VPADDW %s, %s", arg(0), arg(1))
	case "blendBit":
		x, y := arg(0), arg(1)
		w.p("VPTESTMB %s, %s, K1", w.operand(in.args[3], true), arg(2))
		w.release(i)
		w.p("VPBLENDMB %s, %s, K1, %s", y, x, w.vec(w.grant(i)))
	case "blendTop":
		emit("VPBLENDVB %s, %s, %s", arg(2), arg(1), arg(0))
	case "sub16":
		emit("VPSUBW %s, %s", arg(1), w.operand(in.args[0], false))
	case "shl16", "shr16", "sar16":
		emit(map[string]string{"shl16": "VPSLLW", "shr16": "VPSRLW", "sar16": "VPSRAW"}[in.op]+" $%d, %s", in.n, arg(0))
	case "blend16": // the lower half of a lane from the first
		emit("VPBLENDW $0xaa, %s, %s", arg(1), arg(0))
	case "absolute":
		emit("VPABSB %s", arg(0))
	case "sign":
		emit("VPSIGNB %s, %s", arg(0), arg(1))
	case "lookup":
		emit("VPSHUFB %s, %s", arg(1), arg(0))
	case "permute":
		emit("VPERMD %s, %s", arg(1), arg(0))
	case "imul":
		emit("VPMULLD %s, %s", w.operand(in.args[1], true), arg(0))
	case "andOr":
		w.andOrAMD64(i)
	case "select":
		w.selectAMD64(i)
	case "gather", "gatherPairs":
		w.gatherAMD64(i)
	case "upper":
		x := arg(0)
		w.release(i)
		name := map[*tier]string{avx512: "VEXTRACTI64X4", avxvnni: "VEXTRACTI128", avx2: "VEXTRACTI128"}[w.t]
		w.p("%s $1, %s, %s", name, x, w.half(w.grant(i)))
	case "permuteQuads":
		if w.t == avx512 {
			emit("VPERMQ %s, %s", arg(0), arg(1))
		} else {
			emit("VPERMQ $0xd8, %s", arg(0))
		}
	case "evens":
		emit("VSHUFPS $0x88, %s, %s", arg(1), arg(0))
	case "odds":
		emit("VSHUFPS $0xdd, %s, %s", arg(1), arg(0))
	case "storeBytes":
		w.p("VMOVUPS %s, %d(DI)", arg(0), in.n)
		w.release(i)
	case "storeScale":
		w.p("VMOVUPS %s, %d(DX)", arg(0), in.n)
		w.release(i)
	case "storeOffset":
		w.p("VMOVUPS %s, %d(R8)", arg(0), in.n)
		w.release(i)
	default:
		w.amd64Ins(i)
	}
}

// gatherAMD64 writes the look-up of 4 bytes for each lane or of 8 for those of the first half.
func (w *panelWriter) gatherAMD64(i int) {
	in := w.ins[i]
	index, r := w.values[in.args[0]].reg, w.grant(i) // which are not the same
	name, lanes := "VPGATHERDD", w.vec(index)
	if in.op == "gatherPairs" {
		name, lanes = "VPGATHERDQ", w.half(index)
	}
	at := fmt.Sprintf("(%s)(%s*%d)", w.pointsRegister(), lanes, w.b.f.point)
	if w.t == avx512 {
		w.p("KXNORW K1, K1, K1")
		w.p("%s %s, K1, %s", name, at, w.vec(r))
	} else {
		mask := w.vec(w.scratch)
		w.p("VPCMPEQD %s, %s, %s", mask, mask, mask)
		w.p("%s %s, %s, %s", name, mask, at, w.vec(r))
	}
	w.release(i)
}

// andOrAMD64 writes x&m | y.
func (w *panelWriter) andOrAMD64(i int) {
	x, m, y := w.ins[i].args[0], w.ins[i].args[1], w.ins[i].args[2]
	from, mask, other := w.operand(x, false), w.operand(m, true), w.operand(y, false)
	var dst string
	if w.dies(x, i) {
		dst = w.vec(w.inherit(i, x))
	} else {
		dst = w.vec(w.grant(i))
	}
	if w.t == avx512 {
		if dst != from {
			w.p("VMOVUPS %s, %s", from, dst)
		}
		w.p("VPTERNLOGD $0xec, %s, %s, %s", mask, other, dst) // bit by bit, dst & mask | other
	} else {
		w.p("VPAND %s, %s, %s", mask, from, dst)
		w.p("VPOR %s, %s, %s", other, dst, dst)
	}
	w.release(i)
}

// selectAMD64 writes x&m | y&^m.
func (w *panelWriter) selectAMD64(i int) {
	x, m, y := w.ins[i].args[0], w.ins[i].args[1], w.ins[i].args[2]
	from, mask, other := w.operand(x, false), w.operand(m, true), w.operand(y, false)
	var dst string
	if w.dies(x, i) {
		dst = w.vec(w.inherit(i, x))
	} else {
		dst = w.vec(w.grant(i))
		w.p("VMOVUPS %s, %s", from, dst)
	}
	w.p("VPTERNLOGD $0xe4, %s, %s, %s", mask, other, dst)
	w.release(i)
}

// fetchAMD64 fetches ahead the line that is so far behind R11.
func (w *panelWriter) fetchAMD64(n int) {
	near, far := w.b.ahead()
	into := "PREFETCHT0"
	if w.b.vec && near <= passing {
		into = "PREFETCHNTA"
	}
	w.p("%s %d(R11)", into, near+n)
	if far > 0 {
		w.p("PREFETCHT1 %d(R11)", far+n)
	}
}

// turnAMD64 puts the activations of a block into local memory, transposed as some format wants them.
func (w *panelWriter) turnAMD64() {
	x := fmt.Sprintf("X%d", w.scratch)
	order := fmt.Sprintf("X%d", w.values[w.b.table(turnedOrder)].reg)
	for i := range w.b.f.block / 16 {
		w.p("VMOVUPS %d(DI), %s", i/2*recordBytes+i%2*16, x)
		w.p("VPSHUFB %s, %s, %s", order, x, x)
		w.p("VMOVUPS %s, %d(SP)", x, 16*i)
	}
}
