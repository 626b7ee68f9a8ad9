package main

import (
	"fmt"
	"math/bits"
)

// maxDotRows is how many rows share what dot16 has transposed.
const maxDotRows = 4

// transposed writes the kernels that read 16 rows of a row-major matrix and turn
// them into vectors of one element of every row: for the product with a few
// rows, and for packing. A cache line is read at once wherever a vector is as
// large: rows that are a power of two apart would drive each other's lines out
// of the cache before the rest is read.
func (s *source) transposed() {
	for rows := 1; rows <= maxDotRows; rows++ {
		name := fmt.Sprintf("dot16x%dF32", rows)
		f := s.declare(name, "k int, x *float32, ldx int, w *float32, ldw int, c *float32, add bool",
			fmt.Sprintf("%s computes c[16i+j] = (row i of x)·(row j of w), or adds it, for %d rows of x and 16 of w: "+
				"a chain of fused multiply-adds over k, a multiple of 16.", name, rows))
		s.transposedAMD64(f, avx512, rows)
		s.transposedAMD64(f, avx2, rows)
		s.transposedARM64(f, rows)
	}
	f := s.declare("pack16F32", "k int, panel, w *float32, ldw int",
		"pack16F32 sets panel[16p+j] to element p of row j of w for 16 rows and k elements, a multiple of 16.")
	s.transposedAMD64(f, avx512, 0)
	s.transposedAMD64(f, avx2, 0)
	s.transposedARM64(f, 0)
}

// A network hands out vector registers to the steps of a transposition.
type network struct {
	*source
	vec  string
	free []int
}

// pair replaces registers a and b by the results of two instructions on them.
func (n *network) pair(low, high string, a, b int) (int, int) {
	c := n.free[0]
	n.p("%s%s%d, %s%d, %s%d", low, n.vec, b, n.vec, a, n.vec, c)
	n.p("%s%s%d, %s%d, %s%d", high, n.vec, b, n.vec, a, n.vec, b)
	n.free = append(n.free[1:], a)
	return c, b
}

// square transposes a square of 4-byte elements, as many vectors as elements in
// one; at lists their registers.
func (n *network) square(at []int) {
	n.lanes(at)
	if n.vec == "Y" {
		n.round(at, 4, "VPERM2F128 $0x20, ", "VPERM2F128 $0x31, ")
	} else {
		n.round(at, 4, "VSHUFF32X4 $0x88, ", "VSHUFF32X4 $0xdd, ")
		n.round(at, 8, "VSHUFF32X4 $0x88, ", "VSHUFF32X4 $0xdd, ")
	}
}

// lanes transposes the squares of four elements within lanes of 16 bytes.
func (n *network) lanes(at []int) {
	n.round(at, 1, "VUNPCKLPS ", "VUNPCKHPS ")
	n.round(at, 2, "VUNPCKLPD ", "VUNPCKHPD ")
}

func (n *network) round(at []int, distance int, low, high string) {
	for i := range at {
		if i&distance == 0 {
			at[i], at[i+distance] = n.pair(low, high, at[i], at[i+distance])
		}
	}
}

// columnOf is the column that at[i] holds after square: the first two rounds
// leave the two lowest bits swapped.
func columnOf(i int) int { return i&^3 | i&1<<1 | i>>1&1 }

