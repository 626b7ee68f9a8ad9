package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// Expand repeats x along new axes, which come first, in the order given. It is a view: every place
// along a new axis is the same memory.
//
// Shape: x[a] → y[batch=n, a] for expand(batch=n).
//
// Errors: an axis that x has already; a negative size.
//
// Example:
//
//	tensor([1, 2], "a").expand(batch=3)
type Expand struct {
	X    *Tensor  `arg:"x"`
	Axes Map[int] `arg:"axes,rest"`
}

var expand = Declare[Expand]("expand")

// Expand repeats x along one new axis; see the Expand operation.
func (x *Tensor) Expand(axis string, n int) *Tensor {
	return expand.Call(Expand{X: x, Axes: Map[int]{axisList(axis), []int{n}}})
}

// Names puts the new axes first.
func (a *Expand) Names(p *Plan) {
	keys := given(a.Axes)
	if both := keys.Shared(a.X.axes); both.Len() > 0 {
		fixed := *a
		fixed.Axes.Keys, _ = keys.Rename(both, freshNames(both, keys, a.X.axes))
		tries := []remedy{p.c.recall("choose another name", &fixed)}
		if volume(a.X, both) == 1 {
			tries = append([]remedy{p.c.taken("size 1 does not stretch", a.X, both)}, tries...)
		}
		p.Fail(fmt.Sprintf("%s has the axis %s already", p.Describe(a.X), quoted(both.Names())), p.c.hint(tries...))
	}
	p.Out(keys.Append(a.X.axes), a.X.dtype)
}

// Sizes takes the new sizes as given.
func (a *Expand) Sizes(s *Sizes) { s.take(a.Axes) }

// View leaves the new axes without a stride.
func (a *Expand) View(v *View) bool {
	n := given(a.Axes).Len()
	for k := range n {
		v.Stride(k, 0)
	}
	for k, stride := range a.X.strides {
		v.Stride(n+k, stride)
	}
	v.Alias(a.X, 0)
	return true
}

// Saves nothing.
func (a *Expand) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP sums over the repetitions.
func (a *Expand) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, gy[0]) }

// Samples covers the lengths of what is repeated, no and many repetitions, and the dtypes.
func (*Expand) Samples(m *Maker) (list []Expand) {
	for _, n := range lengths {
		list = append(list, Expand{X: m.Tensor(dtype.F32, "row=3 a=%d", n), Axes: Map[int]{axisList("b"), []int{2}}},
			Expand{X: m.Tensor(dtype.F32, "row=3"), Axes: Map[int]{axisList("b"), []int{n}}})
	}
	for _, dt := range allDTypes {
		list = append(list, Expand{X: m.Tensor(dt, "row=3 a=4"), Axes: Map[int]{axisList("b", "c"), []int{2, 3}}})
	}
	return list
}
