package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A body is one turn of a loop over vectors, written once for all tiers: a list
// of instructions on values, each value made once. The allocator gives a value
// a register from the instruction that makes it to the last one that reads it.
type body struct {
	t    *tier
	elem int // bytes of a lane
	unit int // which of the vectors of a turn is being written

	ins    []ins
	values []value

	constOf map[uint64]val
}

type val int

type value struct {
	kind kind
	bits uint64 // of a constant
	wide bool   // the constant has 8 bytes
	name string // of a scalar parameter or an accumulator
	last int    // the last instruction that reads it
	reg  int    // -1: none yet
}

type kind int

const (
	temp   kind = iota
	mask        // of a comparison: in AVX-512 not in a vector register
	konst       // in a register as long as there are enough
	pinned      // a broadcast parameter or an accumulator
)

// An ins is one instruction. Its op is the name of a method of the tier's
// writer, in effect; n is a shift count, the number of a pointer, or the like.
type ins struct {
	op   string
	dst  val // -1: none
	args []val
	n    int
}

func (b *body) add(op string, k kind, n int, args ...val) val {
	b.values = append(b.values, value{kind: k, reg: -1})
	v := val(len(b.values) - 1)
	b.ins = append(b.ins, ins{op, v, args, n})
	return v
}

func (b *body) do(op string, n int, args ...val) {
	b.ins = append(b.ins, ins{op, -1, args, n})
}

// bits is a constant by its representation.
func (b *body) bits(x uint64) val {
	if v, ok := b.constOf[x]; ok {
		return v
	}
	b.values = append(b.values, value{kind: konst, bits: x, reg: -1})
	v := val(len(b.values) - 1)
	b.constOf[x] = v
	return v
}

// bits64 is a constant of 8 bytes, repeated, whatever the width of a lane.
func (b *body) bits64(x uint64) val {
	v := b.bits(x | 1<<63) // a key that no constant of 4 bytes has
	b.values[v].bits, b.values[v].wide = x, true
	return v
}

// c is a floating-point constant.
func (b *body) c(x float64) val {
	if b.elem == 4 {
		return b.bits(uint64(math.Float32bits(float32(x))))
	}
	return b.bits(math.Float64bits(x))
}

// named is a broadcast parameter or an accumulator.
func (b *body) named(name string) val {
	for i, v := range b.values {
		if v.name == name {
			return val(i)
		}
	}
	b.values = append(b.values, value{kind: pinned, name: name, reg: -1})
	return val(len(b.values) - 1)
}

func (b *body) scalar(name string) val { return b.named(name) }

// acc is the accumulator of the vector being written.
func (b *body) acc() val { return b.named(fmt.Sprintf("acc%d", b.unit)) }

func (b *body) load(ptr int) val          { return b.add("load", temp, ptr) }
func (b *body) store(ptr int, x val)      { b.do("store", ptr, x) }
func (b *body) plus(x, y val) val         { return b.add("add", temp, 0, x, y) }
func (b *body) minus(x, y val) val        { return b.add("sub", temp, 0, x, y) }
func (b *body) times(x, y val) val        { return b.add("mul", temp, 0, x, y) }
func (b *body) over(x, y val) val         { return b.add("div", temp, 0, x, y) }
func (b *body) root(x val) val            { return b.add("sqrt", temp, 0, x) }
func (b *body) fma(x, y, z val) val       { return b.add("fma", temp, 0, x, y, z) }  // x·y + z
func (b *body) fnma(x, y, z val) val      { return b.add("fnma", temp, 0, x, y, z) } // z - x·y
func (b *body) and(x, y val) val          { return b.add("and", temp, 0, x, y) }
func (b *body) or(x, y val) val           { return b.add("or", temp, 0, x, y) }
func (b *body) xor(x, y val) val          { return b.add("xor", temp, 0, x, y) }
func (b *body) iadd(x, y val) val         { return b.add("iadd", temp, 0, x, y) }
func (b *body) isub(x, y val) val         { return b.add("isub", temp, 0, x, y) }
func (b *body) shl(x val, n int) val      { return b.add("shl", temp, n, x) }
func (b *body) shr(x val, n int) val      { return b.add("shr", temp, n, x) }
func (b *body) sar(x val, n int) val      { return b.add("sar", temp, n, x) }
func (b *body) toFloat(x val) val         { return b.add("toFloat", temp, 0, x) }
func (b *body) less(x, y val) val         { return b.add("lt", mask, 0, x, y) }
func (b *body) lessEqual(x, y val) val    { return b.add("le", mask, 0, x, y) }
func (b *body) equal(x, y val) val        { return b.add("eq", mask, 0, x, y) }
func (b *body) notEqual(x, y val) val     { return b.add("ne", mask, 0, x, y) }
func (b *body) choose(m, yes, no val) val { return b.add("choose", temp, 0, m, yes, no) }

