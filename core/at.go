package core

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/fucina-go/fucina/core/dtype"
)

// At is x at one place along each of the named axes, which the result lacks. It is a view.
//
// Shape: x[…, axis=n, …] → y[…, …]. A negative place counts from the end.
//
// Errors: an axis that x lacks; a place outside of -n … n-1.
//
// Example:
//
//	tensor([[1, 2], [3, 4]], "row col").at(row=-1)
type At struct {
	X      *Tensor  `arg:"x"`
	Places Map[int] `arg:"places,rest"`
}

var at = Declare[At]("at")

// At is x at one place of one axis; see the At operation.
func (x *Tensor) At(axis string, place int) *Tensor {
	return at.Call(At{X: x, Places: Map[int]{axisList(axis), []int{place}}})
}

// Unbind goes through x at every place of the axis: one view each.
//
// Errors: an axis that x lacks.
func (x *Tensor) Unbind(axis string) iter.Seq[*Tensor] {
	n := x.Size(axis)
	if n < 0 {
		hint := "a scalar has nothing to unbind"
		if x.Rank() > 0 {
			near := x.axes.Nearest(axis)
			if near == "" {
				near = x.axes.At(0)
			}
			hint = fmt.Sprintf("its axes are %s: x.unbind(%q)", strings.Join(x.axes.Names(), ", "), near)
		}
		panic(&Error{Op: "unbind", Msg: fmt.Sprintf("no axis %q in %s", axis, x.Shape()), Hint: hint})
	}
	return func(yield func(*Tensor) bool) {
		for i := range n {
			if !yield(x.At(axis, i)) {
				return
			}
		}
	}
}

// Names drops the axes.
func (a *At) Names(p *Plan) {
	p.NeedAll(a.X, a.Places.Keys)
	p.Out(a.X.axes.Without(a.Places.Keys), a.X.dtype)
}

// Sizes checks the places.
func (a *At) Sizes(s *Sizes) {
	for i, name := range a.Places.Keys.Names() {
		n, place := a.X.Size(name), a.Places.Values[i]
		if place < -n || place >= n {
			fixed := *a
			fixed.Places.Values = slices.Clone(a.Places.Values)
			fixed.Places.Values[i] = max(-n, min(place, n-1))
			hint := s.c.hint(s.c.recall(fmt.Sprintf("valid places are %d … %d", -n, n-1), &fixed))
			if n == 0 {
				hint = s.c.unlessEmpty(name)
			}
			s.Fail(fmt.Sprintf("%s=%d is outside of axis %q of %s", Keyword(name), place, name, s.Describe(a.X)), hint)
		}
	}
}

// View moves the start.
func (a *At) View(v *View) bool {
	skip, out := 0, 0
	for k, name := range a.X.axes.Names() {
		i := a.Places.Keys.Index(name)
		if i < 0 {
			v.Stride(out, a.X.strides[k])
			out++
			continue
		}
		place := a.Places.Values[i]
		if place < 0 {
			place += a.X.sizes[k]
		}
		skip += place * a.X.strides[k]
	}
	v.Alias(a.X, skip)
	return true
}

// Samples covers the lengths of what stays, places from both ends, and the dtypes.
func (*At) Samples(m *Maker) (list []At) {
	for _, n := range lengths {
		list = append(list, At{X: m.Tensor(dtype.F32, "a=3 col=%d", n), Places: Map[int]{axisList("a"), []int{1}}})
	}
	for _, dt := range allDTypes {
		list = append(list, At{X: m.Tensor(dt, "row=3 col=17 a=4"),
			Places: Map[int]{axisList("a", "col"), []int{-1, 2}}},
			At{X: m.Tensor(dt, "col=17"), Places: Map[int]{axisList("col"), []int{16}}})
	}
	return list
}

// Saves nothing.
func (*At) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP puts gy into zeros.
func (a *At) VJP(_, gy []*Tensor, g *Grads) {
	ranges := Map[Range]{Keys: a.Places.Keys}
	for i, place := range a.Places.Values {
		if place < 0 {
			place += a.X.Size(a.Places.Keys.At(i))
		}
		stop := place + 1
		ranges.Values = append(ranges.Values, Range{Start: &place, Stop: &stop})
	}
	g.Set(0, set.Call(Set{X: a.X.zerosIn(gy[0].env), V: gy[0], Ranges: ranges}))
}
