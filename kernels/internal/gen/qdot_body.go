package main

import (
	"fmt"
	"math/bits"
	"slices"
)

// A panelBody is what a kernel does with one block of a panel, as far as a vector has lanes: 16 rows with AVX-512, 8 with
// AVX2, 4 with NEON. Its values are vectors of 4-byte lanes. Groups of four weights, a byte each in a lane, are either
// multiplied by activations and summed up or stored.
type panelBody struct {
	*body
	f    *panelFormat
	vec  bool // a product, not an unpacking
	bias int  // of the weights

	sums    map[int]val // by scale
	pending map[int]val // AVX2: products of 16 bits that are to be added to the sum
	count   map[int]int // how many they are
	acts    map[int]val // NEON: 16 activations
	content map[val][]byte
	words   map[int]val // that are kept

	from    [4]int // for each step: where in the block its fetching ahead begins
	portion [4]int // and how far a body advances with it
}

const none = val(-1)

func newPanelBody(t *tier, f *panelFormat, vec bool) *panelBody {
	b := &panelBody{body: &body{t: t, elem: 4, constOf: map[uint64]val{}}, f: f, vec: vec, bias: f.bias,
		content: map[val][]byte{}}
	if f.top == 255 && (!vec || t == avx512) {
		b.bias = 128
	}
	for step := range f.steps {
		b.sums, b.pending, b.count = map[int]val{}, map[int]val{}, map[int]int{}
		b.acts, b.words = map[int]val{}, map[int]val{}
		b.do("step", step)
		from := len(b.ins)
		f.expand(b, step)
		if vec {
			b.fetch(from, step)
		}
	}
	return b
}

// fetch spreads over the instructions of a step, the last ones from from on, the fetching ahead of its share of a block:
// of many lines at once the processor forgets some.
func (b *panelBody) fetch(from, step int) {
	bodies := b.parts() // in which a line of a panel is fetched in one of
	if b.turns() {
		bodies *= 4
	}
	lines := (16*b.f.bytes + 63) / 64
	share := func(step int) int { return (lines*step/b.f.steps + bodies - 1) / bodies }
	first, n := share(step), share(step+1)-share(step)
	b.from[step], b.portion[step] = 64*bodies*first, 64*n
	body := slices.Clone(b.ins[from:])
	b.ins = b.ins[:from]
	done := 0
	for i, in := range body {
		for ; done < n && done*len(body) <= i*n; done++ {
			b.do("fetch", 64*done)
		}
		b.ins = append(b.ins, in)
	}
}

// turns tells how four panels are fetched ahead. If not, a body fetches of its own panel. If so, it fetches a share of its
// own and of the others, so that all four advance together although the bodies are long: the processor's own fetching
// relies on lines of a panel being asked for in their order, and not too many of one panel at once.
func (b *panelBody) turns() bool { return b.f.block == 256 }

// ahead is how far the panels are fetched ahead, in bytes, into the first and into the second cache; 0 is not at
// all.
func (b *panelBody) ahead() (near, far int) {
	if b.turns() {
		return 16 * b.f.bytes, 16*b.f.bytes + 3360
	}
	return prefetchAhead, 0
}

// Words of the record of 32 activations; see kernels/qdot.
const (
	recordBytes     = 4 * 13
	recordScale     = 4 * 8
	recordScaledSum = 4 * 9
	recordSum       = 4 * 10
)

// word is word i of the block.
func (b *panelBody) word(i int) val {
	if b.t != avx2 && i < 4 && b.f.block == 256 && b.f.odd == 0 { // scales, needed again and again
		if v, ok := b.words[i]; ok {
			return v
		}
	}
	v := b.add("word", temp, 16*b.f.odd+64*i)
	b.words[i] = v
	return v
}

// parts is how often a body runs for all 16 rows.
func (b *panelBody) parts() int { return 64 / b.t.bytes }

// halves is the f16 number of each row that stands before the words.
func (b *panelBody) halves() val { return b.add("halves", temp, 0) }

// twoHalves is the two f16 numbers in word 0.
func (b *panelBody) twoHalves() (low, high val) {
	w := b.word(0)
	return b.add("lowHalf", temp, 0, w), b.add("lowHalf", temp, 0, b.shr(w, 16))
}