// atLeast and atMost clamp x, which comes out unchanged if it is NaN.
func (b *body) atLeast(low, x val) val { return b.add("max", temp, 0, low, x) }
func (b *body) atMost(high, x val) val { return b.add("min", temp, 0, high, x) }

// addInto adds to the accumulator.
func (b *body) addInto(x val)           { b.do("addInto", 0, b.acc(), x) }
func (b *body) fmaInto(x, y val)        { b.do("fmaInto", 0, b.acc(), x, y) }
func (b *body) storeBools(p int, m val) { b.do("storeBools", p, m) }

// horner evaluates the polynomial with the given coefficients, highest first.
func (b *body) horner(x val, coefficients ...float64) val {
	p := b.c(coefficients[0])
	for _, c := range coefficients[1:] {
		p = b.fma(p, x, b.c(c))
	}
	return p
}

// A loop is a kernel that treats n elements, a multiple of 16, one by one: all
// pointers advance together.
type loop struct {
	name, list, doc string
	elem            int
	accumulates     bool // the parameter lanes points to 16 accumulators
	body            func(b *body)
	only            []*tier // nil: all
	prefetch        []int   // pointers whose memory is to be fetched ahead
}

// A pointer of a loop advances by so many bytes an element.
type pointer struct {
	name  string
	bytes int
}

// pointers are the parameters that advance. Those called cos2 and sin2 have one
// element for two of the others.
func (l *loop) pointers() (ps []pointer) {
	for _, p := range params(l.list) {
		if strings.HasPrefix(p.typ, "*") && p.name != "lanes" {
			size := elemBytes(p.typ)
			if p.name == "cos2" || p.name == "sin2" {
				size /= 2
			}
			ps = append(ps, pointer{p.name, size})
		}
	}
	return ps
}

func elemBytes(typ string) int {
	switch typ {
	case "*float32":
		return 4
	case "*float64":
		return 8
	case "*uint16":
		return 2
	}
	return 1
}

// write writes the loop in every tier.
func (s *source) write(l *loop) {
	f := s.declare(l.name, l.list, l.doc)
	for _, t := range tiers {
		if l.only == nil || slices.Contains(l.only, t) {
			s.writeLoop(f, l, t)
		}
	}
}

func (s *source) writeLoop(f *function, l *loop, t *tier) {
	width := t.bytes / l.elem // elements of a vector
	units := 1
	if l.accumulates {
		units = 16 / width
	}
	b := &body{t: t, elem: l.elem, constOf: map[uint64]val{}}
	for b.unit = range units {
		b.ins = append(b.ins, ins{"unit", -1, nil, b.unit})
		l.body(b)
	}
	w := &writer{source: s, body: b, loop: l, width: width}
	for _, p := range f.params {
		if p.typ == "float32" || p.typ == "float64" {
			b.named(p.name)
		}
	}
	w.allocate()
	bytes := 0
	for _, p := range l.pointers() {
		bytes += units * width * p.bytes
	}
	s.begin(f, t, fmt.Sprintf("A turn treats %d elements and touches %d bytes. %s", units*width, bytes, w.notes()))
	if t.arch == "amd64" {
		w.amd64(units)
	} else {
		w.arm64(units)
	}
}

