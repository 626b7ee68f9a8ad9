package main

import "fmt"

// qdotTile256: rows of x are at SI or R8 (row 3) + 0, R11, 2·R11; the weights were taken apart, see qdotApart, and
// those of the second half of the panel lie R9 further on. A load of activations is for two vectors of weights, and the
// sums of floats are in memory, to which they cost a store a group: of all that loads vectors or calculates with them,
// little more than four instructions find a place in a cycle.
func (s *source) qdotTile256(f *function, form tileForm, rows int) {
	const vectors = 2
	b := &tile256{source: s, form: form, rows: rows, turn: form.parts() * form.apartBytes(form.words())}
	s.locals = rows*vectors*32 + 32
	if form.kept() {
		s.locals += rows * vectors * 32
	}
	s.begin(f, avx2, fmt.Sprintf("A turn reads %d weights of 16 rows, taken apart, %d bytes, and %d bytes of x. Sums "+
		"at R10, integers in Y0 to Y%d, weights from Y%d on.", 32*form.groups(), vectors*b.turn*form.groups(),
		rows*recordBytes*form.groups(), rows*vectors-1, b.weights()))
	s.p("LEAQ 31(SP), R10")
	s.p("ANDQ $-32, R10")
	s.p("CMPB %s, $0", s.args["add"])
	s.p("JEQ zero")
	b.eachSum(func(at string, i int) {
		s.p("VMOVUPS %s, Y0", at)
		s.p("VMOVAPS Y0, %d(R10)", 32*i)
	})
	s.p("JMP start")
	s.place("zero")
	s.p("VXORPS Y0, Y0, Y0")
	for i := range rows * vectors {
		s.p("VMOVAPS Y0, %d(R10)", 32*i)
	}
	s.place("start")
	s.p("MOVQ %s, R9", s.args["wnext"])
	if ones := s.constant(0x00010001, 4); form.wide {
		s.p("VMOVDQU consts<>+%d(SB), Y15", ones)
	} else {
		s.p("LEAQ consts<>+%d(SB), AX", ones) // short to name in the loop
	}
	s.tileLoop(form, rows, b.turn, b.clear, func(part int) {
		if form.wide {
			b.wide(part)
		} else {
			b.narrow(part)
		}
		switch {
		case form.parts() > 1:
			b.half(part)
		case form.kept():
			b.collect()
		default:
			b.scale()
		}
	}, b.spread)
	b.eachSum(func(at string, i int) {
		s.p("VMOVAPS %d(R10), Y0", 32*i)
		s.p("VMOVUPS Y0, %s", at)
	})
	s.p("VZEROUPPER")
	s.p("RET")
}

// A tile256 is what the parts of a tile of AVX2 have in common.
type tile256 struct {
	*source
	form       tileForm
	rows, turn int // rows of activations; bytes of half a panel's weights in a turn of the loop
}

// The registers behind those of weights.
const (
	activations256 = 12
	scratch256     = 13 // to 15, but for the ones of wide
)

// weights is the first register of weights.
func (b *tile256) weights() int {
	if b.form.wide {
		return 10
	}
	return 8
}

func (b *tile256) place(i, offset int) string {
	return fmt.Sprintf("%d(%s)%s", offset, []string{"SI", "R8"}[i/3], []string{"", "(R11*1)", "(R11*2)"}[i%3])
}

// from is where a part of the weights of half v of the panel has their byte offset.
func (b *tile256) from(part, offset, v int) string {
	return fmt.Sprintf("%d(DI)%s", part*b.form.apartBytes(b.form.words())+offset, []string{"", "(R9*1)"}[v])
}

// group is where the i-th sum of what shares a scale is, if results are kept.
func (b *tile256) group(i int) string { return fmt.Sprintf("%d(R10)", 32*(2*b.rows+i)) }

// eachSum calls write with where c has each of the sums.
func (b *tile256) eachSum(write func(at string, i int)) {
	b.p("MOVQ %s, AX", b.args["c"])
	b.p("MOVQ %s, BX", b.args["ldc"])
	b.p("SHLQ $2, BX")
	for i := range 2 * b.rows {
		if write(fmt.Sprintf("%d(AX)", i%2*32), i); i%2 == 1 {
			b.p("ADDQ BX, AX")
		}
	}
}

