package main

import (
	"fmt"
	"math"
	"strings"
)

// num writes package num: loops over elements and sums in 16 lanes. The
// formulas are those of the Go functions in kernels/num, operation for
// operation.
func num() *source {
	s := newSource("num")
	for _, elem := range []int{4, 8} {
		s.arithmetic(elem)
		s.sums(elem)
	}
	s.comparisons()
	s.functions()
	s.rotations()
	return s
}

// typed names a function and its element type.
func typed(name string, elem int) string { return fmt.Sprintf("%sF%d", name, 8*elem) }

func float(elem int) string { return fmt.Sprintf("float%d", 8*elem) }

// simple writes a loop with one result: pointers and scalars are names, the
// first pointer is the result's.
func (s *source) simple(name, doc string, elem int, pointers, scalars string, f func(b *body) val) {
	list := fmt.Sprintf("%s *%s", pointers, float(elem))
	if scalars != "" {
		list += fmt.Sprintf(", %s %s", scalars, float(elem))
	}
	name = typed(name, elem)
	s.write(&loop{name: name, list: list + ", n int", elem: elem,
		doc:  name + " computes " + doc + " of n elements, a multiple of 16.",
		body: func(b *body) { b.store(0, f(b)) }})
}

func (s *source) arithmetic(elem int) {
	two := func(name, doc string, f func(b *body, x, y val) val) {
		s.simple(name, doc, elem, "z, x, y", "", func(b *body) val { return f(b, b.load(1), b.load(2)) })
	}
	two("add", "z = x + y", (*body).plus)
	two("sub", "z = x - y", (*body).minus)
	two("mul", "z = x·y", (*body).times)
	two("div", "z = x/y", (*body).over)
	two("maximum", "the larger of x and y, NaN if one is, +0 of two zeros", func(b *body, x, y val) val {
		return b.extreme(x, y, "max", "and")
	})
	two("minimum", "the smaller of x and y, NaN if one is, -0 of two zeros", func(b *body, x, y val) val {
		return b.extreme(x, y, "min", "or")
	})
	sign := uint64(1) << (8*elem - 1)
	s.simple("neg", "y = -x", elem, "y, x", "", func(b *body) val { return b.xor(b.load(1), b.bits(sign)) })
	s.simple("abs", "y = |x|", elem, "y, x", "", func(b *body) val { return b.and(b.load(1), b.bits(sign-1)) })
	s.simple("sqrt", "y = √x", elem, "y, x", "", func(b *body) val { return b.root(b.load(1)) })
	s.simple("fma", "z = a·b + c", elem, "z, a, b, c", "", func(b *body) val {
		return b.fma(b.load(1), b.load(2), b.load(3))
	})
	s.simple("scale", "y = x·a", elem, "y, x", "a", func(b *body) val { return b.times(b.load(1), b.scalar("a")) })
	s.simple("quotient", "y = x/a", elem, "y, x", "a", func(b *body) val { return b.over(b.load(1), b.scalar("a")) })
	s.simple("axpy", "y = x·a + y", elem, "y, x", "a", func(b *body) val {
		return b.fma(b.load(1), b.scalar("a"), b.load(0))
	})
	s.simple("rmsScale", "y = (x·r)·w", elem, "y, x, w", "r", func(b *body) val {
		return b.times(b.times(b.load(1), b.scalar("r")), b.load(2))
	})
	s.simple("layerScale", "y = ((x - m)·r)·w + b, the last product fused", elem, "y, x, w, b", "m, r",
		func(b *body) val {
			d := b.minus(b.load(1), b.scalar("m"))
			return b.fma(b.times(d, b.scalar("r")), b.load(2), b.load(3))
		})
}

// extreme is what max and min are in Go. The amd64 instruction gives y if one of
// the operands is NaN and if both are zero.
func (b *body) extreme(x, y val, op, ofZeros string) val {
	r := b.add(op, temp, 0, x, y)
	if b.t == neon {
		return r
	}
	r = b.choose(b.equal(x, y), b.add(ofZeros, temp, 0, x, y), r)
	return b.choose(b.notEqual(x, x), x, r)
}

