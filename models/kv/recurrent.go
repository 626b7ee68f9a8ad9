package kv

import (
	"fmt"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
)

// held is a tensor that several caches may hold. It is not changed.
type held struct {
	t       *core.Tensor
	holders int
}

// hold is h for one holder more.
func (h *held) hold() *held {
	if h != nil {
		h.holders++
	}
	return h
}

// release lets go of h, whose last holder frees the tensor.
func (h *held) release() {
	if h == nil {
		return
	}
	if h.holders--; h.holders == 0 {
		h.t.Free()
	}
}

// memory is what a recurrent layer knows of the rows that count, and what it will know after Commit.
type memory struct{ now, next *held }

// known is what is known, nil if that is nothing.
func (m *memory) known() *core.Tensor {
	if m.now == nil {
		return nil
	}
	return m.now.t
}

// keep makes x what will be known. The tensor is the memory's from now on.
func (m *memory) keep(x *core.Tensor) {
	x.Keep()
	m.next.release()
	m.next = &held{x, 1}
}

// commit makes what will be known what is known.
func (m *memory) commit() {
	if m.next != nil {
		m.now.release()
		m.now, m.next = m.next, nil
	}
}

// mostPoints is how many points a cache remembers.
const mostPoints = 8

// point is what the recurrent layers knew at a position.
type point struct {
	at     int
	states []*held // rows and state of every layer
}

func (p point) copy() point {
	q := point{p.at, append([]*held(nil), p.states...)}
	for _, h := range q.states {
		h.hold()
	}
	return q
}

// mark remembers the states of now. Of the points, those stay that are spread best: close to one another near the end,
// ever further apart before it.
func (c *Cache) mark() {
	p := point{at: c.length}
	for i := range c.layers {
		l := &c.layers[i]
		p.states = append(p.states, l.rows.now.hold(), l.state.now.hold())
	}
	if c.points = append(c.points, p); len(c.points) <= mostPoints {
		return
	}
	drop, least := 0, 0.0
	for i := 1; i < len(c.points)-1; i++ { // what its neighbours are apart, seen from the end
		gap := float64(c.points[i+1].at-c.points[i-1].at) / float64(c.length-c.points[i].at+1)
		if drop == 0 || gap < least {
			drop, least = i, gap
		}
	}
	for _, h := range c.points[drop].states {
		h.release()
	}
	c.points = append(c.points[:drop], c.points[drop+1:]...)
}

// restore makes what the recurrent layers knew at position n what they know, and forgets later points.
func (c *Cache) restore(n int) {
	for k := len(c.points) - 1; k >= 0 && c.points[k].at > n; k-- {
		for _, h := range c.points[k].states {
			h.release()
		}
		c.points = c.points[:k]
	}
	if len(c.points) == 0 {
		return
	}
	p := c.points[len(c.points)-1]
	for i := range c.layers {
		for k, m := range []*memory{&c.layers[i].rows, &c.layers[i].state} {
			m.next.release()
			m.now.release()
			m.next, m.now = nil, p.states[2*i+k].hold()
		}
	}
}

// held is everything that the recurrent layers hold, and the points.
func (c *Cache) held() (all []*held) {
	add := func(hs ...*held) {
		for _, h := range hs {
			if h != nil {
				all = append(all, h)
			}
		}
	}
	for i := range c.layers {
		l := &c.layers[i]
		add(l.rows.now, l.rows.next, l.state.now, l.state.next)
	}
	for _, p := range c.points {
		add(p.states...)
	}
	return all
}

var rowsAxes, kernelAxes = must(axis.Parse("row channel")), must(axis.Parse("channel kernel"))

// Convolve is a causal convolution of every channel with its own weights, the last of which is that of the row itself:
// y[row] is the sum over j of w[j] · x[row - kernel + 1 + j], where the rows before the first are 0. The layer
// remembers the rows that later ones will need.
//
// x[row, channel], w[channel, kernel] → y[row, channel]. Misuse panics with a *core.Error.
func (c *Cache) Convolve(i int, x, w *core.Tensor) *core.Tensor {
	l := c.layer("conv", i)
	needs("conv", "x", x, rowsAxes)
	needs("conv", "w", w, kernelAxes)
	if a, b := x.Size("channel"), w.Size("channel"); a != b {
		panic(&core.Error{Op: "conv", Msg: fmt.Sprintf("axis \"channel\" is %d in x, %s, but %d in w, %s", a, x.Shape(),
			b, w.Shape())})
	}
	n, kernel := x.Size("row"), w.Size("kernel")
	if kernel < 1 {
		panic(&core.Error{Op: "conv", Msg: "the kernel in " + w.Shape() + " has no places"})
	}
	before := l.rows.known()
	if before == nil {
		before = c.env.Zeros(x.DType(), rowsAxes, kernel-1, x.Size("channel"))
		defer before.Free()
	}
	all := core.ConcatAll("row", before, x)
	defer all.Free()
	var y *core.Tensor
	for j := range kernel {
		rows, weight := all.Slice("row", j, j+n, 1), w.At("kernel", j)
		term := rows.Mul(weight)
		rows.Free()
		weight.Free()
		if y == nil {
			y = term
			continue
		}
		sum := y.Add(term)
		y.Free()
		term.Free()
		y = sum
	}
	last := all.Slice("row", n, n+kernel-1, 1)
	l.rows.keep(last.Copy())
	last.Free()
	return y
}

// needs insists that an operand has the axes.
func needs(op, name string, x *core.Tensor, axes *axis.List) {
	for _, a := range axes.Without(x.Axes()).Names() {
		e := &core.Error{Op: op, Msg: fmt.Sprintf("no axis %q in %s, %s", a, name, x.Shape())}
		if free := x.Axes().Without(axes); free.Len() > 0 {
			e.Hint = fmt.Sprintf("rename the one that is meant: %s.rename(%s=%q)", name,
				core.Keyword(free.At(free.Len()-1)), a)
		}
		panic(e)
	}
}

// DeltaRule is the gated delta rule of core.DeltaRule, for which layer i of each cache keeps the state.
//
// q and k[row, some heads, key], v[row, heads, value], decay and beta[row, heads] → y[row, heads, value]. Heads are one
// axis or several, of which q and k have some. Misuse panics with a *core.Error.
func (b Batch) DeltaRule(i int, q, k, v, decay, beta *core.Tensor) *core.Tensor {
	a := core.DeltaRule{Q: q, K: k, V: v, Decay: decay, Beta: beta}
	if !k.Axes().Has("key") || !v.Axes().Has("value") {
		return core.ApplyDeltaRule(a) // which says what they lack, before there are states of no size
	}
	a.Parts = make([]core.DeltaRows, len(b))
	done := false
	defer func() {
		for j := range a.Parts {
			if to := a.Parts[j].To; to != nil && !done {
				to.Free()
			}
		}
	}()
	for j, part := range b {
		l := part.Cache.layer("delta_rule", i)
		a.Parts[j] = core.DeltaRows{Rows: part.Rows, From: l.state.known(), To: core.DeltaState(part.Cache.env, k, v)}
	}
	y := core.ApplyDeltaRule(a)
	done = true
	for j, part := range b {
		part.Cache.layers[i].state.keep(a.Parts[j].To)
	}
	return y
}
