package main

import "fmt"

// widening writes the tile of f16 panels that leaves them behind as float32, of one shape: the largest of a tier.
func (s *source) widening() {
	const list = "k int, a *float32, lda int, b *uint16, bnext int, wide *float32, wnext int, c *float32, ldc int, " +
		"add bool, ahead int"
	f := s.declare("tileWiden", list, "tileWiden computes c = a·b, or c += a·b if add, of the rows and panels that "+
		"widenShape says, as the tile of that shape does, panels of c side by side, and sets element (p, j) of panel "+
		"q of wide, q·wnext + p·16 + j, to that of b. What lies ahead bytes behind each line of b is fetched "+
		"meanwhile.")
	shape := map[*tier]string{}
	for _, t := range tiers {
		rows, panels := 6, 1
		if t == avx512 {
			rows, panels = 12, 2
		}
		shape[t] = fmt.Sprintf("return %d, %d\n", rows, panels)
		w := &widenTile{s, newTile(t, 4, rows, panels)}
		s.begin(f, t, w.notes())
		if t == neon {
			w.arm64()
		} else {
			w.amd64()
		}
	}
	const doc = "\n// widenShape is how many rows of a and how many panels tileWiden takes.\n"
	const sign = "func widenShape() (rows, panels int) { "
	const has = "\nif cpu.Current() == cpu.AVX512 {\n"
	s.extra["amd64"] += doc + sign + has + shape[avx512] + "}\n" + shape[avx2] + "}\n"
	s.extra["arm64"] += doc + sign + "\n" + shape[neon] + "}\n"
	s.extra["none"] += "\n" + sign + noAssembly + " }\n"
}

// widenTile is one of them.
type widenTile struct {
	*source
	*tileRegs
}

// amd64: rows 0, 3, 6 and 9 of a begin at SI, R8, R9 and R10, R11 is from one row to the next; b is at DI, what is
// fetched at BX, and R13 is from one panel to the next of both; wide is at DX, R12 from panel to panel.
func (w *widenTile) amd64() {
	perPanel := w.vectors / w.panels
	size := w.t.bytes
	vec := func(r int) string { return fmt.Sprintf("%c%d", map[*tier]byte{avx512: 'Z', avx2: 'Y'}[w.t], r) }
	eachC := func(write func(at, acc string)) {
		w.p("MOVQ %s, DX", w.args["c"])
		w.p("MOVQ %s, BX", w.args["ldc"])
		w.p("SHLQ $2, BX")
		for i := range w.rows {
			for v := range w.vectors {
				write(fmt.Sprintf("%d(DX)", v*size), vec(w.acc(i, v)))
			}
			if i+1 < w.rows {
				w.p("ADDQ BX, DX")
			}
		}
	}
	w.p("CMPB %s, $0", w.args["add"])
	w.p("JEQ zero")
	eachC(func(at, acc string) { w.p("VMOVUPS %s, %s", at, acc) })
	w.p("JMP start")
	w.place("zero")
	for i := range w.rows * w.vectors {
		w.p("%s %s, %s, %s", map[*tier]string{avx512: "VPXORQ", avx2: "VXORPS"}[w.t], vec(i), vec(i), vec(i))
	}
	w.place("start")
	w.p("MOVQ %s, CX", w.args["k"])
	w.p("MOVQ %s, SI", w.args["a"])
	w.p("MOVQ %s, R11", w.args["lda"])
	w.p("SHLQ $2, R11")
	bases := []string{"SI", "R8", "R9", "R10"}[:(w.rows+2)/3]
	w.p("LEAQ (R11)(R11*2), AX")
	for i := 1; i < len(bases); i++ {
		w.p("LEAQ (%s)(AX*1), %s", bases[i-1], bases[i])
	}
	w.p("MOVQ %s, DI", w.args["b"])
	w.p("MOVQ %s, R13", w.args["bnext"])
	w.p("SHLQ $1, R13")
	w.p("MOVQ %s, BX", w.args["ahead"])
	w.p("ADDQ DI, BX")
	w.p("MOVQ %s, DX", w.args["wide"])
	w.p("MOVQ %s, R12", w.args["wnext"])
	w.p("SHLQ $2, R12")
	step := func(p int) {
		for q := range w.panels {
			if p%2 == 0 { // once for each line
				w.p("PREFETCHT1 %d(BX)%s", 32*p, []string{"", "(R13*1)"}[q])
			}
			for i := range perPanel {
				r := vec(w.fixed(q*perPanel + i))
				w.p("VCVTPH2PS %d(DI)%s, %s", 32*p+i*size/2, []string{"", "(R13*1)"}[q], r)
				w.p("VMOVUPS %s, %d(DX)%s", r, 64*p+i*size, []string{"", "(R12*1)"}[q])
			}
		}
		for i := range w.rows {
			r := vec(w.moving(p*w.rows + i))
			w.p("VBROADCASTSS %d(%s)%s, %s", 4*p, bases[i/3], []string{"", "(R11*1)", "(R11*2)"}[i%3], r)
			for v := range w.vectors {
				w.p("VFMADD231PS %s, %s, %s", vec(w.fixed(v)), r, vec(w.acc(i, v)))
			}
		}
	}
	advance := func(n int) {
		for _, base := range bases {
			w.p("ADDQ $%d, %s", 4*n, base)
		}
		w.p("ADDQ $%d, DI", 32*n)
		w.p("ADDQ $%d, BX", 32*n)
		w.p("ADDQ $%d, DX", 64*n)
	}
	const unroll = 4
	w.p("SUBQ $%d, CX", unroll)
	w.p("JLT rest")
	w.place("loop")
	for p := range unroll {
		step(p)
	}
	advance(unroll)
	w.p("SUBQ $%d, CX", unroll)
	w.p("JGE loop")
	w.place("rest")
	w.p("ADDQ $%d, CX", unroll)
	w.p("JEQ done")
	w.place("single")
	step(0)
	advance(1)
	w.p("DECQ CX")
	w.p("JNE single")
	w.place("done")
	eachC(func(at, acc string) { w.p("VMOVUPS %s, %s", acc, at) })
	w.p("VZEROUPPER")
	w.p("RET")
}