// transposedAMD64: rows 4q to 4q+3 are at (base q) + 0, R11, 2·R11, R12. Rows of
// x are at (DI) + 0, R13, 2·R13, AX. No rows of x: pack.
func (s *source) transposedAMD64(f *function, t *tier, rows int) {
	size := t.bytes / 4 // rows and columns of a square
	groups := 16 / size
	s.begin(f, t, "A turn reads 64 bytes of each row of w.")
	bases := []string{"SI", "R8", "R9", "R10"}
	s.p("MOVQ %s, CX", s.args["k"])
	s.p("MOVQ %s, SI", s.args["w"])
	s.p("MOVQ %s, R11", s.args["ldw"])
	s.p("SHLQ $2, R11")
	s.p("LEAQ (R11)(R11*2), R12")
	for q := 1; q < 4; q++ {
		s.p("LEAQ (%s)(R11*4), %s", bases[q-1], bases[q])
	}
	n := &network{source: s, vec: map[*tier]string{avx512: "Z", avx2: "Y"}[t]}
	acc := func(i, g int) int { return t.registers - 1 - i*groups - g }
	if rows > 0 {
		s.p("MOVQ %s, DI", s.args["x"])
		s.p("MOVQ %s, R13", s.args["ldx"])
		s.p("SHLQ $2, R13")
		s.p("LEAQ (R13)(R13*2), AX")
		s.p("MOVQ %s, DX", s.args["c"])
	} else {
		s.p("MOVQ %s, DI", s.args["panel"])
	}
	// With AVX2 there are too few registers for the accumulators of four rows:
	// then one group of 8 rows of w takes its turns after the other.
	passes, inPass := 1, groups
	if rows > 1 && groups > 1 {
		passes, inPass = groups, 1
		acc = func(i, _ int) int { return t.registers - 1 - i }
	}
	for pass := range passes {
		if pass > 0 {
			s.p("MOVQ %s, CX", s.args["k"])
			s.p("MOVQ %s, DI", s.args["x"])
			for q := range 4 {
				s.p("MOVQ %s, %s", s.args["w"], bases[q])
				if q == 0 {
					s.p("LEAQ (SI)(R11*8), SI")
				} else {
					s.p("LEAQ (%s)(R11*4), %s", bases[q-1], bases[q])
				}
			}
		}
		suffix := fmt.Sprint(pass)
		accs := func(what func(i, g int)) {
			for i := range rows {
				for g := range inPass {
					what(i, g)
				}
			}
		}
		at := func(i, g int) string { return fmt.Sprintf("%d(DX)", i*64+(pass+g)*t.bytes) }
		if rows > 0 {
			accs(func(i, g int) {
				r := acc(i, g)
				if t == avx512 {
					s.p("VPXORQ Z%d, Z%d, Z%d", r, r, r)
				} else {
					s.p("VXORPS Y%d, Y%d, Y%d", r, r, r)
				}
			})
			s.p("CMPB %s, $0", s.args["add"])
			s.p("JEQ start%s", suffix)
			accs(func(i, g int) { s.p("VMOVUPS %s, %s%d", at(i, g), n.vec, acc(i, g)) })
			s.place("start" + suffix)
		}
		s.p("TESTQ CX, CX")
		s.p("JEQ done%s", suffix)
		// A block is so many turns as rows. In each one row of the next block is fetched: memory is fastest in
		// long runs of few rows.
		inBlock := size * inPass
		run := inBlock * 64
		s.p("XORQ R15, R15")
		s.place("loop" + suffix)
		s.p("SUBQ $1, R15")
		s.p("JGE fetch%s", suffix)
		s.p("MOVQ $%d, R15", inBlock-1)
		s.p("LEAQ %d(SI), BX", run)
		s.p("CMPQ CX, $%d", run/4)
		s.p("JGT fetch%s", suffix)
		s.p("MOVQ R11, BX")
		s.p("SHLQ $%d, BX", bits.Len(uint(inBlock*(pass+1)))-1)
		s.p("ADDQ %s, BX", s.args["w"])
		s.place("fetch" + suffix)
		for at := 0; at < run; at += 64 {
			s.p("PREFETCHT1 %d(BX)", at)
		}
		s.p("ADDQ R11, BX")
		s.turnAMD64(n, t, rows, size, inPass, bases, acc)
		for _, base := range bases {
			s.p("ADDQ $64, %s", base)
		}
		s.p("ADDQ $%d, DI", map[bool]int{true: 64, false: 64 * 16}[rows > 0])
		s.p("SUBQ $16, CX")
		s.p("JNE loop%s", suffix)
		s.place("done" + suffix)
		if rows > 0 {
			accs(func(i, g int) { s.p("VMOVUPS %s%d, %s", n.vec, acc(i, g), at(i, g)) })
		}
	}
	s.p("VZEROUPPER")
	s.p("RET")
}

// turnAMD64 reads 16 columns, in squares, and uses them: all of the rows of one
// group before those of the next, since lines of more may not stay in the cache.
func (s *source) turnAMD64(n *network, t *tier, rows, size, groups int, bases []string, acc func(i, g int) int) {
	place := func(row, offset int) string {
		return fmt.Sprintf("%d(%s)%s", offset, bases[row/4], []string{"", "(R11*1)", "(R11*2)", "(R12*1)"}[row%4])
	}
	for square := range groups * 16 / size {
		g, from := square*size/16, square*size%16
		at := make([]int, size)
		n.free = nil
		for r := size; r < t.registers-rows*groups; r++ {
			n.free = append(n.free, r)
		}
		for i := range at {
			at[i] = i
			s.p("VMOVUPS %s, %s%d", place(g*size+i, from*4), n.vec, i)
		}
		n.square(at)
		column := make([]int, size)
		for i, r := range at {
			column[columnOf(i)] = r
		}
		for p, r := range column {
			p += from
			if rows == 0 {
				s.p("VMOVUPS %s%d, %d(DI)", n.vec, r, p*64+g*t.bytes)
			}
			for i := range rows {
				x := fmt.Sprintf("%d(DI)%s", p*4, []string{"", "(R13*1)", "(R13*2)", "(AX*1)"}[i])
				if t == avx512 {
					s.p("VFMADD231PS.BCST %s, Z%d, Z%d", x, r, acc(i, g))
				} else {
					s.p("VBROADCASTSS %s, Y%d", x, n.free[i%len(n.free)])
					s.p("VFMADD231PS Y%d, Y%d, Y%d", n.free[i%len(n.free)], r, acc(i, g))
				}
			}
		}
	}
}

