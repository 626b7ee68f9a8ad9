package core

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fucina-go/fucina/core/dtype"
)

// Split cuts one axis into several, the first slowest. It is a view.
//
// Shape: x[…, embed=n, …] → y[…, head=8, head_dim=n/8, …]. One size may be -1: whatever is left.
//
// Errors: an axis that x lacks, a new name that x has already, sizes that do not multiply to n.
//
// Example:
//
//	zeros(seq=2, embed=64).split("embed", head=8, head_dim=-1)
type Split struct {
	X    *Tensor  `arg:"x"`
	Axis Axis     `arg:"axis"`
	Into Map[int] `arg:"into,rest"`
}

var split = Declare[Split]("split")

// Names puts the new axes in the old one's place.
func (a *Split) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	if a.Into.Keys.Len() == 0 {
		fixed := *a
		fixed.Into = Map[int]{axisList(freshNames(axisList("outer", "inner"), a.X.axes)...), []int{1, -1}}
		p.Fail(fmt.Sprintf("got no axes to split %q of %s into", a.Axis, p.Describe(a.X)),
			p.c.hint(p.c.recall("name them and their sizes", &fixed)))
	}
	axes, err := a.X.axes.Replace(a.X.axes.Index(string(a.Axis)), a.Into.Keys.Names()...)
	if err != nil {
		fixed := *a
		both := a.Into.Keys.Shared(a.X.axes)
		fixed.Into.Keys, _ = a.Into.Keys.Rename(both, freshNames(both, a.Into.Keys, a.X.axes))
		p.Fail(fmt.Sprintf("%s has the axis %s already", p.Describe(a.X), quoted(both.Names())),
			p.c.hint(p.c.recall("choose another name", &fixed)))
	}
	p.Out(axes, a.X.dtype)
}

// Sizes fills in the one size left open.
func (a *Split) Sizes(s *Sizes) {
	n := a.X.Size(string(a.Axis))
	known, open := 1, ""
	var parts []string
	for i, name := range a.Into.Keys.Names() {
		v := a.Into.Values[i]
		parts = append(parts, fmt.Sprintf("%s=%d", Keyword(name), v))
		switch {
		case v == -1 && open == "":
			open = name
		case v < 0:
			s.Fail(fmt.Sprintf("%s=%d is no size", Keyword(name), v),
				s.c.hint(s.c.recall("one size may be -1, for whatever is left", a.sized(i, 1)),
					s.c.recall("one size may be -1, for whatever is left", a.sized(i, -1))))
		case known > 0 && v > manyElements/known:
			known = manyElements
		default:
			known *= v
			s.Set(0, name, v)
		}
	}
	switch {
	case open == "" && known != n:
		s.Fail(fmt.Sprintf("axis %q of %s has %d elements but %s make %d", a.Axis, s.Describe(a.X), n,
			strings.Join(parts, ", "), known), s.c.hint(a.leaveOpen(s.c)...))
	case open != "" && (known == 0 || n%known != 0):
		s.Fail(fmt.Sprintf("axis %q of %s has %d elements, which %s does not divide", a.Axis, s.Describe(a.X), n,
			strings.Join(parts, ", ")), s.c.hint(a.divisors(s.c, n)...))
	case open != "":
		s.Set(0, open, n/known)
	}
}

// sized is the split with another size of new axis i.
func (a *Split) sized(i, n int) *Split {
	fixed := *a
	fixed.Into.Values = slices.Clone(a.Into.Values)
	fixed.Into.Values[i] = n
	return &fixed
}

// leaveOpen is the remedies of working out one of the sizes, from the last.
func (a *Split) leaveOpen(c *call) (tries []remedy) {
	last := len(a.Into.Values) - 1
	for i := range slices.Backward(a.Into.Values) {
		tries = append(tries, c.recall("leave one size to be worked out", a.sized(i, -1)))
	}
	return append(tries, a.sized(last, -1).divisors(c, a.X.Size(string(a.Axis)))...)
}

// divisors is the remedies of a size that divides what the others leave of n.
func (a *Split) divisors(c *call, n int) (tries []remedy) {
	for i, size := range a.Into.Values {
		left := n
		for k, other := range a.Into.Values {
			if k != i && other > 0 {
				left /= other
			}
		}
		if size == -1 || left == 0 {
			continue
		}
		below, above := around(left, size)
		words := fmt.Sprintf("%d and %d divide it", below, above)
		if below == 0 || above == 0 {
			below = max(below, above)
			words = fmt.Sprintf("%d divides it", below)
		}
		tries = append(tries, c.recall(words, a.sized(i, below)))
	}
	return tries
}

// around is the divisors of n next to want: not above it, and above it; 0 where there is none.
func around(n, want int) (below, above int) {
	for d := 1; d <= n && d <= 1<<16; d++ {
		switch {
		case n%d != 0:
		case d <= want:
			below = d
		default:
			return below, d
		}
	}
	return below, 0
}

// View splits the stride; sizes are settled.
func (a *Split) View(v *View) bool {
	out := 0
	for k, name := range a.X.axes.Names() {
		if name != string(a.Axis) {
			v.Stride(out, a.X.strides[k])
			out++
			continue
		}
		stride := a.X.strides[k]
		for i := a.Into.Keys.Len() - 1; i >= 0; i-- {
			v.Stride(out+i, stride)
			stride *= v.out.sizes[out+i]
		}
		out += a.Into.Keys.Len()
	}
	v.Alias(a.X, 0)
	return true
}

// Samples covers the lengths, a size left open, and the dtypes.
func (*Split) Samples(m *Maker) (list []Split) {
	for _, n := range lengths {
		list = append(list, Split{X: m.Tensor(dtype.F32, "row=3 a=%d", n), Axis: "a",
			Into: Map[int]{axisList("b", "c"), []int{-1, 1}}})
	}
	for _, dt := range allDTypes {
		list = append(list, Split{X: m.Tensor(dt, "row=3 a=12 d=2"), Axis: "a",
			Into: Map[int]{axisList("b", "a", "c"), []int{2, -1, 3}}})
	}
	return list
}

// Saves nothing.
func (*Split) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP merges the axes again.
func (a *Split) VJP(_, gy []*Tensor, g *Grads) {
	into := Map[Axes]{axisList(string(a.Axis)), []Axes{a.Into.Keys}}
	g.Set(0, merge.Call(Merge{X: gy[0], Into: into}))
}
