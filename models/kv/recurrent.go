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

// discard forgets what will be known.
func (m *memory) discard() {
	m.next.release()
	m.next = nil
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
			m.discard()
			m.now.release()
			m.now = p.states[2*i+k].hold()
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
// y[row] is the sum over j of w[j] · x[row - kernel + 1 + j], where the rows before the first of a sequence are 0.
// Layer i of each cache remembers the rows that later ones will need.
//
// x[row, channel], w[channel, kernel] → y[row, channel]. Misuse panics with a *core.Error.
func (b Batch) Convolve(i int, x, w *core.Tensor) *core.Tensor {
	needs("conv", "x", x, rowsAxes)
	needs("conv", "w", w, kernelAxes)
	if m, n := x.Size("channel"), w.Size("channel"); m != n {
		panic(&core.Error{Op: "conv", Msg: fmt.Sprintf("axis \"channel\" is %d in x, %s, but %d in w, %s", m,
			x.Shape(), n, w.Shape())})
	}
	kernel, channels := w.Size("kernel"), x.Size("channel")
	if kernel < 1 {
		panic(&core.Error{Op: "conv", Msg: "the kernel in " + w.Shape() + " has no places"})
	}
	if n := b.rows(); x.Size("row") != n {
		panic(&core.Error{Op: "conv", Hint: "layers keep the rows that embed was given",
			Msg: fmt.Sprintf("x, %s, has %d rows, the batch has %d", x.Shape(), x.Size("row"), n)})
	}
	// All sequences lie behind one another, each after the rows before it; of the sums, those that begin in the rows
	// before belong to no row, except for the first.
	var parts, own []*core.Tensor
	var zeros *core.Tensor
	from := 0
	for _, part := range b {
		before := part.Cache.layer("conv", i).rows.known()
		if before == nil {
			if zeros == nil {
				zeros = part.Cache.env.Zeros(x.DType(), rowsAxes, kernel-1, channels)
				own = append(own, zeros)
			}
			before = zeros
		}
		rows := x.Slice("row", from, from+part.Rows, 1)
		parts, own, from = append(parts, before, rows), append(own, rows), from+part.Rows
	}
	all := core.ConcatAll("row", parts...)
	free(own...)
	sums := slide(all, w, kernel)
	from, own = 0, nil
	for _, part := range b {
		last := all.Slice("row", from+part.Rows, from+part.Rows+kernel-1, 1)
		part.Cache.layers[i].rows.keep(last.Copy())
		free(last)
		own = append(own, sums.Slice("row", from, from+part.Rows, 1))
		from += kernel - 1 + part.Rows
	}
	free(all)
	if len(b) == 1 {
		free(sums)
		return own[0]
	}
	y := core.ConcatAll("row", own...)
	free(append(own, sums)...)
	return y
}

// slide is the sums of a convolution over all rows of x: as many as there are places for the kernel.
func slide(x, w *core.Tensor, kernel int) (y *core.Tensor) {
	n := x.Size("row") - kernel + 1
	for j := range kernel {
		rows, weight := x.Slice("row", j, j+n, 1), w.At("kernel", j)
		term := rows.Mul(weight)
		free(rows, weight)
		if y == nil {
			y = term
			continue
		}
		sum := y.Add(term)
		free(y, term)
		y = sum
	}
	return y
}

func free(xs ...*core.Tensor) {
	for _, x := range xs {
		x.Free()
	}
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
	return b.recur("delta_rule", i, k, v, func(parts []core.StateRows) *core.Tensor {
		return core.ApplyDeltaRule(core.DeltaRule{Q: q, K: k, V: v, Decay: decay, Beta: beta, Parts: parts})
	})
}

// WKV is the recurrence of core.WKV, RWKV's time mixing, for which layer i of each cache keeps the state.
//
// r and k[row, head, key], v[row, head, value], decay and first[head, key] → y[row, head, value]. Misuse panics with a
// *core.Error.
func (b Batch) WKV(i int, r, k, v, decay, first *core.Tensor) *core.Tensor {
	return b.recur("wkv", i, k, v, func(parts []core.StateRows) *core.Tensor {
		return core.ApplyWKV(core.WKV{R: r, K: k, V: v, Decay: decay, First: first, Parts: parts})
	})
}

// recur runs a recurrence of k and v from what layer i knows of each sequence, and keeps the states after it.
func (b Batch) recur(op string, i int, k, v *core.Tensor, run func([]core.StateRows) *core.Tensor) *core.Tensor {
	if !k.Axes().Has("key") || !v.Axes().Has("value") {
		return run(nil) // which says what they lack, before there are states of no size
	}
	parts := make([]core.StateRows, len(b))
	done := false
	defer func() {
		for j := range parts {
			if to := parts[j].To; to != nil && !done {
				to.Free()
			}
		}
	}()
	for j, part := range b {
		l := part.Cache.layer(op, i)
		parts[j] = core.StateRows{Rows: part.Rows, From: l.state.known(), To: core.MakeState(part.Cache.env, k, v)}
	}
	y := run(parts)
	done = true
	for j, part := range b {
		part.Cache.layers[i].state.keep(parts[j].To)
	}
	return y
}