// arm64: rows of a begin at R1, R2, …; b is at R13, what is fetched at R14, wide at R15.
func (w *widenTile) arm64() {
	eachC := func(write func(at string, acc int)) {
		w.p("MOVD %s, R1", w.args["c"])
		w.p("MOVD %s, R2", w.args["ldc"])
		w.p("LSL $2, R2")
		for i := range w.rows {
			for v := range w.vectors {
				write(fmt.Sprintf("%d(R1)", v*16), w.acc(i, v))
			}
			if i+1 < w.rows {
				w.p("ADD R2, R1")
			}
		}
	}
	w.p("MOVBU %s, R0", w.args["add"])
	w.p("CBZ R0, zero")
	eachC(func(at string, acc int) { w.p("FMOVQ %s, F%d", at, acc) })
	w.p("JMP start")
	w.place("zero")
	for i := range w.rows * w.vectors {
		w.p("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	w.place("start")
	w.p("MOVD %s, R0", w.args["k"])
	w.p("CBZ R0, done")
	w.p("MOVD %s, R1", w.args["a"])
	w.p("MOVD %s, R8", w.args["lda"])
	w.p("LSL $2, R8")
	for i := 1; i < w.rows; i++ {
		w.p("ADD R8, R%d, R%d", i, i+1)
	}
	w.p("MOVD %s, R13", w.args["b"])
	w.p("MOVD %s, R14", w.args["ahead"])
	w.p("ADD R13, R14")
	w.p("MOVD %s, R15", w.args["wide"])
	w.place("loop")
	for i := range w.rows {
		w.p("FMOVS.P 4(R%d), F%d", i+1, w.fixed(i))
	}
	w.p("PRFM (R14), PLDL2KEEP")
	for v := range w.vectors {
		first := w.rows * (w.vectors + 1)
		r := first + v%(w.registers-first)
		w.p("FMOVD %d(R13), F%d", 8*v, r)
		w.word("fcvtl", 4, r, r, 0)
		w.p("FMOVQ F%d, %d(R15)", r, 16*v)
		for i := range w.rows {
			w.word("fmla0", 4, w.acc(i, v), r, w.fixed(i))
		}
	}
	w.p("ADD $32, R13")
	w.p("ADD $32, R14")
	w.p("ADD $64, R15")
	w.p("SUBS $1, R0")
	w.p("BNE loop")
	w.place("done")
	eachC(func(at string, acc int) { w.p("FMOVQ F%d, %s", acc, at) })
	w.p("RET")
}
