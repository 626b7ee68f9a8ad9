package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Einsum is the sum of products of any number of tensors, aligned by axis name: the axes of the result are
// the whole equation. Of the axes that several operands have, those in out are batch axes and the others are
// contracted; of those that one operand has alone, the ones in out are free and the others are summed first.
//
// Shape: xs[0][batch, head, seq, head_dim], xs[1][batch, head, key_seq, head_dim] → y[batch, head, seq,
// key_seq] for out="batch head seq key_seq".
//
// Numerics: the operands are taken from left to right, but one that shares no axis with the product so far
// waits until no other does; put those first whose product is small. Contractions are as in dot, sums as in
// sum, f16 and bf16 compute in f32 and round once. The result has the operands' dtype.
//
// Errors: an axis of out that no operand has; sizes or dtypes that differ.
//
// Example:
//
//	einsum(ones(row=2, in_=3), ones(in_=3, out=4), out="row out")
type Einsum struct {
	Xs  []*Tensor `arg:"xs"`
	Out Axes      `arg:"out"`
}

var einsum = Declare[Einsum]("einsum")

// EinsumAll is the sum of products of xs with the axes that out writes; see the Einsum operation.
func EinsumAll(out string, xs ...*Tensor) *Tensor {
	return einsum.Call(Einsum{Xs: xs, Out: axisList(out)})
}

// equation is how an einsum is computed. It follows from the names alone, never from the sizes: otherwise
// a row of a batch would not have the bits of that row alone.
type equation struct {
	alone []*axis.List // by operand: the axes summed first
	steps []pairing
}

// pairing takes operand w to what was computed so far.
type pairing struct {
	w    int
	con  axis.Contraction
	swap bool       // w comes first in con
	out  *axis.List // of the result, if con.Out in another order
}

// Names sorts the axes by role.
func (a *Einsum) Names(p *Plan) {
	all := axis.Empty
	for _, x := range a.Xs {
		all = all.Append(x.axes)
	}
	for _, name := range a.Out.Names() {
		if !all.Has(name) {
			var tries []remedy
			if near := all.Nearest(name); near != "" {
				tries = append(tries, p.c.recall("", p.c.info.respelled(a, name, near)))
			}
			fixed := *a
			fixed.Out = a.Out.Without(axisList(name))
			p.Fail(fmt.Sprintf("out has the axis %q, which no operand has", name),
				p.c.hint(append(tries, p.c.recall("leave it out", &fixed))...))
		}
	}
	p.Out(a.Out, p.Same(a.Xs...))
	p.Keep(a.equation())
}

func (a *Einsum) equation() *equation {
	e := &equation{alone: make([]*axis.List, len(a.Xs))}
	rest := make([]*axis.List, len(a.Xs)) // what remains of each operand's axes
	for i, x := range a.Xs {
		needed := a.Out
		for j, y := range a.Xs {
			if i != j {
				needed = needed.Append(y.axes)
			}
		}
		e.alone[i] = x.axes.Without(needed)
		rest[i] = x.axes.Without(e.alone[i])
	}
	sofar, waiting := rest[0], make([]int, 0, len(a.Xs))
	for i := range a.Xs[1:] {
		waiting = append(waiting, i+1)
	}
	for len(waiting) > 0 {
		next := 0
		for k, w := range waiting {
			if sofar.Shared(rest[w]).Len() > 0 {
				next = k
				break
			}
		}
		w := waiting[next]
		waiting = append(waiting[:next:next], waiting[next+1:]...)
		keep := a.Out
		for _, i := range waiting {
			keep = keep.Append(rest[i])
		}
		step := pairing{w: w, con: axis.Contract(sofar, rest[w], sofar.Shared(rest[w]).Without(keep))}
		step.out = step.con.Out
		if len(waiting) == 0 {
			step.arrange(a.Out)
		}
		sofar = step.out
		e.steps = append(e.steps, step)
	}
	return e
}

// arrange makes the step give the axes in the order out, if a matrix product can.
func (s *pairing) arrange(out *axis.List) {
	s.out = out
	con := s.con
	con.Batch, con.A, con.B = out.Shared(con.Batch), out.Shared(con.A), out.Shared(con.B)
	if con.Out = con.Batch.Append(con.A).Append(con.B); con.Out == out {
		s.con = con
		return
	}
	con.A, con.B = con.B, con.A
	if con.Out = con.Batch.Append(con.A).Append(con.B); con.Out == out {
		s.con, s.swap = con, true
	}
}

// Eval contracts step by step.
func (a *Einsum) Eval(c *Ctx) {
	out, e := c.Out(0), c.Data().(*equation)
	if out.Len() == 0 {
		return
	}
	if len(e.steps) == 0 {
		c.sumTo(out, a.Xs[0], e.alone[0])
		return
	}
	sofar := c.sumAlone(a.Xs[0], e.alone[0])
	for i, step := range e.steps {
		w := c.sumAlone(a.Xs[step.w], e.alone[step.w])
		dst := out
		if i < len(e.steps)-1 {
			dst = c.Scratch(classOf(out.dtype), step.out, sizesIn(step.out, sofar, w))
		}
		c.product(dst, sofar, w, &step)
		sofar = dst
	}
}