func (s *source) sums(elem int) {
	write := func(name, doc, pointers, scalars string, f func(b *body)) {
		list := fmt.Sprintf("lanes, %s *%s", pointers, float(elem))
		if scalars != "" {
			list += fmt.Sprintf(", %s %s", scalars, float(elem))
		}
		name = typed(name, elem)
		l := &loop{name: name, list: list + ", n int", elem: elem, accumulates: true, body: f,
			doc: name + " " + doc + " n is a multiple of 16; lanes has 16 elements."}
		if strings.HasPrefix(name, "max") || strings.HasPrefix(name, "min") {
			l.only = []*tier{avx2, neon} // with AVX-512 the way through a mask register takes twice as long
		}
		s.write(l)
	}
	write("sum", "adds x[i] to lane i%16.", "x", "", func(b *body) { b.addInto(b.load(0)) })
	write("sum4", "adds (w[i] + x[i]) + (y[i] + z[i]) to lane i%16.", "w, x, y, z", "", func(b *body) {
		b.addInto(b.plus(b.plus(b.load(0), b.load(1)), b.plus(b.load(2), b.load(3))))
	})
	write("dot", "adds x[i]·y[i], fused, to lane i%16.", "x, y", "", func(b *body) { b.fmaInto(b.load(0), b.load(1)) })
	write("squares", "adds (x[i] - m)², fused, to lane i%16.", "x", "m", func(b *body) {
		d := b.minus(b.load(0), b.scalar("m"))
		b.fmaInto(d, d)
	})
	write("expSum", "sets y[i] = exp(x[i] - m) and adds it to lane i%16.", "y, x", "m", func(b *body) {
		e := b.exp(b.minus(b.load(1), b.scalar("m")))
		b.store(0, e)
		b.addInto(e)
	})
	write("max", "takes the larger of lane i%16 and x[i]; a NaN stays, the sign of a zero is unspecified.", "x", "",
		func(b *body) { b.extremeInto("max") })
	write("min", "takes the smaller of lane i%16 and x[i]; a NaN stays, the sign of a zero is unspecified.", "x", "",
		func(b *body) { b.extremeInto("min") })
}

// extremeInto relies on the amd64 instruction's giving its second operand if one
// is NaN: first x, so that a NaN in x gets into the accumulator; and one that is
// in it already is put back.
func (b *body) extremeInto(op string) {
	acc, x := b.acc(), b.load(0)
	r := b.add(op, temp, 0, acc, x)
	if b.t != neon {
		r = b.choose(b.notEqual(acc, acc), acc, r)
	}
	b.do("moveInto", 0, acc, r)
}

func (s *source) comparisons() {
	for _, c := range []struct {
		name, doc string
		f         func(b *body, x, y val) val
	}{
		{"equal", "x == y", (*body).equal}, {"notEqual", "x != y", (*body).notEqual},
		{"less", "x < y", (*body).less}, {"lessEqual", "x <= y", (*body).lessEqual},
	} {
		s.write(&loop{name: c.name + "F32", list: "z *bool, x, y *float32, n int", elem: 4,
			doc:  c.name + "F32 computes z = " + c.doc + " of n elements, a multiple of 16.",
			body: func(b *body) { b.storeBools(0, c.f(b, b.load(1), b.load(2))) }})
	}
}

