package main

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
)

// A panelBody is what a kernel does with one block of a panel, as far as a vector has lanes: 16 rows with AVX-512, 8
// with AVX2, 4 with NEON. Its values are vectors of 4-byte lanes. Groups of four weights, a byte each in a lane, are
// either multiplied by activations and summed up or stored.
type panelBody struct {
	*body
	f    *panelFormat
	vec  bool // a product, not an unpacking
	bias int  // of the weights

	sums    map[sumOf]val
	begun   map[int]bool    // scales that have a sum
	pending map[sumOf]val   // AVX2: products of 16 bits that are to be added to the sum
	count   map[sumOf]int   // how many they are
	acts    map[int]val     // NEON: 16 activations, by their place
	turned  map[int]val     // NEON: the same, transposed
	words   map[int]val     // that are kept, by their number
	shifts  map[shifted]val // AVX-512: words that are kept
	factor  map[int]val     // by which sums of 16 weights are multiplied before they are added
	pairs   map[int]factors // or those of both sums of a scale
	partial val             // what has been summed up so far of what shares a scale of weights or of activations
	content map[val][]byte

	from    [4]int // for each step: where in the block its fetching ahead begins
	portion [4]int // and how far a body advances with it
}

const none = val(-1)

// factors are two integers of 16 bits, times 2^power.
type factors struct {
	v     val
	power int
}

func newPanelBody(t *tier, f *panelFormat, vec bool) *panelBody {
	b := &panelBody{body: &body{t: t, elem: 4, constOf: map[uint64]val{}}, f: f, vec: vec, bias: f.bias,
		content: map[val][]byte{}}
	if f.top == 255 && (!vec || b.unsigned()) {
		b.bias = 128
	}
	if b.rotates() {
		for i := range 4 {
			b.named(resultName(i))
		}
	}
	for step := range f.steps {
		b.sums, b.pending, b.count = map[sumOf]val{}, map[sumOf]val{}, map[sumOf]int{}
		b.begun, b.words, b.shifts = map[int]bool{}, map[int]val{}, map[shifted]val{}
		b.acts, b.turned, b.factor = map[int]val{}, map[int]val{}, map[int]val{}
		b.pairs = map[int]factors{}
		b.do("step", step)
		from := len(b.ins)
		f.expand(b, step)
		b.fetch(from, step)
	}
	return b
}

// rotates tells whether the results of four panels stay in registers, of which the first is that of the current panel.
// Each panel's turn ends by moving all of them one on, which costs less than stores: with one that waits for its line,
// such as those of the results after a call, the processor takes but some dozen more.
func (b *panelBody) rotates() bool { return b.vec && b.t == avx512 }

// resultName is the name of the results of the panel that has its turn after i others.
func resultName(i int) string { return fmt.Sprintf("y%d", i) }

// fetch spreads the fetching ahead of a step's share of a block over the instructions of the step, those from number
// from on: of many lines at once the processor forgets some.
func (b *panelBody) fetch(from, step int) {
	bodies := b.parts()
	lines := (16*b.f.bytes + 63) / 64
	share := func(step int) int { return (lines*step/b.f.steps + bodies - 1) / bodies }
	first, n := share(step), share(step+1)-share(step)
	b.from[step], b.portion[step] = 64*bodies*first, 64*n
	skipped := 0
	if !b.vec { // a body goes through all steps
		skipped = first
	}
	body := slices.Clone(b.ins[from:])
	b.ins = b.ins[:from]
	done := 0
	for i, in := range body {
		for ; done < n && done*len(body) <= i*n; done++ {
			b.do("fetch", 64*(skipped+done))
		}
		b.ins = append(b.ins, in)
	}
}

// fetched is how many bytes a body fetches ahead.
func (b *panelBody) fetched() (n int) {
	for _, portion := range b.portion {
		n += portion
	}
	return n
}

// passing is how far ahead, at most, a row's weights are fetched in passing (PREFETCHNTA): they are not kept in the
// second cache then, where what the next operation needs stays instead. It suits short distances only.
const passing = 512

