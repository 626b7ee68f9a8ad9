package main

import (
	"fmt"
	"strings"
)

// qdotFormats writes, for each format, the product of a row of activations with panels, and the unpacking of a panel.
func (s *source) qdotFormats() {
	for _, vec := range []bool{true, false} {
		chooser := map[*tier]*strings.Builder{avx512: {}, avxvnni: {}, avx2: {}, neon: {}}
		amd64 := []*tier{avx512, avxvnni, avx2}
		name, list := "unpackBlocks", "panel, bytes *byte, s, m *float32, blocks int, points *uint32"
		doc := "sets bytes, s and m to the weights, scales and offsets of a panel; see Form."
		if vec {
			name = "vecBlocks"
			list = "c *float32, ldc int, panels *byte, next, count, units int, x *uint32, blocks int, points *uint32"
			doc = "adds to c the products of the activations x and count strips of units panels; strips are next " +
				"bytes apart, their results ldc bytes. See Format.Vec."
		}
		args := []string{}
		for _, p := range params(list) {
			args = append(args, p.name)
		}
		for _, format := range panelFormats {
			kernel := strings.TrimSuffix(name, "Blocks") + strings.ToUpper(format.name)
			f := s.declare(kernel, list, kernel+" "+doc)
			f.local = true
			for _, t := range append(amd64, neon) {
				as, list := t, strings.Join(args, ", ")
				if t == avxvnni && !vec && !format.apart {
					as = avx2
				} else {
					s.panelKernel(f, format, t, vec)
				}
				fmt.Fprintf(chooser[t], "case %q:\n%s%s(%s)\n", format.name, kernel, as.suffix, list)
			}
		}
		signature := fmt.Sprintf("func %s(format string, %s)", name, list)
		choice := func(t *tier) string {
			return fmt.Sprintf("switch format {\n%sdefault:\npanic(\"no such format\")\n}\n", chooser[t])
		}
		head := fmt.Sprintf("\n// %s %s\n%s {\n", name, doc, signature)
		s.extra["amd64"] += head + byTier(choice, amd64...) + "}\n"
		s.extra["arm64"] += head + choice(neon) + "}\n"
		s.extra["none"] += fmt.Sprintf("\n%s { %s }\n", signature, noAssembly)
	}
}

func (s *source) panelKernel(f *function, format *panelFormat, t *tier, vec bool) {
	b := newPanelBody(t, format, vec)
	w := &panelWriter{writer: &writer{source: s, body: b.body, loop: &loop{name: f.name}, width: t.bytes / 4}, b: b}
	w.allocate()
	if t != neon && b.transposes() {
		s.locals = format.block
	}
	s.begin(f, t, fmt.Sprintf("A turn takes a block of %d rows, %d bytes.", t.bytes/4, format.bytes*t.bytes/4))
	switch {
	case t == neon && vec:
		w.vecARM64()
	case t == neon:
		w.unpackARM64()
	case vec:
		w.vecAMD64()
	default:
		w.unpackAMD64()
	}
}

// A panelWriter writes a kernel for one format in one tier.
type panelWriter struct {
	*writer
	b *panelBody
}