func (s *source) functions() {
	one := func(name, doc string, elem int, f func(b *body, x val) val) {
		s.simple(name, doc, elem, "y, x", "", func(b *body) val { return f(b, b.load(1)) })
	}
	one("exp", "y = exp(x)", 4, (*body).exp)
	one("exp", "y = exp(x)", 8, (*body).exp)
	one("log", "y = ln(x)", 4, (*body).log)
	one("tanh", "y = tanh(x)", 4, (*body).tanh)
	one("erf", "y = erf(x)", 4, (*body).erf)
	one("sigmoid", "y = 1/(1 + exp(-x))", 4, (*body).sigmoid)
	one("silu", "y = x·sigmoid(x)", 4, func(b *body, x val) val { return b.times(x, b.sigmoid(x)) })
	s.simple("swiglu", "y = silu(x)·u", 4, "y, x, u", "", func(b *body) val {
		x := b.load(1)
		return b.times(b.times(x, b.sigmoid(x)), b.load(2))
	})
	one("gelu", "y = ½x·(1 + erf(x/√2))", 4, func(b *body, x val) val {
		e := b.erf(b.times(x, b.c(math.Sqrt2/2)))
		return b.times(b.times(x, b.c(0.5)), b.plus(b.c(1), e))
	})
	one("geluTanh", "y = x·sigmoid(√(8/π)·(x + 0.044715x³))", 4, func(b *body, x val) val {
		u := b.times(x, b.fma(b.times(x, x), b.c(0.044715*geluSlope), b.c(geluSlope)))
		return b.times(x, b.sigmoid(u))
	})
}

const geluSlope = 1.5957691216057308 // √(8/π)

// exp: see exp32 and exp64 of kernels/num.
func (b *body) exp(x val) val {
	top, low := 89.0, -104.0
	round, mantissa, bias := 0x1.8p23, 23, uint64(127)
	hi, lo := 0x1.63p-1, -0x1.bd0106p-13
	coefficients := []float64{0x1.6ab89ep-10, 0x1.123d70p-7, 0x1.55585ap-5, 0x1.55548cp-3, 0x1.fffffcp-2}
	roundBits := uint64(math.Float32bits(float32(round)))
	if b.elem == 8 {
		top, low = 710, -746
		round, mantissa, bias = 0x1.8p52, 52, 1023
		hi, lo = 0x1.62e42ffp-1, -0x1.718432a1b0e26p-35
		coefficients = []float64{0x1.48cb53f91ecccp-33, 0x1.1f8f7ddbe7182p-29, 0x1.ae785857f618ap-26,
			0x1.27e4c90f74178p-22, 0x1.71de341e669c5p-19, 0x1.a01a01ae78684p-16, 0x1.a01a01a1e2601p-13,
			0x1.6c16c16c14e67p-10, 0x1.1111111110d5ep-7, 0x1.5555555555558p-5, 0x1.5555555555556p-3, 0.5}
		roundBits = math.Float64bits(round)
	}
	x = b.atLeast(b.c(low), b.atMost(b.c(top), x))
	t := b.fma(x, b.c(math.Log2E), b.c(round))
	n := b.minus(t, b.c(round))
	r := b.fnma(n, b.c(lo), b.fnma(n, b.c(hi), x))
	q := b.horner(r, coefficients...)
	p := b.plus(b.c(1), b.fma(b.times(r, r), q, r))
	if b.t == avx512 {
		return b.add("scalef", temp, 0, p, n)
	}
	// 2ⁿ in two factors: i>>1 and the rest, whose biased exponents come from i + 2·bias, which is positive
	wordMask := uint64(1)<<(8*b.elem-1)<<1 - 1
	i := b.iadd(t, b.bits((2*bias-roundBits)&wordMask))
	h := b.shr(i, 1)
	g := b.isub(i, h)
	return b.times(b.times(p, b.shl(h, mantissa)), b.shl(g, mantissa))
}

// log: see log32 of kernels/num.
func (b *body) log(x0 val) val {
	subnormal := b.less(x0, b.c(0x1p-126))
	scaled := b.times(x0, b.c(0x1p23))
	x := b.choose(subnormal, scaled, x0)
	shift := b.sar(b.isub(x, b.bits(0x3F3504F3)), 23)
	e := b.toFloat(shift)
	e = b.choose(b.less(x0, b.c(0x1p-126)), b.minus(e, b.c(23)), e)
	f := b.minus(b.isub(x, b.shl(shift, 23)), b.c(1))
	s := b.over(f, b.plus(f, b.c(2)))
	z := b.times(s, s)
	p := b.horner(z, 0x1.31e0d8p-2, 0x1.995ed4p-2, 0x1.55557ap-1)
	h := b.times(b.times(f, f), b.c(0.5))
	small := b.fma(s, b.fma(z, p, h), b.times(e, b.c(-0x1.bd0106p-13)))
	y := b.fma(e, b.c(0x1.63p-1), b.minus(f, b.minus(h, small)))
	inf := b.c(math.Inf(1))
	y = b.choose(b.equal(x0, inf), inf, y)
	zero := b.c(0)
	y = b.choose(b.lessEqual(zero, x0), y, b.c(math.NaN()))
	return b.choose(b.equal(x0, zero), b.c(math.Inf(-1)), y)
}