// shift shifts right by n bits, or left by -n.
func (b *panelBody) shift(x val, n int) val {
	switch {
	case n > 0:
		return b.shr(x, n)
	case n < 0:
		return b.shl(x, -n)
	}
	return x
}

// andOr is x&m | y.
func (b *panelBody) andOr(x, m, y val) val { return b.add("andOr", temp, 0, x, m, y) }

// table is a register full of the given bytes, repeated.
func (b *panelBody) table(content []byte) val {
	name := fmt.Sprintf("table%x", content)
	v := b.named(name)
	b.content[v] = content
	return v
}

// biased is small integers as bytes with the bias added.
func (b *panelBody) biased(numbers []int) (t []byte) {
	for _, n := range numbers {
		t = append(t, byte(n+b.bias))
	}
	return t
}

// group takes the weights 4i to 4i+3.
func (b *panelBody) group(i int, w val) {
	if !b.vec {
		if b.bias < 128 {
			b.do("storeBytes", 64*i, b.iadd(w, b.bits(uint64(128-b.bias)*0x01010101)))
		} else {
			b.do("storeBytes", 64*i, w)
		}
		return
	}
	scale := 4 * i / b.f.each
	at := i/8*recordBytes + i%8*4
	switch b.t {
	case avx512:
		b.sums[scale] = b.add("dot", temp, at, b.sum(scale), w)
	case neon:
		block := at - i%4*4
		if _, ok := b.acts[block]; !ok {
			b.acts[block] = b.add("activations", temp, block)
		}
		b.sums[scale] = b.add("dot", temp, i%4, b.sum(scale), w, b.acts[block])
	case avx2:
		x := b.add("broadcast", temp, at)
		most := 1 // as many products of two weights and two activations as 16 bits can hold
		if b.f.top < 255 {
			most = 32767 / (2 * 127 * b.f.top)
			x = b.add("multiplyBytes", temp, 0, x, w)
		} else {
			x = b.add("sign", temp, 0, w, x)
			x = b.add("multiplyBytes", temp, 0, x, b.add("absolute", temp, 0, w))
		}
		if b.count[scale] > 0 {
			x = b.add("add16", temp, 0, b.pending[scale], x)
		}
		b.pending[scale] = x
		if b.count[scale]++; b.count[scale] == most {
			b.flush(scale)
		}
	}
}

// flush adds the products of 16 bits to the sum.
func (b *panelBody) flush(scale int) {
	if b.count[scale] == 0 {
		return
	}
	b.count[scale] = 0
	pairs := b.add("addPairs", temp, 0, b.pending[scale], b.bits(0x00010001))
	if _, begun := b.sums[scale]; !begun && b.bias == 0 {
		b.sums[scale] = pairs
		return
	}
	b.sums[scale] = b.iadd(b.sum(scale), pairs)
}

// sum is what has been summed up for a scale; at first it is the negative sum of the activations times the bias.
func (b *panelBody) sum(scale int) val {
	if v, ok := b.sums[scale]; ok {
		return v
	}
	if b.bias == 0 {
		return b.add("zero", temp, 0)
	}
	from := scale * b.f.each
	at := from/32*recordBytes + recordSum
	if b.f.each == 16 {
		at += 4 + from%32/16*4
	}
	v := b.add("broadcast", temp, at)
	return b.shift(v, -bits.TrailingZeros(uint(b.bias)))
}

// finish ends the weights of a scale; m is none if there is no offset.
func (b *panelBody) finish(scale int, s, m val) {
	if !b.vec {
		b.do("storeScale", 64*scale, s)
		if m != none {
			b.do("storeOffset", 64*scale, m)
		}
		return
	}
	b.flush(scale)
	y, record := b.named("y"), scale*b.f.each/32*recordBytes
	s = b.times(s, b.add("broadcast", temp, record+recordScale))
	b.do("addInto", 0, y, b.times(b.toFloat(b.sums[scale]), s))
	if m != none {
		b.do("addInto", 0, y, b.times(m, b.add("broadcast", temp, record+recordScaledSum)))
	}
}