// A writer holds what writing one loop in one tier needs.
type writer struct {
	*source
	*body
	loop    *loop
	width   int
	scratch int // a vector register for constants that have none
	inMem   int // how many constants have none
	spare   []int
	masks   []int
	unit    int
}

// allocate computes the lives of all values and gives registers to the pinned
// ones and to as many constants as the temporaries leave room for.
func (w *writer) allocate() {
	for i, in := range w.ins {
		for _, a := range in.args {
			w.values[a].last = i
		}
	}
	live, peak := 0, 0
	for i, in := range w.ins {
		if in.dst >= 0 && w.inVector(in.dst) {
			live++
			peak = max(peak, live+1) // one more: an instruction may not overwrite its operand
		}
		seen := map[val]bool{}
		for _, a := range in.args {
			if !seen[a] && w.values[a].last == i && w.inVector(a) {
				live--
			}
			seen[a] = true
		}
	}
	next := w.t.registers - 1
	take := func() int { next--; return next + 1 }
	w.scratch = take()
	for i := range w.values {
		if w.values[i].kind == pinned {
			w.values[i].reg = take()
		}
	}
	for i := range w.values {
		if v := &w.values[i]; v.kind == konst {
			if next+1 > peak+1 {
				v.reg = take()
			} else {
				w.inMem++
			}
		}
	}
	for r := next; r >= 0; r-- {
		w.spare = append(w.spare, r)
	}
	w.masks = []int{7, 6, 5, 4, 3, 2}
}

// inVector reports whether v is a temporary in a vector register.
func (w *writer) inVector(v val) bool {
	k := w.values[v].kind
	return k == temp || k == mask && w.t != avx512
}

func (w *writer) notes() string {
	var parts []string
	for _, v := range w.values {
		if v.kind == pinned {
			parts = append(parts, fmt.Sprintf("%s in %s", v.name, w.vec(v.reg)))
		}
	}
	if w.inMem > 0 {
		parts = append(parts, fmt.Sprintf("%d constants in memory", w.inMem))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "."
}

// vec is the name of a vector register.
func (w *writer) vec(r int) string {
	switch w.t {
	case avx512:
		return fmt.Sprintf("Z%d", r)
	case avx2, avxvnni:
		return fmt.Sprintf("Y%d", r)
	}
	return fmt.Sprintf("V%d", r)
}

// dies reports whether v is read for the last time by instruction i, so that
// its register may be overwritten.
func (w *writer) dies(v val, i int) bool {
	k := w.values[v].kind
	return (k == temp || k == mask) && w.values[v].last == i
}

// release frees the registers of the values that die at i.
func (w *writer) release(i int) {
	for _, a := range w.ins[i].args {
		v := &w.values[a]
		if !w.dies(a, i) || v.reg < 0 {
			continue
		}
		if w.inVector(a) {
			w.spare = append(w.spare, v.reg)
		} else {
			w.masks = append(w.masks, v.reg)
		}
		v.reg = -1
	}
}

// grant gives a register to the result of instruction i.
func (w *writer) grant(i int) int {
	v := &w.values[w.ins[i].dst]
	pool := &w.masks
	if w.inVector(w.ins[i].dst) {
		pool = &w.spare
	}
	if len(*pool) == 0 {
		panic(fmt.Sprintf("%s %s: out of registers", w.loop.name, w.t.suffix))
	}
	v.reg = (*pool)[len(*pool)-1]
	*pool = (*pool)[:len(*pool)-1]
	return v.reg
}

// inherit gives the result of instruction i the register of an operand.
func (w *writer) inherit(i int, from val) int {
	w.values[w.ins[i].dst].reg = w.values[from].reg
	w.values[from].reg = -1
	return w.values[w.ins[i].dst].reg
}