// narrow writes the products of a part's weights of 6 bits. Sums of four products fit in 16 bits.
func (b *tile256) narrow(part int) {
	const x, scratch = activations256, scratch256
	w := b.weights()
	for i := range b.rows {
		if b.form.added() < 32 {
			break
		}
		b.p("VPBROADCASTD %s, Y%d", b.place(i, b.form.sumAt(part)), x)
		for v := range 2 {
			b.p("VPSLLD $5, Y%d, Y%d", x, 2*i+v)
		}
	}
	first := part * b.form.words()
	for word := first; word < first+b.form.words(); word += 2 {
		for j := range 2 {
			for v := range 2 {
				b.p("VMOVDQU %s, Y%d", b.from(0, 32*(word+j), v), w+2*j+v)
			}
		}
		for i := range b.rows {
			b.p("VPBROADCASTD %s, Y%d", b.place(i, 4*word), x)
			b.p("VPMADDUBSW Y%d, Y%d, Y%d", x, w, scratch)
			b.p("VPMADDUBSW Y%d, Y%d, Y%d", x, w+1, scratch+1)
			b.p("VPBROADCASTD %s, Y%d", b.place(i, 4*word+4), x)
			b.p("VPMADDUBSW Y%d, Y%d, Y%d", x, w+2, scratch+2)
			b.p("VPMADDUBSW Y%d, Y%d, Y%d", x, w+3, x)
			b.p("VPADDW Y%d, Y%d, Y%d", scratch+2, scratch, scratch)
			b.p("VPADDW Y%d, Y%d, Y%d", x, scratch+1, scratch+1)
			if b.form.factors {
				b.factors(i, word)
				continue
			}
			for v := range 2 {
				if word == first && b.form.added() == 0 {
					b.p("VPMADDWD (AX), Y%d, Y%d", scratch+v, 2*i+v)
					continue
				}
				b.p("VPMADDWD (AX), Y%d, Y%d", scratch+v, scratch+v)
				b.p("VPADDD Y%d, Y%d, Y%d", scratch+v, 2*i+v, 2*i+v)
			}
		}
	}
}

// factors multiplies the sums of four products in 16 bits, two words of row i from the given one on, by their factors.
// 4 was added to the weights: the first sums of 16 weights have the negative sum of activations four times in one half.
func (b *tile256) factors(i, word int) {
	const x, scratch = activations256, scratch256
	if word%4 == 0 {
		b.timesFour(b.place(i, recordLow+word), x)
	}
	for v := range 2 {
		if word%4 == 0 {
			b.p("VPADDW Y%d, Y%d, Y%d", x, scratch+v, scratch+v)
		}
		if at := fmt.Sprintf("%d(R12)", 64*(word/4)+32*v); word == 0 {
			b.p("VPMADDWD %s, Y%d, Y%d", at, scratch+v, 2*i+v)
		} else {
			b.p("VPMADDWD %s, Y%d, Y%d", at, scratch+v, scratch+v)
			b.p("VPADDD Y%d, Y%d, Y%d", scratch+v, 2*i+v, 2*i+v)
		}
	}
}

// wide writes the products of a part's weights of 8 bits.
func (b *tile256) wide(part int) {
	const x, scratch, ones = activations256, scratch256, 15
	w := b.weights()
	for i := range 2 * b.rows {
		b.p("VMOVDQU %s, Y%d", b.from(part, 0, i%2), i)
	}
	for word := range b.form.words() {
		for v := range 2 {
			b.p("VMOVDQU %s, Y%d", b.from(part, 32+64*word, v), w+v)
		}
		for i := range b.rows {
			b.p("VPBROADCASTD %s, Y%d", b.place(i, part*b.form.each+4*word), x)
			for v := range 2 {
				b.p("VPXOR %s, Y%d, Y%d", b.from(part, 64+64*word, v), x, scratch+v)
				b.p("VPMADDUBSW Y%d, Y%d, Y%d", scratch+v, w+v, scratch+v)
				b.p("VPMADDWD Y%d, Y%d, Y%d", ones, scratch+v, scratch+v)
				b.p("VPADDD Y%d, Y%d, Y%d", scratch+v, 2*i+v, 2*i+v)
			}
		}
	}
}

