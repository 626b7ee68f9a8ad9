package main

import "fmt"

// update writes package update: one step of an optimizer on runs of elements. The formulas are those of the Go
// functions in kernels/update, operation for operation.
func update() *source {
	s := newSource("update")
	for _, elem := range []int{4, 8} {
		s.steps(elem)
	}
	return s
}

func (s *source) steps(elem int) {
	write := func(name, doc, pointers, scalars string, f func(b *body)) {
		name = typed(name, elem)
		s.write(&loop{name: name, elem: elem, body: f,
			list: fmt.Sprintf("%s *%s, %s %s, n int", pointers, float(elem), scalars, float(elem)),
			doc:  name + " " + doc + " of n elements, a multiple of 16."})
	}
	s.simple("combine", "z = x·a + y·b", elem, "z, x, y", "a, b", func(b *body) val {
		return b.plus(b.times(b.load(1), b.scalar("a")), b.times(b.load(2), b.scalar("b")))
	})
	write("descend", "subtracts (grad·sign + p·l2)·rate from p", "p, grad", "sign, l2, rate", func(b *body) {
		p := b.load(0)
		b.store(0, b.minus(p, b.times(b.slope(p, b.load(1)), b.scalar("rate"))))
	})
	write("momentum", "sets x = grad·sign + p·l2 and b = b·keep + x·add and subtracts (x·fresh + b·old)·rate from p",
		"p, grad, b", "sign, l2, keep, add, fresh, old, rate", func(b *body) {
			p := b.load(0)
			x := b.slope(p, b.load(1))
			buf := b.plus(b.times(b.load(2), b.scalar("keep")), b.times(x, b.scalar("add")))
			b.store(2, buf)
			u := b.plus(b.times(x, b.scalar("fresh")), b.times(buf, b.scalar("old")))
			b.store(0, b.minus(p, b.times(u, b.scalar("rate"))))
		})
	moments := "sets x = grad·sign + p·l2, m = m·b1 + x·c1 and v = v·b2 + x²·c2"
	write("adam", moments+" and p = p·decay - m/(√v·root + eps)·rate", "p, grad, m, v",
		"sign, l2, decay, b1, c1, b2, c2, root, eps, rate", func(b *body) {
			p, m, v := b.moments()
			b.descent(p, m, v)
		})
	write("adamMax", moments+", top = max(top, v) and p = p·decay - m/(√top·root + eps)·rate", "p, grad, m, v, top",
		"sign, l2, decay, b1, c1, b2, c2, root, eps, rate", func(b *body) {
			p, m, v := b.moments()
			top := b.load(4)
			top = b.choose(b.lessEqual(v, top), top, v)
			b.store(4, top)
			b.descent(p, m, top)
		})
	write("lion", "sets x = grad·sign, subtracts sign(m·b1 + x·c1)·rate from p·decay and sets m = m·b2 + x·c2",
		"p, grad, m", "sign, decay, b1, c1, b2, c2, rate", func(b *body) {
			x, m := b.times(b.load(1), b.scalar("sign")), b.load(2)
			c := b.plus(b.times(m, b.scalar("b1")), b.times(x, b.scalar("c1")))
			b.store(2, b.plus(b.times(m, b.scalar("b2")), b.times(x, b.scalar("c2"))))
			one := b.choose(b.less(c, b.c(0)), b.c(-1), c)
			one = b.choose(b.less(b.c(0), c), b.c(1), one)
			b.store(0, b.minus(b.times(b.load(0), b.scalar("decay")), b.times(one, b.scalar("rate"))))
		})
}

// slope is g·sign + p·l2.
func (b *body) slope(p, g val) val {
	return b.plus(b.times(g, b.scalar("sign")), b.times(p, b.scalar("l2")))
}

// moments updates m and v; p comes out decayed.
func (b *body) moments() (p, m, v val) {
	p = b.load(0)
	x := b.slope(p, b.load(1))
	p = b.times(p, b.scalar("decay"))
	m = b.load(2)
	v = b.load(3) // before the first store: the runs may lie so that the processor waits for one
	m = b.plus(b.times(m, b.scalar("b1")), b.times(x, b.scalar("c1")))
	b.store(2, m)
	v = b.plus(b.times(v, b.scalar("b2")), b.times(b.times(x, x), b.scalar("c2")))
	b.store(3, v)
	return p, m, v
}

// descent stores p - m/(√v·root + eps)·rate.
func (b *body) descent(p, m, v val) {
	d := b.plus(b.times(b.root(v), b.scalar("root")), b.scalar("eps"))
	b.store(0, b.minus(p, b.times(b.over(m, d), b.scalar("rate"))))
}
