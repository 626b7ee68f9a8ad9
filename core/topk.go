package core

import (
	"fmt"
	"slices"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// TopK is the k greatest elements along an axis, the greatest first, and their places: of equals the one
// that comes first; NaN counts as greatest, as in PyTorch.
//
// Shape: x[…, axis=n, …] → values[…, out=k, …] of x's dtype, indices[…, out=k, …] of i64. out is the axis
// itself unless given.
//
// Errors: an axis that x lacks; k outside of 0 … n; an out that x has already.
//
// Example:
//
//	values, indices = tensor([3, 1, 4, 1, 5], "expert").topk(2, "expert", out="choice")
type TopK struct {
	X    *Tensor `arg:"x"`
	K    int     `arg:"k"`
	Axis Axis    `arg:"axis"`
	Out  Axis    `arg:"out?"`
}

var topK = Declare[TopK]("topk")

// TopK is the k greatest along the axis, which is then called out, and their places; see the TopK
// operation.
func (x *Tensor) TopK(k int, axis, out string) (values, indices *Tensor) {
	both := topK.All(TopK{X: x, K: k, Axis: Axis(axis), Out: Axis(out)})
	return both[0], both[1]
}

// out is the name of the axis of results.
func (a *TopK) out() Axis {
	if a.Out != "" {
		return a.Out
	}
	return a.Axis
}

// Names renames the axis.
func (a *TopK) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	axes, err := a.X.axes.Replace(a.X.axes.Index(string(a.Axis)), string(a.out()))
	if err != nil {
		fixed := *a
		one := axisList(string(a.out()))
		fixed.Out = Axis(freshNames(one, a.X.axes)[0])
		p.Fail(fmt.Sprintf("%s has the axis %q already", p.Describe(a.X), a.out()),
			p.c.hint(p.c.recall("choose another name for the result's", &fixed)))
	}
	p.Out(axes, a.X.dtype)
	p.Out(axes, dtype.I64)
	p.Keep(inner(a.X.axes, a.Axis))
}

// Sizes insists on enough elements.
func (a *TopK) Sizes(s *Sizes) {
	if n := a.X.Size(string(a.Axis)); a.K < 0 || a.K > n {
		fixed := *a
		fixed.K = max(0, min(a.K, n))
		s.Fail(fmt.Sprintf("k=%d, but axis %q of %s has %d elements", a.K, a.Axis, s.Describe(a.X), n),
			s.c.hint(s.c.recall(fmt.Sprintf("k is 0 … %d", n), &fixed)))
	}
	s.Set(0, string(a.out()), a.K)
	s.Set(1, string(a.out()), a.K)
}

// Eval selects in every row.
func (a *TopK) Eval(c *Ctx) {
	if c.Out(0).Len() == 0 {
		return
	}
	switch classOf(a.X.dtype) {
	case dtype.F32:
		topRows[float32](c, a)
	case dtype.F64:
		topRows[float64](c, a)
	default:
		topRows[int64](c, a)
	}
}

func topRows[C number](c *Ctx, a *TopK) {
	values, indices := c.Out(0), c.Out(1)
	x := c.Dense(a.X, c.Data().(*axis.List), native[C]())
	order := inner(values.axes, a.out())
	sizes := values.permuted(order).sizes
	v, p := values, indices
	if values.axes != order || values.dtype != native[C]() {
		v = c.Scratch(native[C](), order, sizes)
	}
	if indices.axes != order {
		p = c.Scratch(dtype.I64, order, sizes)
	}
	n, k := x.sizes[len(x.sizes)-1], a.K
	c.Split(x.Len()/n, max(1, pointGrain/n), func(lo, hi int) {
		best := make([]int, 0, k)
		for i := lo; i < hi; i++ {
			xs, vs, ps := row[C](x, i, n), row[C](v, i, k), row[int64](p, i, k)
			best = greatest(c, best[:0], xs, k)
			for lo, hi := range c.c.env.scan(len(best)) {
				for j := lo; j < hi; j++ {
					vs[j], ps[j] = xs[best[j]], int64(best[j])
				}
			}
		}
	})
	if v != values {
		c.copyInto(values, v.permuted(values.axes))
	}
	if p != indices {
		c.copyInto(indices, p.permuted(indices.axes))
	}
}

// greatest appends the places of the k greatest of x to best, which is empty, in order.
func greatest[C number](c *Ctx, best []int, x []C, k int) []int {
	compared := 0
	// ahead tells whether place i comes before place j.
	ahead := func(i, j int) bool {
		if compared++; compared%(pauseLen/4) == 0 {
			c.Pause()
		}
		a, b := x[i], x[j]
		switch {
		case a != a || b != b:
			return a != a && (b == b || i < j)
		case a != b:
			return a > b
		}
		return i < j
	}
	sink := func(place, i int) { // puts place at i or below; best is a heap with the last of the chosen on top
		for {
			child := 2*i + 1
			if child+1 < len(best) && ahead(best[child], best[child+1]) {
				child++
			}
			if child >= len(best) || ahead(best[child], place) {
				break
			}
			best[i] = best[child]
			i = child
		}
		best[i] = place
	}
	for lo, hi := range c.c.env.scan(k) {
		for i := lo; i < hi; i++ {
			best = append(best, i)
		}
	}
	for i := k/2 - 1; i >= 0; i-- {
		sink(best[i], i)
	}
	for i := k; i < len(x); i++ {
		if ahead(i, best[0]) {
			sink(i, 0)
		}
	}
	slices.SortFunc(best, func(i, j int) int {
		if ahead(i, j) {
			return -1
		}
		return 1
	})
	return best
}

// Saves the indices.
func (*TopK) Saves(uint64) (in, out uint64) { return 0, 2 }

// VJP puts gy where the values came from.
func (a *TopK) VJP(y, gy []*Tensor, g *Grads) {
	g.Set(0, a.X.zerosIn(gy[0].env).IndexAdd(y[1], gy[0], string(a.Axis)))
}

// Samples covers the lengths, none, some and all of them, the axis in the middle, and the dtypes, of which
// integers and bools have equals.
func (*TopK) Samples(m *Maker) (list []TopK) {
	for _, n := range lengths {
		for _, k := range []int{0, min(n, 2), n} {
			list = append(list, TopK{X: m.Tensor(dtype.F32, "row=3 expert=%d", n), K: k, Axis: "expert", Out: "choice"})
		}
	}
	list = append(list, TopK{X: m.Tensor(dtype.F32, "row=0 expert=4"), K: 2, Axis: "expert"})
	for _, dt := range allDTypes {
		list = append(list, TopK{X: m.Tensor(dt, "row=3 expert=17 batch=2"), K: 5, Axis: "expert"},
			TopK{X: m.Tensor(dt, "expert=17"), K: 16, Axis: "expert", Out: "choice"})
	}
	return list
}