// On amd64 a block of a panel begins at SI. The rows of a body have their words at R9 and what stands before the
// words at R10; what they fetch ahead is at R11. R12 points to results, DI to the activations. R8 is from a panel to
// that of the next strip; DX points to the first strip's
// results, BX is the number of strips, CX that of blocks; AX and R13 count strips and bodies. An unpacking has its
// bytes, scales and offsets at DI, DX and R8.
func (w *panelWriter) vecAMD64() {
	for _, arg := range [][2]string{{"c", "DX"}, {"panels", "SI"}, {"next", "R8"}, {"count", "BX"}} {
		w.p("MOVQ %s, %s", w.args[arg[0]], arg[1])
	}
	w.prologueAMD64()
	w.pointsAMD64()
	y := w.vecOf(w.named(resultName(0)))
	parts, odd := w.b.parts(), w.b.f.odd*w.width
	w.place("unit")
	w.p("MOVQ %s, DI", w.args["x"])
	w.p("MOVQ %s, CX", w.args["blocks"])
	if w.b.rotates() {
		w.resultsAMD64("load", func() { w.p("VMOVUPS (R12), %s", y) })
	}
	w.place("loop")
	if w.b.transposes() {
		w.turnAMD64()
	}
	w.steps(func(step int) {
		w.p("MOVQ SI, R9")
		w.p("LEAQ %d(SI), R11", w.b.from[step])
		if !w.b.rotates() {
			w.p("MOVQ DX, R12")
		}
		w.p("MOVQ BX, AX")
		if parts > 1 {
			w.p("MOVQ SI, R10")
		}
		w.place(fmt.Sprintf("panel%d", step))
		if parts > 1 {
			w.p("MOVQ $%d, R13", parts)
			w.place(fmt.Sprintf("part%d", step))
		}
		if !w.b.rotates() {
			w.p("VMOVUPS (R12), %s", y)
		}
	}, w.insAMD64, func(step int) {
		if w.b.rotates() {
			w.rotateAMD64()
		} else {
			w.p("VMOVUPS %s, (R12)", y)
			w.p("ADDQ $%d, R12", w.t.bytes)
		}
		w.p("ADDQ $%d, R11", w.b.portion[step])
		if parts > 1 {
			w.p("ADDQ $%d, R9", w.t.bytes)
			w.p("ADDQ $%d, R10", odd)
			w.p("DECQ R13")
			w.p("JNE part%d", step)
			w.p("ADDQ %s, R12", w.args["ldc"])
			w.p("SUBQ $64, R12")
			w.p("LEAQ -64(R9)(R8*1), R9")
			w.p("LEAQ -%d(R10)(R8*1), R10", odd*parts)
		} else {
			w.p("ADDQ R8, R9")
		}
		w.p("LEAQ -%d(R11)(R8*1), R11", parts*w.b.portion[step])
		w.p("DECQ AX")
		w.p("JNE panel%d", step)
		if w.b.rotates() {
			w.catchUpAMD64(fmt.Sprint(step))
		}
	})
	w.p("ADDQ $%d, SI", 16*w.b.f.bytes)
	w.p("ADDQ $%d, DI", w.b.f.block/32*recordBytes)
	w.p("DECQ CX")
	w.p("JNE loop")
	if w.b.rotates() {
		w.resultsAMD64("store", func() { w.p("VMOVUPS %s, (R12)", y) })
	}
	w.p("ADDQ $64, DX")
	w.p("DECQ %s", w.args["units"])
	w.p("JNE unit")
	w.p("VZEROUPPER")
	w.p("RET")
}

// resultsAMD64 loads or stores the results of all panels, of which move does those of the current one.
func (w *panelWriter) resultsAMD64(label string, move func()) {
	w.p("MOVQ DX, R12")
	w.p("MOVQ BX, AX")
	w.place(label)
	move()
	w.rotateAMD64()
	w.p("ADDQ %s, R12", w.args["ldc"])
	w.p("DECQ AX")
	w.p("JNE %s", label)
	w.catchUpAMD64(label)
}

// rotateAMD64 gives the turn to the next panel's results. Such moves cost no more than their place in the program.
func (w *panelWriter) rotateAMD64() {
	free := w.vec(w.scratch)
	w.p("VMOVAPS %s, %s", w.vecOf(w.named(resultName(0))), free)
	for i := range 3 {
		w.p("VMOVAPS %s, %s", w.vecOf(w.named(resultName(i+1))), w.vecOf(w.named(resultName(i))))
	}
	w.p("VMOVAPS %s, %s", free, w.vecOf(w.named(resultName(3))))
}

// catchUpAMD64 rotates for the panels of four that are not there.
func (w *panelWriter) catchUpAMD64(label string) {
	w.p("MOVQ $4, AX")
	w.p("SUBQ BX, AX")
	w.p("JEQ all%s", label)
	w.place("none" + label)
	w.rotateAMD64()
	w.p("DECQ AX")
	w.p("JNE none%s", label)
	w.place("all" + label)
}

// steps writes the steps of a block, each of which is a loop over panels.
func (w *panelWriter) steps(begin func(step int), write func(i int), end func(step int)) {
	step := -1
	for i, in := range w.ins {
		if in.op == "step" {
			if step >= 0 {
				end(step)
			}
			step = in.n
			begin(step)
		}
		write(i)
	}
	end(step)
}

