package core

import (
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// LinearRecurrence is every state h of h[t] = a[t] · h[t-1] + b[t] along the axis, beginning with the initial state,
// or with b[0] if there is none: the recurrence of linear attention and of state-space models.
//
// Shape: b[batch, seq, embed], a[any of these axes], initial[any but seq] → h of b's axes for
// linear_recurrence(a, b, "seq"). The last state is h.at(seq=-1).
// Numerics: one step after another; product and sum are rounded once together; f16 and bf16 carry the state in f32.
//
// Errors: an axis that b lacks; integers; different dtypes.
//
// Example:
//
//	linear_recurrence(tensor(0.5), ones(seq=4), "seq")
type LinearRecurrence struct {
	A       *Tensor `arg:"a"`
	B       *Tensor `arg:"b"`
	Axis    Axis    `arg:"axis"`
	Initial *Tensor `arg:"initial?"`
}

var linearRecurrence = Declare[LinearRecurrence]("linear_recurrence")

// LinearRecurrence is the states of h[t] = x[t] · h[t-1] + b[t]; see the LinearRecurrence operation. The initial
// state may be nil.
func (x *Tensor) LinearRecurrence(b *Tensor, axis string, initial *Tensor) *Tensor {
	return linearRecurrence.Call(LinearRecurrence{A: x, B: b, Axis: Axis(axis), Initial: initial})
}

// Names keeps b's axes.
func (a *LinearRecurrence) Names(p *Plan) {
	p.Need(a.B, a.Axis)
	p.Within(a.A, a.B.axes, "b")
	p.Within(a.Initial, a.B.axes.Without(axisList(string(a.Axis))), "a state")
	p.Float(a.B)
	p.Out(a.B.axes, p.Same(a.B, a.A, a.Initial))
}

// Eval goes along the axis.
func (a *LinearRecurrence) Eval(c *Ctx) {
	if c.Out(0).Len() == 0 {
		return
	}
	if a.B.dtype == dtype.F64 {
		recur[float64](c, a)
	} else {
		recur[float32](c, a)
	}
}

func recur[C float32 | float64](c *Ctx, a *LinearRecurrence) {
	out := c.Out(0)
	k := out.axes.Index(string(a.Axis))
	steps, inner := out.sizes[k], 1
	for _, n := range out.sizes[k+1:] {
		inner *= n
	}
	h := out
	if out.dtype != native[C]() {
		h = c.Scratch(native[C](), out.axes, out.sizes)
	}
	hs, bs := elementsOf[C](h), elementsOf[C](c.Dense(a.B, out.axes, native[C]()))
	as := elementsOf[C](c.fullAs(a.A, native[C](), out.axes, out))
	var first []C
	if a.Initial != nil {
		first = elementsOf[C](c.fullAs(a.Initial, native[C](), out.axes.Without(axisList(string(a.Axis))), out))
	}
	width := min(inner, max(256, 4*pointGrain/steps)) // a strip of states that go along together
	across := ceilDiv(inner, width)
	c.Split(out.Len()/steps/inner*across, max(1, pointGrain/(steps*width)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from := i % across * width
			n := min(width, inner-from)
			at := i/across*steps*inner + from
			if first == nil {
				copy(hs[at:][:n], bs[at:])
			} else {
				num.MulAdd(hs[at:][:n], as[at:][:n], first[i/across*inner+from:], bs[at:])
			}
			for k := range steps - 1 {
				if k%pauseLen == pauseLen-1 {
					c.Pause()
				}
				prev := hs[at:][:n]
				at += inner
				if n == 1 {
					hs[at] = num.FMA(as[at], prev[0], bs[at])
				} else {
					num.MulAdd(hs[at:][:n], as[at:][:n], prev, bs[at:])
				}
			}
		}
	})
	if h != out {
		c.copyInto(out, h)
	}
}

// fullAs is spreadAs, or t itself if it is that already.
func (c *Ctx) fullAs(t *Tensor, dt dtype.Type, axes *axis.List, like *Tensor) *Tensor {
	if t.axes == axes && t.dtype == dt && t.dense() {
		return t
	}
	return c.spreadAs(t, dt, axes, like)
}

// Saves a, the initial state and the states.
func (*LinearRecurrence) Saves(want uint64) (in, out uint64) { return 5, 1 }

// VJP is gh for b, where gh[t] = gy[t] + a[t+1] · gh[t+1] is the same recurrence backward; gh[t] · h[t-1] for a; and
// a[0] · gh[0] for the initial state.
func (a *LinearRecurrence) VJP(y, gy []*Tensor, g *Grads) {
	name, n := string(a.Axis), a.B.Size(string(a.Axis))
	gh := gy[0].wide()
	if n == 0 {
		g.Set(0, gh)
		g.Set(1, gh)
		if g.Wants(2) {
			g.Set(2, a.Initial.zerosIn(gh.env))
		}
		return
	}
	next, back := a.A.wide(), -1
	reverse := func(t *Tensor) *Tensor {
		return sliceOp.Call(Slice{X: t, Ranges: Map[Range]{axisList(name), []Range{{Step: &back}}}})
	}
	if next.axes.Has(name) { // the first coefficient of the way back is not used
		next = ConcatAll(name, next.Slice(name, 0, 1, 1), reverse(next.Slice(name, 1, n, 1)))
	}
	gh = reverse(next.LinearRecurrence(reverse(gh), name, nil))
	g.Set(1, gh)
	if g.Wants(0) {
		h := y[0].wide()
		first := h.Slice(name, 0, 1, 1).zerosIn(h.env)
		if a.Initial != nil {
			first = first.Add(a.Initial.wide())
		}
		g.Set(0, gh.Mul(ConcatAll(name, first, h.Slice(name, 0, n-1, 1))))
	}
	if g.Wants(2) {
		first := a.A.wide()
		if first.axes.Has(name) {
			first = first.At(name, 0)
		}
		g.Set(2, gh.At(name, 0).Mul(first))
	}
}

// Samples covers the numbers of steps and of states, coefficients with fewer axes, initial states, and the dtypes.
func (*LinearRecurrence) Samples(m *Maker) (list []LinearRecurrence) {
	for _, n := range lengths {
		list = append(list, LinearRecurrence{A: m.Tensor(dtype.F32, "row=2 seq=3 embed=%d", n),
			B: m.Tensor(dtype.F32, "row=2 seq=3 embed=%d", n), Axis: "seq"},
			LinearRecurrence{A: m.Tensor(dtype.F32, "row=2 seq=%d", n).times(0.5),
				B:    m.Tensor(dtype.F32, "row=2 seq=%d", n),
				Axis: "seq", Initial: m.Tensor(dtype.F32, "row=2")})
	}
	for _, dt := range floats {
		list = append(list,
			LinearRecurrence{A: m.Tensor(dt, "b=3 row=2"), B: m.Tensor(dt, "seq=5 row=2 b=3"), Axis: "seq",
				Initial: m.Tensor(dt, "b=3")},
			LinearRecurrence{A: m.Tensor(dt, ""), B: m.Tensor(dt, "row=2 seq=17"), Axis: "seq",
				Initial: m.Tensor(dt, "")},
			LinearRecurrence{A: m.Tensor(dt, "seq=7"), B: m.Tensor(dt, "a=2 seq=7 row=3"), Axis: "seq"})
	}
	return list
}