// scale adds what the integers are worth to the sums.
func (b *tile256) scale() {
	const x, product, sum, scaled = activations256, scratch256, scratch256 + 1, scratch256 + 2
	w := b.weights()
	for v := range 2 {
		b.p("VMOVUPS %d(DX), Y%d", 32*v, w+v)
		if b.form.offsets == 1 {
			b.p("VMOVUPS %d(R12), Y%d", 32*v, w+2+v)
		}
	}
	for i := range b.rows {
		b.p("VBROADCASTSS %s, Y%d", b.place(i, recordScale), x)
		if b.form.offsets == 1 {
			b.p("VBROADCASTSS %s, Y%d", b.place(i, b.form.scaledSumAt(0)), scaled)
		}
		for v := range 2 {
			a := 2*i + v
			b.p("VMULPS Y%d, Y%d, Y%d", x, w+v, product)
			b.p("VCVTDQ2PS Y%d, Y%d", a, a)
			b.p("VMULPS Y%d, Y%d, Y%d", product, a, a)
			b.p("VADDPS %d(R10), Y%d, Y%d", 32*a, a, sum)
			if b.form.offsets == 1 {
				b.p("VMULPS Y%d, Y%d, Y%d", scaled, w+2+v, product)
				b.p("VADDPS Y%d, Y%d, Y%d", product, sum, sum)
			}
			b.p("VMOVAPS Y%d, %d(R10)", sum, 32*a)
		}
	}
}

// clear sets the sums of the groups that share a scale to 0.
func (b *tile256) clear() {
	b.p("VXORPS Y0, Y0, Y0")
	for a := range 2 * b.rows {
		b.p("VMOVAPS Y0, %s", b.group(a))
	}
}

// collect adds the integers of a group, times its scale of activations, to the sums of those that share a scale.
func (b *tile256) collect() {
	const x = activations256
	for i := range b.rows {
		b.p("VBROADCASTSS %s, Y%d", b.place(i, recordScale), x)
		for a := 2 * i; a < 2*i+2; a++ {
			b.p("VCVTDQ2PS Y%d, Y%d", a, a)
			b.p("VMULPS Y%d, Y%d, Y%d", x, a, a)
			b.p("VADDPS %s, Y%d, Y%d", b.group(a), a, a)
			b.p("VMOVAPS Y%d, %s", a, b.group(a))
		}
	}
}

// half adds the integers of half a group, times its scale, to the sums: those of the first half wait for the second.
func (b *tile256) half(part int) {
	const x = activations256
	w := b.weights()
	for v := range 2 {
		b.p("VMOVUPS %d(DX), Y%d", 64*part+32*v, w+v)
	}
	for a := range 2 * b.rows {
		if part == 1 && a%2 == 0 {
			b.p("VBROADCASTSS %s, Y%d", b.place(a/2, recordScale), x)
		}
		b.p("VCVTDQ2PS Y%d, Y%d", a, a)
		if b.p("VMULPS Y%d, Y%d, Y%d", w+a%2, a, a); part == 0 {
			b.p("VMOVAPS Y%d, %s", a, b.group(a))
			continue
		}
		b.p("VADDPS %s, Y%d, Y%d", b.group(a), a, a)
		b.p("VMULPS Y%d, Y%d, Y%d", x, a, a)
		b.p("VADDPS %d(R10), Y%d, Y%d", 32*a, a, a)
		b.p("VMOVAPS Y%d, %d(R10)", a, 32*a)
	}
}

// spread adds to the sums what the offsets and the sums of several groups, times their scale, are worth.
func (b *tile256) spread() {
	if b.form.groups() == 1 {
		return
	}
	w := b.weights()
	b.offsets()
	for v := range 2 {
		b.p("VMOVUPS %d(DX), Y%d", 32*v, w+v)
	}
	for a := range 2 * b.rows {
		product := scratch256 + a%2
		if b.p("VMULPS %s, Y%d, Y%d", b.group(a), w+a%2, product); b.form.offsets > 0 {
			b.p("VADDPS Y%d, Y%d, Y%d", product, a, a)
		} else {
			b.p("VADDPS %d(R10), Y%d, Y%d", 32*a, product, a)
		}
		b.p("VMOVAPS Y%d, %d(R10)", a, 32*a)
	}
}

// offsets sets the registers of the integers to the sums and adds to them what offsets are worth, if there are any.
func (b *tile256) offsets() {
	const x, product = activations256, scratch256
	w := b.weights()
	for o := 0; o < b.form.offsets; o += 2 {
		for j := range 2 {
			for v := range 2 {
				b.p("VMOVUPS %d(R12), Y%d", 64*(o+j)+32*v, w+2*j+v)
			}
		}
		for i := range b.rows {
			for j := range 2 {
				b.p("VBROADCASTSS %s, Y%d", b.place(i, b.form.scaledSumAt(o+j)), x)
				for v := range 2 {
					a := 2*i + v
					b.p("VMULPS Y%d, Y%d, Y%d", x, w+2*j+v, product)
					if o+j == 0 {
						b.p("VADDPS %d(R10), Y%d, Y%d", 32*a, product, a)
					} else {
						b.p("VADDPS Y%d, Y%d, Y%d", product, a, a)
					}
				}
			}
		}
	}
}
