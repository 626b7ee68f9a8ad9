package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// OneHot is 1 at the place that each index names along a new last axis, and 0 elsewhere.
//
// Shape: x[row] of integers → y[row, vocab=n] for one_hot(vocab=n), of i64 unless a dtype is given.
//
// Errors: indices that are no integers or lie outside of 0 … n-1; an axis that x has already.
//
// Example:
//
//	tensor([0, 2], "row").one_hot(vocab=3)
type OneHot struct {
	X     *Tensor    `arg:"x"`
	Axes  Map[int]   `arg:"axes,rest"`
	DType dtype.Type `arg:"dtype=i64"`
}

var oneHot = Declare[OneHot]("one_hot")

// OneHot is 1 at the place that each index names along a new axis of n places; see the OneHot operation.
func (x *Tensor) OneHot(axis string, n int, dt dtype.Type) *Tensor {
	return oneHot.Call(OneHot{X: x, Axes: Map[int]{axisList(axis), []int{n}}, DType: dt})
}

// Names puts the new axis last.
func (a *OneHot) Names(p *Plan) {
	p.Integer(a.X)
	keys := given(a.Axes)
	if keys.Len() != 1 {
		p.Fail(fmt.Sprintf("got %d axes, want the one to add", keys.Len()), "as in: x.one_hot(vocab=10)")
	}
	if a.X.axes.Has(keys.At(0)) {
		p.Fail(fmt.Sprintf("%s has the axis %q already", p.Describe(a.X), keys.At(0)),
			refit(p.c, "choose another name", "axes",
				Map[int]{axisList(freshNames(keys, a.X.axes)...), a.Axes.Values}))
	}
	p.Out(a.X.axes.Append(keys), a.DType)
}

// Sizes takes the new size as given.
func (a *OneHot) Sizes(s *Sizes) { s.take(a.Axes) }

// Eval compares places with indices.
func (a *OneHot) Eval(c *Ctx) {
	n := a.Axes.Values[0]
	ids := elementsOf[int64](c.Dense(a.X, a.X.axes, dtype.I64))
	for _, id := range ids {
		if id < 0 || id >= int64(n) {
			c.Fail(fmt.Sprintf("the index %d of %s is outside of the new axis %s=%d", id, c.Describe(a.X),
				a.Axes.Keys.At(0), n),
				c.c.indexRange(a.X, n))
		}
	}
	fillBlocks(c, func(y []int64, from int) {
		clear(y)
		for row := from / n; row*n < from+len(y); row++ {
			if k := row*n + int(ids[row]) - from; 0 <= k && k < len(y) {
				y[k] = 1
			}
		}
	})
}

// Samples covers the lengths and the dtypes.
func (*OneHot) Samples(m *Maker) (list []OneHot) {
	for _, n := range lengths {
		list = append(list, OneHot{m.Indices(dtype.I64, 5, "row=%d b=2", n), Map[int]{axisList("vocab"), []int{5}},
			dtype.I64},
			OneHot{m.Indices(dtype.I64, max(1, n), "row=3"), Map[int]{axisList("vocab"), []int{max(1, n)}}, dtype.F32})
	}
	list = append(list, OneHot{m.Indices(dtype.I64, 1, "row=0"), Map[int]{axisList("vocab"), []int{0}}, dtype.I64})
	for _, dt := range integers {
		list = append(list, OneHot{m.Indices(dt, 5, "row=3 b=2"), Map[int]{axisList("vocab"), []int{5}}, dtype.I64})
	}
	for _, dt := range allDTypes {
		list = append(list, OneHot{m.Indices(dtype.I32, 5, ""), Map[int]{axisList("vocab"), []int{5}}, dt})
	}
	return list
}