// transposedARM64 takes four elements of 16 rows at a time, row 4g+i from R1 +
// g·R6 + i·R5. Accumulators are F16 to F31, so rows of x are done one by one.
func (s *source) transposedARM64(f *function, rows int) {
	s.begin(f, neon, "A turn reads 256 bytes of w.")
	s.p("MOVD %s, R5", s.args["ldw"])
	s.p("LSL $2, R5")
	s.p("LSL $2, R5, R6") // from one group to the next
	if rows > 0 {
		s.p("MOVD %s, R7", s.args["x"])
		s.p("MOVD %s, R10", s.args["ldx"])
		s.p("LSL $2, R10")
		s.p("MOVD %s, R8", s.args["c"])
	} else {
		s.p("MOVD %s, R7", s.args["panel"])
	}
	s.p("MOVD %s, R0", s.args["k"])
	s.p("MOVD %s, R1", s.args["w"])
	for i := range rows {
		if i > 0 {
			s.p("ADD R10, R%d, R%d", 10+i, 11+i) // R11, R12, R13, R14: rows of x
		} else {
			s.p("MOVD R7, R11")
		}
		for g := range 4 {
			s.p("VEOR V%d.B16, V%d.B16, V%d.B16", 16+4*i+g, 16+4*i+g, 16+4*i+g)
		}
	}
	if rows > 0 {
		s.p("MOVBU %s, R9", s.args["add"])
		s.p("CBZ R9, start")
		for i := range 4 * rows {
			s.p("FMOVQ %d(R8), F%d", i*16, 16+i)
		}
		s.place("start")
	}
	s.p("CBZ R0, done")
	s.place("loop")
	for i := range rows {
		s.p("FMOVQ.P 16(R%d), F%d", 11+i, 12+i)
	}
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
			if rows == 0 {
				s.p("FMOVQ F%d, %d(R7)", 8+p, p*64+g*16)
			}
			for i := range rows {
				s.element("fma", 16+4*i+g, 8+p, 12+i, p)
			}
		}
		if g < 3 {
			s.p("ADD R6, R2")
		}
	}
	s.p("ADD $16, R1")
	if rows == 0 {
		s.p("ADD $256, R7")
	}
	s.p("SUBS $4, R0")
	s.p("BNE loop")
	s.place("done")
	for i := range 4 * rows {
		s.p("FMOVQ F%d, %d(R8)", 16+i, i*16)
	}
	s.p("RET")
}

// squareARM transposes the four elements of V0 to V3 into V8 to V11.
func (s *source) squareARM() {
	s.word("zip1", 4, 4, 0, 1)
	s.word("zip2", 4, 5, 0, 1)
	s.word("zip1", 4, 6, 2, 3)
	s.word("zip2", 4, 7, 2, 3)
	s.word("zip1", 8, 8, 4, 6)
	s.word("zip2", 8, 9, 4, 6)
	s.word("zip1", 8, 10, 5, 7)
	s.word("zip2", 8, 11, 5, 7)
}

