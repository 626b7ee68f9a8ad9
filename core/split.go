package core

import (
	"fmt"
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
		p.Fail("got no axes to split "+fmt.Sprintf("%q", a.Axis)+" into",
			fmt.Sprintf("x.split(%q, head=8, head_dim=-1)", a.Axis))
	}
	axes, err := a.X.axes.Replace(a.X.axes.Index(string(a.Axis)), a.Into.Keys.Names()...)
	if err != nil {
		p.Fail(p.Describe(a.X)+": "+err.Error()+" after the split", "choose other names")
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
		parts = append(parts, fmt.Sprintf("%s=%d", keyword(name), v))
		switch {
		case v == -1 && open == "":
			open = name
		case v < 0:
			s.Fail(fmt.Sprintf("%s=%d is no size", keyword(name), v), "one size may be -1, for whatever is left")
		default:
			known *= v
			s.Set(0, name, v)
		}
	}
	switch {
	case open == "" && known != n:
		s.Fail(fmt.Sprintf("axis %q of %s has %d elements but %s make %d", a.Axis, s.Describe(a.X), n,
			strings.Join(parts, ", "), known), "leave one size to be worked out: -1")
	case open != "" && (known == 0 || n%known != 0):
		s.Fail(fmt.Sprintf("axis %q of %s has %d elements, which %s does not divide", a.Axis, s.Describe(a.X), n,
			strings.Join(parts, ", ")), nearDivisors(n, known))
	case open != "":
		s.Set(0, open, n/known)
	}
}

// nearDivisors suggests divisors of n around want.
func nearDivisors(n, want int) string {
	below, above := 0, 0
	for d := 1; d <= n && d <= 1<<16; d++ {
		if n%d != 0 {
			continue
		}
		if d <= want {
			below = d
		} else {
			above = d
			break
		}
	}
	if above == 0 {
		return fmt.Sprintf("%d divides it", below)
	}
	return fmt.Sprintf("%d and %d divide it", below, above)
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
