package kv

import (
	"fmt"
	"strings"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
)

// memory is what a recurrent layer knows of the rows that count, and what it will know after Commit.
type memory struct{ now, next *core.Tensor }

// keep makes x, or a copy that outlives all scopes, what will be known.
func (m *memory) keep(env *core.Env, x *core.Tensor) {
	free(m.next)
	first := x.Axes().At(0)
	m.next = env.Tensor(x.DType(), x.Axes(), x.Sizes()...)
	m.next.SetSlice(x, first, 0, x.Size(first))
}

// commit makes what will be known what is known.
func (m *memory) commit() {
	if m.next != nil {
		free(m.now)
		m.now, m.next = m.next, nil
	}
}

func free(t *core.Tensor) {
	if t != nil {
		t.Free()
	}
}

var rowsAxes = must(axis.Parse("row channel"))

// Convolve is a causal convolution of every channel with its own weights, the last of which is that of the row itself:
// y[row] is the sum over j of w[j] · x[row - kernel + 1 + j], where the rows before the first are 0. The layer
// remembers the rows that later ones will need.
//
// x[row, channel], w[channel, kernel] → y[row, channel]. Misuse panics with a *core.Error.
func (c *Cache) Convolve(i int, x, w *core.Tensor) *core.Tensor {
	l := c.layer("conv", i)
	n, kernel := x.Size("row"), w.Size("kernel")
	if kernel < 1 {
		panic(&core.Error{Op: "conv", Msg: "the kernel in " + w.Shape() + " has no places"})
	}
	before := l.rows.now
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
	l.rows.keep(c.env, last)
	last.Free()
	return y
}

// DeltaRule is the gated delta rule (Yang, Kautz and Hatamizadeh 2024): row by row, a state S[key, value] of each head
// is multiplied by decay, then changed so that k leads it to v, by the part beta of the way: S += k · beta · (v - kᵀS).
// The result is qᵀS.
//
// q and k[row, some heads, key], v[row, heads, value], decay and beta[row, heads] → y[row, heads, value]. Heads are one
// axis or several, of which q and k have some. Misuse panics with a *core.Error.
func (c *Cache) DeltaRule(i int, q, k, v, decay, beta *core.Tensor) *core.Tensor {
	l := c.layer("delta_rule", i)
	axes := append([]string{"key"}, v.Axes().Names()...)
	sizes := append([]int{k.Size("key")}, v.Sizes()...)
	at := v.Axes().Index("row")
	if at < 0 {
		panic(&core.Error{Op: "delta_rule", Msg: "v: no axis \"row\" in " + v.Shape()})
	}
	axes = append(axes[:at+1], axes[at+2:]...)
	sizes = append(sizes[:at+1], sizes[at+2:]...)
	state := l.state.now
	if state == nil {
		state = c.env.Zeros(v.DType(), must(axis.Of(axes...)), sizes...)
		defer state.Free()
	}
	names := strings.Join(axes, " ")
	ys := make([]*core.Tensor, v.Size("row"))
	for t := range ys {
		y, after := step(names, state, q.At("row", t), k.At("row", t), v.At("row", t), decay.At("row", t),
			beta.At("row", t))
		if t > 0 {
			state.Free()
		}
		ys[t], state = y, after
	}
	if len(ys) == 0 {
		panic(&core.Error{Op: "delta_rule", Msg: fmt.Sprintf("no rows in %s", v.Shape())})
	}
	l.state.keep(c.env, state)
	state.Free()
	y := core.StackAll("row", ys...)
	for _, row := range ys {
		row.Free()
	}
	return y
}

// step is one row of DeltaRule. It ends its operands but the state.
func step(names string, state, q, k, v, decay, beta *core.Tensor) (y, after *core.Tensor) {
	faded := state.Mul(decay)
	found := faded.Dot(k, "key")
	missing := v.Sub(found)
	change := missing.Mul(beta)
	update := core.EinsumAll(names, k, change)
	after = faded.Add(update)
	y = after.Dot(q, "key")
	for _, t := range []*core.Tensor{q, k, v, decay, beta, faded, found, missing, change, update} {
		t.Free()
	}
	return y, after
}