// ahead is how far the panels are fetched ahead, in bytes, into the first and into the second cache; 0 is not at all.
// The numbers are measured. Words that are read in their order are fetched well by the processor, which a request for
// what is far ahead only disturbs, most of all of 8-bit weights.
func (b *panelBody) ahead() (near, far int) {
	switch {
	case b.vec && b.t == avx512 && b.f.bytes > b.f.block:
		return 128, 0
	case !b.vec:
		return 2048, 8192
	case b.t == neon:
		return 1024, 0
	case b.t == avx2 && b.f.block == 256:
		return 512, 0
	}
	return 256, 0
}

// word is word i of the block.
func (b *panelBody) word(i int) val {
	if b.t.registers > 16 && i < 4 && b.f.block == 256 && b.f.odd == 0 { // scales, needed again and again
		if v, ok := b.words[i]; ok {
			return v
		}
	}
	v := b.add("word", temp, 16*b.f.odd+64*i)
	b.words[i] = v
	return v
}

// unsigned tells whether the tier's products are of weights of 8 bits without sign, in 32 bits.
func (b *panelBody) unsigned() bool { return b.t == avx512 || b.t == avxvnni }

// inOrder gives n words from first on. If there are registers for them they are read now, before what lies behind them,
// so that lines are asked for in their order.
func (b *panelBody) inOrder(first, n int) func(i int) val {
	if !b.vec || b.t != avx512 {
		return func(i int) val { return b.word(first + i) }
	}
	words := make([]val, n)
	for i := range words {
		words[i] = b.word(first + i)
	}
	return func(i int) val { return words[i] }
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
		b.storeGroup(i, w)
		return
	}
	b.multiple(i, 0, w)
}

// multiple takes the weights 4i to 4i+3 times 2^power.
func (b *panelBody) multiple(i, power int, w val) {
	b.multiply(sumOf{4 * i / b.together(), power}, w, i/8*recordBytes+i%8*4)
}

// together is how many weights are summed up.
func (b *panelBody) together() int {
	if b.f.factor {
		return 16
	}
	return min(b.f.each, 32)
}

// field takes the weights 4i to 4i+3 from the bits mask of v, shifted right by n.
func (b *panelBody) field(i int, v val, n int, mask uint64) {
	if b.vec && b.unsigned() { // bytes of 8 bits can be multiplied as well: then the sum is shifted instead
		b.multiple(i, n, b.and(v, b.bits(mask<<n)))
		return
	}
	b.group(i, b.and(b.shift(v, n), b.bits(mask)))
}

func (b *panelBody) storeGroup(i int, w val) {
	if b.bias < 128 {
		w = b.iadd(w, b.bits(uint64(128-b.bias)*0x01010101))
	}
	b.do("storeBytes", 64*i, w)
}

// A sumOf is a sum of weights times activations: those of a scale or of a factor, times 2^power.
type sumOf struct{ scale, power int }

// multiply adds the weights w times the four activations that begin at so many bytes.
func (b *panelBody) multiply(to sumOf, w val, at int) {
	switch b.t {
	case avx512:
		b.sums[to] = b.add("dot", temp, at, b.sum(to), w)
	case avxvnni:
		b.sums[to] = b.add("dot256", temp, 0, b.sum(to), w, b.add("broadcast", temp, at))
	case neon:
		word := at % recordBytes % 16 / 4
		b.sums[to] = b.add("dot", temp, word, b.sum(to), w, b.activations(at-4*word))
	case avx2:
		b.multiplyAVX2(to, w, b.add("broadcast", temp, at))
	}
}

// activations is 16 activations.
func (b *panelBody) activations(at int) val {
	if _, ok := b.acts[at]; !ok {
		b.acts[at] = b.add("activations", temp, at)
	}
	return b.acts[at]
}

// turnedOrder transposes 16 activations in rows of four.
var turnedOrder = []byte{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}

// transposes tells whether the body uses multiplyTurned.
func (b *panelBody) transposes() bool {
	for _, content := range b.content {
		if bytes.Equal(content, turnedOrder) {
			return true
		}
	}
	return false
}

