package core

import (
	"fmt"
	"slices"

	"github.com/fucina-go/fucina/core/dtype"
)

// Merge joins several axes into one, the first named slowest. The new axis stands where the first
// of them stood. It is a view where the elements lie so already, else a copy.
//
// Shape: x[…, head=8, head_dim=16, …] → y[…, embed=128, …] for merge(embed="head head_dim").
//
// Errors: an axis that x lacks, a new name that x has already.
//
// Example:
//
//	zeros(seq=2, head=8, head_dim=16).merge(embed="head head_dim")
type Merge struct {
	X    *Tensor   `arg:"x"`
	Into Map[Axes] `arg:"into,rest"`
}

var merge = Declare[Merge]("merge")

// Names replaces each group by its new axis.
func (a *Merge) Names(p *Plan) {
	axes := a.X.axes
	for i, name := range a.Into.Keys.Names() {
		group := a.Into.Values[i]
		p.NeedAll(a.X, group)
		if group.Len() == 0 {
			p.Fail(fmt.Sprintf("%s= names no axes of %s to merge", Keyword(name), p.Describe(a.X)),
				p.c.hint(p.c.recall("name some", a.with(i, name, a.X.axes))))
		}
		for _, other := range a.Into.Values[:i] {
			if both := group.Shared(other); both.Len() > 0 {
				p.Fail(fmt.Sprintf("axis %q of %s is in two groups", both.At(0), p.Describe(a.X)),
					p.c.hint(p.c.recall("leave it out of one", a.with(i, name, group.Without(both)))))
			}
		}
		first := group.At(0)
		rest := axes.Without(group.Without(axisList(first)))
		at := rest.Index(first)
		var err error
		if axes, err = rest.Replace(at, name); err != nil {
			free := freshNames(axisList(name), a.Into.Keys, a.X.axes)[0]
			p.Fail(fmt.Sprintf("%s has the axis %q already", p.Describe(a.X), name),
				p.c.hint(p.c.recall("choose another name", a.with(i, free, group))))
		}
	}
	p.Out(axes, a.X.dtype)
}

// with is the call with new axis i called name and made of group; without it, if the group is empty.
func (a *Merge) with(i int, name string, group Axes) Op {
	keys, values := slices.Clone(a.Into.Keys.Names()), slices.Clone(a.Into.Values)
	keys[i], values[i] = name, group
	if group.Len() == 0 {
		keys, values = slices.Delete(keys, i, i+1), slices.Delete(values, i, i+1)
	}
	return &Merge{X: a.X, Into: Map[Axes]{axisList(keys...), values}}
}

// Sizes multiplies the sizes of each group.
func (a *Merge) Sizes(s *Sizes) {
	for i, name := range a.Into.Keys.Names() {
		n := 1
		for _, part := range a.Into.Values[i].Names() {
			n *= a.X.Size(part)
		}
		s.Set(0, name, n)
	}
}

// View succeeds where every group's elements already lie one step apart.
func (a *Merge) View(v *View) bool {
	src := a.X.permuted(a.expanded(v.out.axes))
	at := 0
	for k, name := range v.out.axes.Names() {
		i, count := a.Into.Keys.Index(name), 1
		if i >= 0 {
			count = a.Into.Values[i].Len()
		}
		stride, ok := fuse(src.sizes[at:at+count], src.strides[at:at+count])
		if !ok {
			return false
		}
		v.Stride(k, stride)
		at += count
	}
	v.Alias(a.X, 0)
	return true
}

// fuse is the one stride that walks the axes as a single one, if there is one.
func fuse(sizes, strides []int) (stride int, ok bool) {
	stride, span, first := 1, 0, true // span: the stride the next axis outward must have
	for k := len(sizes) - 1; k >= 0; k-- {
		switch {
		case sizes[k] == 0:
			return 1, true
		case sizes[k] == 1:
		case first:
			stride, span, first = strides[k], strides[k]*sizes[k], false
		case strides[k] != span:
			return 0, false
		default:
			span *= sizes[k]
		}
	}
	return stride, true
}

// expanded is the axes with each merged one written out as its group.
func (a *Merge) expanded(axes Axes) Axes {
	names := make([]string, 0, a.X.Rank())
	for _, name := range axes.Names() {
		if i := a.Into.Keys.Index(name); i >= 0 {
			names = append(names, a.Into.Values[i].Names()...)
		} else {
			names = append(names, name)
		}
	}
	return axisList(names...)
}

// Eval copies the elements in the order of the groups.
func (a *Merge) Eval(c *Ctx) {
	out := c.Out(0)
	src := a.X.permuted(a.expanded(out.axes))
	flat := &Tensor{env: out.env, dtype: out.dtype, axes: src.axes, sizes: src.sizes, data: out.data}
	flat.strides = make([]int, len(src.sizes))
	flat.pack()
	c.copyInto(flat, src)
}

// Samples covers the lengths, groups that lie together or apart, and the dtypes.
func (*Merge) Samples(m *Maker) (list []Merge) {
	for _, n := range lengths {
		list = append(list, Merge{X: m.Tensor(dtype.F32, "row=3 a=2 b=%d", n),
			Into: Map[Axes]{axisList("c"), []Axes{axisList("a", "b")}}})
	}
	for _, dt := range allDTypes {
		list = append(list, Merge{X: m.Tensor(dt, "a=3 row=5 b=4 d=2"),
			Into: Map[Axes]{axisList("c", "e"), []Axes{axisList("b", "a"), axisList("d")}}})
	}
	return list
}

// Saves nothing.
func (*Merge) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP splits each merged axis again, the last one first.
func (a *Merge) VJP(_, gy []*Tensor, g *Grads) {
	t := gy[0]
	for i := a.Into.Keys.Len() - 1; i >= 0; i-- {
		t = split.Call(Split{X: t, Axis: Axis(a.Into.Keys.At(i)), Into: a.X.sized(a.Into.Values[i])})
	}
	g.Set(0, t)
}