// sizesIn is the sizes of the axes, each of which x or y has.
func sizesIn(axes *axis.List, x, y *Tensor) []int {
	sizes := make([]int, 0, axes.Len())
	for _, name := range axes.Names() {
		sizes = append(sizes, max(x.Size(name), y.Size(name)))
	}
	return sizes
}

// product computes one step.
func (c *Ctx) product(out, x, w *Tensor, step *pairing) {
	if out.Len() == 0 {
		return
	}
	if step.con.Sum.Len() == 0 {
		switch classOf(out.dtype) {
		case dtype.F32:
			multiplyEach[float32](c, out, x, w)
		case dtype.F64:
			multiplyEach[float64](c, out, x, w)
		default:
			multiplyEach[int64](c, out, x, w)
		}
		return
	}
	if step.swap {
		x, w = w, x
	}
	dst := out
	if step.con.Out != out.axes {
		dst = c.Scratch(classOf(out.dtype), step.con.Out, sizesIn(step.con.Out, x, w))
	}
	c.contract(dst, x, w, step.con)
	if dst != out {
		c.copyInto(out, dst.permuted(out.axes))
	}
}

// multiplyEach is out = x·w without a sum; both are read as they lie.
func multiplyEach[C number](c *Ctx, out, x, w *Tensor) {
	pointwise(c, out, func(_ Op, z []C, xs *[maxOperands][]C) {
		x, w := xs[0][:len(z)], xs[1][:len(z)]
		for i := range z {
			z[i] = C(x[i] * w[i])
		}
	}, x, w)
}

// sumAlone is x without the axes, over which it is summed; x itself if there are none.
func (c *Ctx) sumAlone(x *Tensor, axes *axis.List) *Tensor {
	if axes.Len() == 0 {
		return x
	}
	kept := x.axes.Without(axes)
	y := c.Scratch(classOf(x.dtype), kept, sizesIn(kept, x, x))
	c.sumTo(y, x, axes)
	return y
}

// sumTo is out = x summed over the axes, which may be none.
func (c *Ctx) sumTo(out, x *Tensor, axes *axis.List) {
	switch {
	case out.Len() == 0:
	case axes.Len() == 0:
		c.copyInto(out, x.permuted(out.axes))
	case classOf(x.dtype) == dtype.F32:
		reduceBlocks(c, out, c.Dense(x, out.axes.Append(axes), dtype.F32), num.Sum[float32], 1)
	case classOf(x.dtype) == dtype.F64:
		reduceBlocks(c, out, c.Dense(x, out.axes.Append(axes), dtype.F64), num.Sum[float64], 1)
	default:
		reduceBlocks(c, out, c.Dense(x, out.axes.Append(axes), dtype.I64), (*Sum)(nil).I64, 1)
	}
}

// Saves every operand but the one that wants a gradient alone.
func (*Einsum) Saves(want uint64) (in, out uint64) {
	if want&(want-1) != 0 || want&bit(63) != 0 {
		return ^uint64(0), 0
	}
	return ^want, 0
}

// VJP puts gy in the operand's place.
func (a *Einsum) VJP(_, gy []*Tensor, g *Grads) {
	for i, x := range a.Xs {
		if !g.Wants(i) {
			continue
		}
		xs, known := []*Tensor{gy[0]}, a.Out
		for j, y := range a.Xs {
			if i != j {
				xs, known = append(xs, y), known.Append(y.axes)
			}
		}
		g.Set(i, einsum.Call(Einsum{Xs: xs, Out: x.axes.Shared(known)}))
	}
}

// Samples covers the lengths of contracted, free and batch axes, one to four operands, results in other
// orders, and the dtypes.
func (*Einsum) Samples(m *Maker) (list []Einsum) {
	add := func(dt dtype.Type, out string, shapes ...string) {
		e := Einsum{Out: axisList(out)}
		for _, shape := range shapes {
			e.Xs = append(e.Xs, m.Tensor(dt, shape))
		}
		list = append(list, e)
	}
	for _, n := range lengths {
		add(dtype.F32, "row out", fmt.Sprintf("row=3 in=%d", n), fmt.Sprintf("in=%d out=2", n))
		add(dtype.F32, "out row", "row=3 in=5", fmt.Sprintf("in=5 out=%d", n))
		add(dtype.F32, "row", fmt.Sprintf("row=3 in=%d", n), fmt.Sprintf("in=%d row=3", n))
	}
	add(dtype.F32, "b a", "a=3 b=5")
	add(dtype.F32, "a", "a=3 b=5 c=2")
	add(dtype.F32, "row seq head", "row=2 head=3 seq=4 in=5", "row=2 in=5 head=3 key=2")
	add(dtype.F32, "", "a=3 b=5", "b=5 c=4", "c=4 a=3")
	add(dtype.F32, "d a", "a=3", "d=4 c=2", "a=3 b=5", "c=2 b=5 e=3")
	for _, dt := range allDTypes {
		add(dt, "row out", "row=3 in=17", "out=4 in=17")
		add(dt, "b a", "a=3 c=2", "b=4", "a=3 c=2", "c=2 b=4")
	}
	return list
}