// multiplyTurned adds the weights w times the activations 16i+j, 16i+4+j, 16i+8+j and 16i+12+j of the block.
func (b *panelBody) multiplyTurned(to sumOf, w val, i, j int) {
	order := b.table(turnedOrder)
	switch local := 16*i + 4*j; b.t { // on amd64 they are turned once for all panels
	case avx512:
		b.sums[to] = b.add("dotLocal", temp, local, b.sum(to), w)
	case avxvnni:
		b.sums[to] = b.add("dot256", temp, 0, b.sum(to), w, b.add("broadcastLocal", temp, local))
	case avx2:
		b.multiplyAVX2(to, w, b.add("broadcastLocal", temp, local))
	case neon:
		at := i/2*recordBytes + i%2*16
		if _, ok := b.turned[at]; !ok {
			b.turned[at] = b.add("lookup", temp, 0, b.activations(at), order)
		}
		b.sums[to] = b.add("dot", temp, j, b.sum(to), w, b.turned[at])
	}
}

func (b *panelBody) multiplyAVX2(to sumOf, w, x val) {
	most := 1 // as many products of two weights and two activations as 16 bits can hold
	if b.f.top < 255 {
		most = 32767 / (2 * 127 * b.f.top)
		x = b.add("multiplyBytes", temp, 0, x, w)
	} else {
		x = b.add("sign", temp, 0, w, x)
		x = b.add("multiplyBytes", temp, 0, x, b.add("absolute", temp, 0, w))
	}
	if b.count[to] > 0 {
		x = b.add("add16", temp, 0, b.pending[to], x)
	}
	b.pending[to] = x
	if b.count[to]++; b.count[to] == most {
		b.flush(to)
	}
}

// flush adds the products of 16 bits to the sum.
func (b *panelBody) flush(to sumOf) {
	if b.count[to] == 0 {
		return
	}
	b.count[to] = 0
	pairs := b.add("addPairs", temp, 0, b.pending[to], b.bits(0x00010001))
	if _, begun := b.sums[to]; !begun && b.bias == 0 {
		b.sums[to] = pairs
		return
	}
	b.sums[to] = b.iadd(b.sum(to), pairs)
}

// sum is what has been summed up. The first sum of a scale begins with the negative sum of the activations times the
// bias.
func (b *panelBody) sum(of sumOf) val {
	if v, ok := b.sums[of]; ok {
		return v
	}
	if b.fromFloat() {
		return b.add("copy", temp, 0, b.base(of.power))
	}
	if b.bias == 0 || b.begun[of.scale] {
		return b.add("zero", temp, 0)
	}
	b.begun[of.scale] = true
	from := of.scale * b.together()
	at := from/32*recordBytes + recordSum
	if b.together() == 16 {
		at += 4 + from%32/16*4
	}
	n := bits.TrailingZeros(uint(b.bias)) + of.power
	if b.t == avx512 && n > 0 {
		return b.add("shlBroadcast", temp, at<<5|n)
	}
	return b.shift(b.add("broadcast", temp, at), -n)
}

// total is the sum of a scale as a float32.
func (b *panelBody) total(scale int) val {
	if b.fromFloat() {
		for of, v := range b.sums {
			if of.scale == scale {
				return b.minus(v, b.base(of.power))
			}
		}
	}
	if !b.f.factor {
		return b.toFloat(b.integer(scale))
	}
	if both, ok := b.pairs[scale]; ok {
		return b.toFloat(b.timesFactors(scale, both))
	}
	low := b.timesFactor(2 * scale)
	return b.toFloat(b.iadd(low, b.timesFactor(2*scale+1)))
}

// timesFactor is a sum times its factor. Both fit in 16 bits.
func (b *panelBody) timesFactor(of int) val {
	op := "addPairs" // the upper half of a factor being 0
	if b.t == neon {
		op = "imul"
	}
	return b.add(op, temp, 0, b.integer(of), b.factor[of])
}

// timesFactors is the two sums of a scale times their factors. Each sum is of one power of two, which it keeps if both
// have the same and fit in 16 bits.
func (b *panelBody) timesFactors(scale int, both factors) val {
	low, lowPower := b.only(2 * scale)
	high, highPower := b.only(2*scale + 1)
	power := 0
	if most := 16 * 127 * max(b.f.top-b.f.bias, b.f.bias); lowPower == highPower && most<<lowPower < 1<<15 {
		power = lowPower
	}
	x := b.pair(b.shift(low, lowPower-power), b.shift(high, highPower-power-16))
	x = b.add("addPairs", temp, 0, x, both.v)
	if power += both.power; power > 0 {
		x = b.sar(x, power)
	}
	return x
}