// copied writes the kernel that packs rows: a panel takes 16 elements of each.
func (s *source) copied(elem int) {
	for _, count := range []int{1, 4} {
		name := typed(fmt.Sprintf("packRows%d", count), elem)
		typ := float(elem)
		f := s.declare(name, fmt.Sprintf("k int, panel *%s, next int, b *%s, ld int", typ, typ),
			fmt.Sprintf("%s sets panel[q·next+16p+j] to b[p·ld+16q+j] for k rows p and %d panels q.", name, count))
		vectors := func(t *tier) int { return 16 * elem / t.bytes }
		shift := map[int]int{4: 2, 8: 3}[elem]
		for _, t := range []*tier{avx512, avx2} {
			vec := map[*tier]string{avx512: "Z", avx2: "Y"}[t]
			s.begin(f, t, "")
			s.p("MOVQ %s, CX", s.args["k"])
			s.p("MOVQ %s, DI", s.args["panel"])
			s.p("MOVQ %s, R13", s.args["next"])
			s.p("MOVQ %s, SI", s.args["b"])
			s.p("MOVQ %s, R11", s.args["ld"])
			s.p("SHLQ $%d, R13", shift)
			s.p("SHLQ $%d, R11", shift)
			s.p("LEAQ (R13)(R13*2), AX")
			s.p("TESTQ CX, CX")
			s.p("JEQ done")
			s.place("loop")
			for q := range count {
				for v := range vectors(t) {
					s.p("VMOVUPS %d(SI), %s%d", q*16*elem+v*t.bytes, vec, v)
					s.p("VMOVUPS %s%d, %d(DI)%s", vec, v, v*t.bytes, []string{"", "(R13*1)", "(R13*2)", "(AX*1)"}[q])
				}
			}
			s.p("ADDQ R11, SI")
			s.p("ADDQ $%d, DI", 16*elem)
			s.p("DECQ CX")
			s.p("JNE loop")
			s.place("done")
			s.p("VZEROUPPER")
			s.p("RET")
		}
		s.begin(f, neon, "")
		s.p("MOVD %s, R0", s.args["k"])
		s.p("MOVD %s, R1", s.args["panel"])
		s.p("MOVD %s, R2", s.args["next"])
		s.p("MOVD %s, R3", s.args["b"])
		s.p("MOVD %s, R4", s.args["ld"])
		s.p("LSL $%d, R2", shift)
		s.p("LSL $%d, R4", shift)
		s.p("CBZ R0, done")
		s.place("loop")
		s.p("MOVD R1, R5")
		for q := range count {
			for v := range vectors(neon) {
				s.p("FMOVQ %d(R3), F%d", q*16*elem+v*16, v)
				s.p("FMOVQ F%d, %d(R5)", v, v*16)
			}
			if q+1 < count {
				s.p("ADD R2, R5")
			}
		}
		s.p("ADD R4, R3")
		s.p("ADD $%d, R1", 16*elem)
		s.p("SUBS $1, R0")
		s.p("BNE loop")
		s.place("done")
		s.p("RET")
	}
}

// parts writes the kernel that packs a part of a panel's columns, by loads under
// a mask: what lies beside the part is not read. In AVX-512 that takes twice as
// long on a processor with vectors of half the size; NEON has none.
func (s *source) parts() {
	f := s.declare("packPartF32",
		"rows int, dst *float32, to int, src *float32, from, at int, head, tail *uint32, merge bool",
		"packPartF32 sets dst[r·to+j] to src[r·from+j-at] for all rows r and the j < 16 for which all bits of head[j] "+
			"and tail[j] are set. The others become 0; if merge is set they stay, and those that are set must have "+
			"been 0.")
	s.begin(f, avx2, "")
	s.p("MOVQ %s, CX", s.args["rows"])
	s.p("MOVQ %s, DI", s.args["dst"])
	s.p("MOVQ %s, R8", s.args["to"])
	s.p("MOVQ %s, SI", s.args["src"])
	s.p("MOVQ %s, R9", s.args["from"])
	s.p("MOVQ %s, AX", s.args["at"])
	s.p("MOVQ %s, BX", s.args["head"])
	s.p("MOVQ %s, DX", s.args["tail"])
	s.p("SHLQ $2, R8")
	s.p("SHLQ $2, R9")
	s.p("SHLQ $2, AX")
	s.p("SUBQ AX, SI")
	for v := range 2 {
		s.p("VMOVUPS %d(BX), Y%d", 32*v, 2+v)
		s.p("VANDPS %d(DX), Y%d, Y%d", 32*v, 2+v, 2+v)
	}
	s.p("TESTQ CX, CX")
	s.p("JEQ done")
	turn := func(merge bool, label string) {
		s.place(label)
		for v := range 2 {
			s.p("VMASKMOVPS %d(SI), Y%d, Y%d", 32*v, 2+v, v)
			if merge {
				s.p("VORPS %d(DI), Y%d, Y%d", 32*v, v, v)
			}
			s.p("VMOVUPS Y%d, %d(DI)", v, 32*v)
		}
		s.p("ADDQ R9, SI")
		s.p("ADDQ R8, DI")
		s.p("DECQ CX")
		s.p("JNE %s", label)
	}
	s.p("CMPB %s, $0", s.args["merge"])
	s.p("JNE merged")
	turn(false, "loop")
	s.p("JMP done")
	turn(true, "merged")
	s.place("done")
	s.p("VZEROUPPER")
	s.p("RET")
	const has = "\n// hasMasks tells that packPartF32 is there.\nconst hasMasks = "
	s.extra["amd64"] += has + "true\n"
	for _, arch := range []string{"arm64", "none"} {
		s.extra[arch] += has + "false\n"
	}
	s.extra["arm64"] += fmt.Sprintf("\nfunc %s(%s) { %s }\n", f.name, f.list, noAssembly)
}