func (w *panelWriter) unpackAMD64() {
	for _, arg := range [][2]string{{"panel", "SI"}, {"bytes", "DI"}, {"s", "DX"}, {"m", "R8"}, {"blocks", "CX"}} {
		w.p("MOVQ %s, %s", w.args[arg[0]], arg[1])
	}
	w.prologueAMD64()
	w.pointsAMD64()
	parts := w.b.parts()
	w.place("loop")
	w.p("MOVQ SI, R9")
	w.p("MOVQ SI, R11")
	if parts > 1 {
		w.p("MOVQ SI, R10")
		w.p("MOVQ $%d, R13", parts)
		w.place("part")
	}
	for i := range w.ins {
		w.insAMD64(i)
	}
	w.p("ADDQ $%d, R9", w.t.bytes)
	w.p("ADDQ $%d, R11", w.b.fetched())
	if parts > 1 {
		for _, r := range []string{"DI", "DX", "R8"} {
			w.p("ADDQ $%d, %s", w.t.bytes, r)
		}
		w.p("ADDQ $%d, R10", w.b.f.odd*w.width)
		w.p("DECQ R13")
		w.p("JNE part")
	}
	bytes, scales, offsets := w.turn()
	w.p("ADDQ $%d, DI", bytes)
	w.p("ADDQ $%d, DX", scales)
	w.p("ADDQ $%d, R8", offsets)
	w.p("ADDQ $%d, SI", 16*w.b.f.bytes)
	w.p("DECQ CX")
	w.p("JNE loop")
	w.p("VZEROUPPER")
	w.p("RET")
}

// turn is how far the bytes, the scales and the offsets of an unpacking advance after the bodies of a block.
func (w *panelWriter) turn() (bytes, scales, offsets int) {
	bytes, scales = 16*w.b.f.block, 64*w.b.f.block/w.b.f.each
	if offsets = scales; w.b.f.factor { // there may be one for each factor
		offsets = 64 * w.b.f.block / 16
	}
	if w.b.parts() > 1 {
		bytes, scales, offsets = bytes-64, scales-64, offsets-64
	}
	return bytes, scales, offsets
}

// pointsAMD64 loads the address of the points of a format that has some.
func (w *panelWriter) pointsAMD64() {
	if w.b.f.point > 0 {
		w.p("MOVQ %s, %s", w.args["points"], w.pointsRegister())
	}
}

// pointsRegister has the address of the points; with AVX-512 there is nothing to count of bodies.
func (w *panelWriter) pointsRegister() string {
	return map[*tier]string{avx512: "R13", avxvnni: "R14", avx2: "R14", neon: "R14"}[w.t]
}

// vecOf is the register of a value that has one for the whole kernel.
func (w *panelWriter) vecOf(v val) string { return w.vec(w.values[v].reg) }

// prologueAMD64 loads constants and tables.
func (w *panelWriter) prologueAMD64() {
	for i := range w.values {
		v := &w.values[i]
		content, table := w.b.content[val(i)]
		switch {
		case v.kind == konst && v.reg >= 0:
			w.p("VMOVUPS consts<>+%d(SB), %s", w.constOffset(v), w.vecOf(val(i)))
		case table:
			w.p("VMOVUPS consts<>+%d(SB), %s", w.constantBytes(content), w.vecOf(val(i)))
		}
	}
}

// constantBytes returns the offset in the pool of repeated bytes, 8 to 64 of them.
func (s *source) constantBytes(content []byte) int {
	p := s.pool[s.now.arch]
	key := fmt.Sprintf("bytes:%x", content)
	if at, ok := p.at[key]; ok {
		return at
	}
	at := p.size
	p.at[key] = at
	width := max(map[string]int{"amd64": 64, "arm64": 16}[s.now.arch], len(content))
	for i := 0; i < width; i += 8 {
		bits := uint64(0)
		for j := range 8 {
			bits |= uint64(content[(i+j)%len(content)]) << (8 * j)
		}
		fmt.Fprintf(&p.data, "DATA consts<>+%d(SB)/8, $0x%016x\n", at+i, bits)
	}
	p.size += width
	return at
}