// only is the sum of what has a factor, which is of one power of two.
func (b *panelBody) only(factor int) (v val, power int) {
	for of := range b.sums {
		if of.scale == factor {
			power = of.power
		}
	}
	b.flush(sumOf{factor, power})
	return b.sums[sumOf{factor, power}], power
}

// integer is the sum of what has a scale or a factor.
func (b *panelBody) integer(scale int) val {
	total := none
	for power := range 8 {
		of := sumOf{scale, power}
		b.flush(of)
		v, ok := b.sums[of]
		if !ok {
			continue
		}
		if power > 0 {
			v = b.sar(v, power)
		}
		if total != none {
			v = b.iadd(total, v)
		}
		total = v
	}
	return total
}

// fromFloat tells whether sums begin with the bits of a float32, so that they end as one: with base of their power.
func (b *panelBody) fromFloat() bool { return b.vec && b.t == avx512 && b.bias == 0 && b.f.single }

// number is the integer that v has in so many bits from bit n on, plus more, as a float32. With AVX-512 a float32 gets
// these bits at the end of its significand, from which a subtraction takes what else it is.
func (b *panelBody) number(v val, n, width, more int) val {
	mask := uint64(1)<<width - 1
	if !b.vec || b.t != avx512 || n+width == 32 {
		if v = b.shift(v, n); n+width < 32 {
			v = b.and(v, b.bits(mask))
		}
		if more != 0 {
			v = b.iadd(v, b.bits(uint64(uint32(more))))
		}
		return b.toFloat(v)
	}
	if at := n &^ 7; n+width > 22 {
		v, n = b.byteFrom(v, at), n-at
	}
	x := b.andOr(v, b.bits(mask<<n), b.base(n))
	return b.minus(x, b.c(1.5*float64(int(1)<<(23-n))-float64(more)))
}

// byteFrom is v shifted right by n bits, by which several numbers are.
func (b *panelBody) byteFrom(v val, n int) val {
	of := shifted{v, n}
	if _, ok := b.shifts[of]; !ok {
		b.shifts[of] = b.shr(v, n)
	}
	return b.shifts[of]
}

// base is a float32 whose ulp, as bit n of a word, counts 1: integers below 2^(22-n) can be added to its bits.
func (b *panelBody) base(n int) val { return b.c(1.5 * float64(int(1)<<(23-n))) }

// A shifted is a value shifted right.
type shifted struct {
	v val
	n int
}

// timesActivation is x times the float32 so many bytes into the activations. With AVX-512 a multiplication reads
// it, as a broadcast of its own takes a place among the calculations.
func (b *panelBody) timesActivation(x val, at int) val {
	if b.t == avx512 {
		return b.add("mulBroadcast", temp, at, x)
	}
	return b.times(x, b.add("broadcast", temp, at))
}

// finish ends the weights of the i-th scale, or if it is one for more than 32 the i-th 32 weights of the block; they
// may have an offset, or two, those of the halves.
func (b *panelBody) finish(i int, s val, offsets ...val) {
	groups := max(1, b.f.each/32) // of a scale
	if !b.vec {
		if i%groups == 0 {
			b.do("storeScale", 64*i/groups, s)
		}
		for j, m := range offsets {
			b.do("storeOffset", 64*(len(offsets)*i+j), m)
		}
		return
	}
	y, record := b.named(resultName(0)), i*recordBytes
	switch {
	case b.f.each == 16:
		part := b.times(b.total(i), s)
		if i%2 == 1 {
			b.do("addInto", 0, y, b.timesActivation(b.plus(b.partial, part), i/2*recordBytes+recordScale))
		}
		b.partial = part
		return
	case groups == 1:
		s = b.timesActivation(s, record+recordScale)
		b.do("addInto", 0, y, b.times(b.total(i), s))
	}
	for j, m := range offsets {
		scaled := recordScaledSum
		if len(offsets) == 2 {
			scaled = recordScaledLow + 4*j
		}
		b.do("addInto", 0, y, b.timesActivation(m, record+scaled))
	}
	if groups == 1 {
		return
	}
	part := b.timesActivation(b.total(i), record+recordScale)
	if i%groups > 0 {
		part = b.plus(b.partial, part)
	}
	if b.partial = part; i%groups == groups-1 {
		b.do("addInto", 0, y, b.times(part, s))
	}
}
