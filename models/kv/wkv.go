package kv

import (
	"fmt"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
)

// wkvElements is up to how many elements of states are there at once. Tests make it small.
var wkvElements = 1 << 20

// wkvAxes is what r, k and v must have besides heads.
var wkvAxes = []*axis.List{must(axis.Parse("row key")), must(axis.Parse("row key")), must(axis.Parse("row value"))}

var keyValue = must(axis.Parse("key value"))

// WKV is the recurrence of RWKV's time mixing, version 5 (Peng et al. 2024): row by row, a state S[key, value] of each
// head gives rᵀ(S + first · k vᵀ), in which first weighs the row itself, and becomes decay · S + k vᵀ.
//
// r and k[row, head, key], v[row, head, value], decay and first[head, key] → y[row, head, value]. Misuse panics with a
// *core.Error.
func (c *Cache) WKV(i int, r, k, v, decay, first *core.Tensor) *core.Tensor {
	l := c.layer("wkv", i)
	for j, x := range []*core.Tensor{r, k, v} {
		needs("wkv", "rkv"[j:j+1], x, wkvAxes[j])
		if x.Size("row") == 0 {
			panic(&core.Error{Op: "wkv", Msg: fmt.Sprintf("%c: no rows in %s", "rkv"[j], x.Shape())})
		}
	}
	heads := v.Axes().Without(must(axis.Parse("row value")))
	axes := heads.Append(keyValue)
	var sizes []int
	for _, name := range heads.Names() {
		sizes = append(sizes, v.Size(name))
	}
	sizes = append(sizes, k.Size("key"), v.Size("value"))
	elements := 1
	for _, n := range sizes {
		elements *= n
	}
	state := l.state.known()
	if state == nil {
		state = c.env.Zeros(v.DType(), axes, sizes...)
	} else {
		state = state.Copy()
	}
	rows, step := v.Size("row"), max(1, wkvElements/max(1, elements))
	names := "row " + axes.String()
	var ys []*core.Tensor
	for from := 0; from < rows; from += step {
		to := min(rows, from+step)
		part := func(x *core.Tensor) *core.Tensor { return x.Slice("row", from, to, 1) }
		y, after := wkv(names, state, part(r), part(k), part(v), decay, first)
		state.Free()
		ys, state = append(ys, y), after
	}
	l.state.keep(state)
	if len(ys) == 1 {
		return ys[0]
	}
	y := core.ConcatAll("row", ys...)
	for _, part := range ys {
		part.Free()
	}
	return y
}

// wkv is WKV of a few rows, of which all states are there at once. It ends r, k and v.
func wkv(names string, state, r, k, v, decay, first *core.Tensor) (y, after *core.Tensor) {
	n := v.Size("row")
	pairs := core.EinsumAll(names, k, v)
	states := decay.LinearRecurrence(pairs, "row", state) // after each row
	last := states.At("row", n-1)
	after = last.Copy()
	start := core.StackAll("row", state)
	seen := states.Slice("row", 0, n-1, 1)
	before := core.ConcatAll("row", start, seen)
	past := r.Dot(before, "key")
	weighed := k.Mul(first)
	self := weighed.Mul(r)
	sum := self.Sum("key")
	now := v.Mul(sum)
	y = past.Add(now)
	for _, t := range []*core.Tensor{r, k, v, pairs, states, last, start, seen, before, past, weighed, self, sum, now} {
		t.Free()
	}
	return y, after
}