const signBit32 = 1 << 31

// tanh: see tanh of kernels/num.
func (b *body) tanh(x val) val {
	sign := b.and(x, b.bits(signBit32))
	a := b.and(x, b.bits(signBit32-1))
	z := b.times(a, a)
	p := b.horner(z, -0x1.767a14p-8, 0x1.524c40p-6, -0x1.b842c4p-5, 0x1.11075ep-3, -0x1.555534p-2)
	near := b.fma(b.times(a, z), p, a)
	e := b.exp(b.plus(a, a))
	far := b.minus(b.c(1), b.over(b.c(2), b.plus(e, b.c(1))))
	return b.or(b.choose(b.less(a, b.c(0.625)), near, far), sign)
}

// sigmoid: see sigmoid of kernels/num.
func (b *body) sigmoid(x val) val {
	z := b.exp(b.or(x, b.bits(signBit32)))
	return b.over(b.choose(b.less(x, b.c(0)), z, b.c(1)), b.plus(z, b.c(1)))
}

// erf: see erf of kernels/num.
func (b *body) erf(x val) val {
	sign := b.and(x, b.bits(signBit32))
	a := b.and(x, b.bits(signBit32-1))
	z := b.times(a, a)
	near := b.fma(a, b.horner(z, erfNear...), a)
	q := b.horner(b.atMost(b.c(4), a), erfFar...)
	far := b.minus(b.c(1), b.exp(b.xor(q, b.bits(signBit32))))
	return b.or(b.choose(b.less(a, b.c(1)), near, far), sign)
}

var erfNear = []float64{0x1.496a36p-14, -0x1.a3f702p-11, 0x1.5405b2p-8, -0x1.b7f90ep-6,
	0x1.ce2cf8p-4, -0x1.81273ep-2, 0x1.06eba8p-3}

var erfFar = []float64{-0x1.86dcf0p-13, 0x1.825a9cp-9, -0x1.65cb48p-6, 0x1.a6532ap-4,
	0x1.46baf0p-1, 0x1.2088eap+0, 0x1.66215cp-12}

func (s *source) rotations() {
	s.write(&loop{name: "ropeHalfF32", list: "y0, y1, x0, x1, cos, sin *float32, n int", elem: 4,
		doc: "ropeHalfF32 turns n pairs, a multiple of 16: y0 = x0·cos - x1·sin, y1 = x0·sin + x1·cos.",
		body: func(b *body) {
			x0, x1, cos, sin := b.load(2), b.load(3), b.load(4), b.load(5)
			b.store(0, b.minus(b.times(x0, cos), b.times(x1, sin)))
			b.store(1, b.plus(b.times(x0, sin), b.times(x1, cos)))
		}})
	s.write(&loop{name: "ropePairsF32", list: "y, x, cos2, sin2 *float32, n int", elem: 4,
		doc: "ropePairsF32 turns the n/2 pairs of neighbours of n elements, a multiple of 16: an even one by " +
			"x·cos - next·sin, an odd one by previous·sin + x·cos. There is one cosine and one sine for a pair.",
		body: func(b *body) {
			x := b.load(1)
			cos, sin := b.add("loadTwice", temp, 2), b.add("loadTwice", temp, 3)
			turned := b.times(b.add("swapPairs", temp, 0, x), sin)
			turned = b.xor(turned, b.bits64(signBit32)) // minus in the even lanes
			b.store(0, b.plus(b.times(x, cos), turned))
		}})
}
