package core

import (
	"fmt"
	"strings"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// Convolution is the argument struct of conv and conv_transpose. Spatial says for each axis of the input along
// which the weight slides which axis of the weight does. Axis names what is summed up, such as the channels; other
// axes that both have are batch axes of both.
type Convolution struct {
	Input    *Tensor     `arg:"input"`
	Weight   *Tensor     `arg:"weight"`
	Axis     Axes        `arg:"axis?"`
	Spatial  Map[string] `arg:"spatial,rest"`
	Bias     *Tensor     `arg:"bias?"`
	Stride   PerAxis     `arg:"stride=1"`
	Dilation PerAxis     `arg:"dilation=1"`
	Groups   int         `arg:"groups=1"`
}

// convRoles is the axes of a convolution by role.
type convRoles struct {
	spatial  *axis.List // of the input, in its order
	kernel   *axis.List // of the weight, in the order of spatial
	contract *axis.List // summed up, in the order of the call
	shared   *axis.List // batch axes of both, in the input's order
	free     *axis.List // batch axes of the input
	own      *axis.List // of the weight: new in the output
	out      *axis.List // of the output
}

// roles sorts the axes, which Names has checked.
func (a *Convolution) roles() convRoles {
	r := convRoles{contract: axis.Empty, spatial: a.Input.axes.Shared(a.Spatial.Keys)}
	if a.Axis != nil {
		r.contract = a.Axis
	}
	var kernel, out []string
	for _, name := range r.spatial.Names() {
		kernel = append(kernel, a.Spatial.Values[a.Spatial.Keys.Index(name)])
	}
	r.kernel = axisList(kernel...)
	batch := a.Input.axes.Without(r.spatial).Without(r.contract)
	rest := a.Weight.axes.Without(r.kernel).Without(r.contract)
	r.shared, r.free, r.own = batch.Shared(rest), batch.Without(rest), rest.Without(batch)
	place := a.Input.Rank()
	for k, name := range a.Input.axes.Names() {
		if !r.contract.Has(name) {
			out = append(out, name)
		} else if k < place {
			place = k
			out = append(out, r.own.Names()...)
		}
	}
	if place == a.Input.Rank() {
		out = append(out, r.own.Names()...)
	}
	r.out = axisList(out...)
	return r
}

// Names checks every role; the weight's own axes take the place of the contracted ones.
func (a *Convolution) Names(p *Plan) {
	p.Float(a.Input)
	if a.Spatial.Keys == nil || a.Spatial.Keys.Len() == 0 {
		p.Fail("nothing says along which axes of "+p.Describe(a.Input)+" the weight slides",
			p.c.info.AsIn())
	}
	p.NeedAll(a.Input, a.Spatial.Keys)
	for i, name := range a.Spatial.Values {
		p.Need(a.Weight, Axis(name))
		for _, other := range a.Spatial.Values[:i] {
			if other == name {
				p.Fail(fmt.Sprintf("axis %q of %s slides along two axes", name, p.Describe(a.Weight)), p.c.info.AsIn())
			}
		}
	}
	if a.Axis != nil {
		p.NeedAll(a.Input, a.Axis)
		p.NeedAll(a.Weight, a.Axis)
		if both := a.Axis.Shared(a.Spatial.Keys); both.Len() > 0 {
			p.Fail(fmt.Sprintf("axis %q of %s is to be summed up and to be slid along", both.At(0),
				p.Describe(a.Input)),
				refit(p.c, "one of the two", "axis", a.Axis.Without(both)))
		}
	}
	taken := a.Weight.axes.Without(axisList(a.Spatial.Values...)).Shared(a.Spatial.Keys)
	if taken.Len() > 0 {
		p.Fail(fmt.Sprintf("%s has %s, along which it slides too", p.Describe(a.Weight), quoted(taken.Names())),
			p.c.hint(p.c.renamed("call it otherwise", a.Weight, taken.Names(),
				freshNames(taken, a.Weight.axes, a.Input.axes))))
	}
	r := a.roles()
	p.Within(a.Bias, r.shared.Append(r.own), "a channel of the output")
	p.Out(r.out, p.Same(a.Input, a.Weight, a.Bias))
	p.Keep(r)
}

// slide is how the weight slides along one axis: with the stride s and the dilation d, place k of the kernel meets
// place p of the smaller side at place p·s + k·d - before of the larger side. The smaller side is the output of
// conv and the input of conv_transpose.
type slide struct {
	s, d, before, after  int
	kernel, small, large int
}

// reach is how many places of the larger side the kernel spans at once.
func (l *slide) reach() int { return l.d*(l.kernel-1) + 1 }

// slides reads the options; the sizes of both sides are left open.
func (a *Convolution) slides(r convRoles, padding PerAxis) []slide {
	list := make([]slide, r.spatial.Len())
	for i, name := range r.spatial.Names() {
		l := &list[i]
		l.s, _ = a.Stride.At(name, 1)
		l.d, _ = a.Dilation.At(name, 1)
		l.before, l.after = padding.At(name, 0)
		l.kernel = a.Weight.Size(r.kernel.At(i))
	}
	return list
}

// check compares the sizes of batch axes and looks at the options.
func (a *Convolution) check(s *Sizes, r convRoles, slides []slide) {
	s.Match(r.spatial.Append(r.kernel).Append(r.contract).Append(r.own))
	s.perAxis("stride", a.Stride, r.spatial)
	s.perAxis("dilation", a.Dilation, r.spatial)
	for i, l := range slides {
		if l.s < 1 || l.d < 1 {
			s.Fail(fmt.Sprintf("along %q the stride is %d and the dilation %d", r.spatial.At(i), l.s, l.d),
				s.c.hint(s.c.recall("they are at least 1", s.c.unstrided())))
		}
		if l.kernel == 0 {
			s.Fail(fmt.Sprintf("axis %q of %s is empty", r.kernel.At(i), s.Describe(a.Weight)),
				"a kernel has at least one place, without one instead: input")
		}
	}
	if a.Groups < 1 {
		s.Fail(fmt.Sprintf("groups is %d", a.Groups), refit(s.c, "1 is no grouping", "groups", 1))
	}
	if a.Groups > 1 && (r.contract.Len() != 1 || r.own.Len() != 1) {
		s.Fail(fmt.Sprintf("groups are of one axis summed up and one new axis, got %s and %s",
			orNone(r.contract.Names()), orNone(r.own.Names())), refit(s.c, "1 is no grouping", "groups", 1))
	}
}

// checkBias compares the bias with the output, whose sizes are settled.
func (a *Convolution) checkBias(s *Sizes) {
	if a.Bias == nil {
		return
	}
	for _, name := range a.Bias.axes.Names() {
		if n := s.c.outs[0].Size(name); n != a.Bias.Size(name) {
			s.Fail(fmt.Sprintf("axis %q is %d in %s but %d in the output", name, a.Bias.Size(name),
				s.Describe(a.Bias), n),
				s.c.hint(s.c.cut(a.Bias, name, n)))
		}
	}
}

// perAxis insists that an option is given for axes in use only.
func (s *Sizes) perAxis(option string, v PerAxis, axes Axes) {
	if v.Each.Keys == nil {
		return
	}
	if more := v.Each.Keys.Without(axes); more.Len() > 0 {
		s.Fail(fmt.Sprintf("%s is given for %s", option, quoted(more.Names())),
			refit(s.c, "the axes are "+quoted(axes.Names()), option, PerAxis{All: 1}))
	}
}

// weightGradient is the gradient with respect to the weight: the sum over the batch and the places of the smaller
// side of large · small, where the kernel puts them together. The weight shares the axes of a channel with either.
func (a *Convolution) weightGradient(
	r convRoles, slides []slide, large, small *Tensor, channel, smallChannel Axes,
) *Tensor {
	const group = "conv_group"
	if a.Groups > 1 {
		large = large.grouped(channel.At(0), group, a.Groups)
		small = small.grouped(smallChannel.At(0), group, a.Groups)
	}
	stride, dilation, padding := perAxisOf(r.spatial), perAxisOf(r.spatial), perAxisOf(r.spatial)
	for i, l := range slides {
		stride.Each.Values[i], dilation.Each.Values[i] = [2]int{l.d, l.d}, [2]int{l.s, l.s}
		padding.Each.Values[i] = [2]int{l.before, l.reach() + l.s*(l.small-1) - l.large - l.before}
	}
	gw := conv.Call(Conv{Padding: padding, Convolution: Convolution{Input: large, Weight: small, Axis: r.free,
		Spatial: Map[string]{r.spatial, r.spatial.Names()}, Stride: stride, Dilation: dilation, Groups: 1}})
	gw = rename.Call(Rename{X: gw, To: Map[string]{r.spatial, r.kernel.Names()}})
	if a.Groups > 1 {
		name := smallChannel.At(0)
		gw = merge.Call(Merge{X: gw, Into: Map[Axes]{axisList(name), []Axes{axisList(group, name)}}})
	}
	return gw
}

// grouped splits an axis into groups and what is left under the old name.
func (t *Tensor) grouped(name, group string, groups int) *Tensor {
	into := Map[int]{axisList(group, name), []int{groups, t.Size(name) / groups}}
	return split.Call(Split{X: t, Axis: Axis(name), Into: into})
}

// perAxisOf is an option with one entry per axis.
func perAxisOf(axes Axes) PerAxis {
	return PerAxis{Each: Map[[2]int]{Keys: axes, Values: make([][2]int, axes.Len())}}
}

// convolutions is samples of convolutions whose contracted axes are called "in" in the weight too, and whose own are
// called "out": lengths of every kind, with and without contracted, own, batch and shared axes.
func (m *Maker) convolutions() (list []Convolution) {
	add := func(dt dtype.Type, input, weight, axes, spatial, kernel, bias string) {
		a := Convolution{Input: m.Tensor(dt, input), Weight: m.Tensor(dt, weight), Stride: Every(1), Dilation: Every(1),
			Groups: 1, Spatial: Map[string]{axisList(strings.Fields(spatial)...), strings.Fields(kernel)}}
		if axes != "" {
			a.Axis = axisList(strings.Fields(axes)...)
		}
		if bias != "-" {
			a.Bias = m.Tensor(dt, bias)
		}
		list = append(list, a)
	}
	for _, n := range lengths[1:] {
		add(dtype.F32, fmt.Sprintf("row=2 in=3 x=%d", n), "out=4 in=3 kx=1", "in", "x", "kx", "out=4")
	}
	for _, n := range []int{0, 15, 16, 17} {
		add(dtype.F32, fmt.Sprintf("row=2 in=%d x=9", n), fmt.Sprintf("out=2 in=%d kx=3", n), "in", "x", "kx", "-")
		add(dtype.F32, "row=3 in=2 x=9", fmt.Sprintf("out=%d in=2 kx=3", n), "in", "x", "kx", "-")
		add(dtype.F32, fmt.Sprintf("shared=%d row=2 x=4", n), fmt.Sprintf("shared=%d kx=2", n), "", "x", "kx", "-")
	}
	add(dtype.F32, "row=0 in=3 x=5", "out=2 in=3 kx=3", "in", "x", "kx", "out=2")
	for _, dt := range floats {
		add(dt, "row=2 y=6 x=7 in=4", "kx=3 ky=2 in=4 out=5", "in", "y x", "ky kx", "out=5")
		add(dt, "shared=4 y=5 x=6 row=2", "shared=4 ky=3 kx=3 out=2", "", "x y", "kx ky", "out=2 shared=4")
		add(dt, "row=2 x=9 shared=17", "shared=17 kx=3", "", "x", "kx", "shared=17")
		add(dt, "x=9", "kx=3", "", "x", "kx", "")
		add(dt, "a=3 row=2 b=2 x=9", "b=2 kx=3 out=3 a=3", "a b", "x", "kx", "-")
	}
	return list
}
