package core

import (
	"fmt"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
)

// Set writes v into a part of x, in place, and returns x. The part is what x.slice(ranges) would
// be; v has its axes, or fewer and is repeated, or is a plain number. An interrupt comes before or after it, so that
// x never has a part of v.
//
// Errors: an axis that x lacks; a step of 0; v of another size or dtype; x whose bytes belong to a
// file or to several interpreters, or which repeats along an axis, as after expand.
//
// Example:
//
//	zeros(a=4).set(7, a=(1, 3))
type Set struct {
	X      *Tensor    `arg:"x"`
	V      *Tensor    `arg:"v,number"`
	Ranges Map[Range] `arg:"ranges,rest"`

	dense *Tensor // what Prepare made of V, for Eval
}

var set = Declare[Set]("set")

// SetSlice writes v into x along one axis from start, in place; see the Set operation.
func (x *Tensor) SetSlice(v *Tensor, axis string, start, stop int) *Tensor {
	return set.Call(Set{X: x, V: v, Ranges: Map[Range]{axisList(axis), []Range{{Start: &start, Stop: &stop}}}})
}

// InPlace marks that x changes.
func (*Set) InPlace() {}

// Names insists that v's axes are x's.
func (a *Set) Names(p *Plan) {
	p.NeedAll(a.X, a.Ranges.Keys)
	p.NeedAll(a.X, a.V.axes)
	p.Same(a.X, a.V)
	p.Out(a.X.axes, a.X.dtype)
}

// Sizes insists that x may be written and that v fits the part.
func (a *Set) Sizes(s *Sizes) {
	if a.X.env == nil || a.X.buf != nil && a.X.buf.Borrowed() {
		s.Fail(s.Describe(a.X)+" is shared and may not be changed", "change a copy: x.copy()")
	}
	for i, name := range a.Ranges.Keys.Names() {
		a.Ranges.Values[i].check(s, name)
	}
	part := a.part()
	if name := part.overlaps(); name != "" {
		s.Fail(fmt.Sprintf("%s repeats the same memory along %q and may not be changed", s.Describe(a.X), name),
			"change a copy: x.copy()")
	}
	for k, name := range a.V.axes.Names() {
		if n := part.Size(name); n != a.V.sizes[k] {
			a.misfit(s, name, n)
		}
	}
}

// misfit fails because v is not as long as the part along an axis that has n places there.
func (a *Set) misfit(s *Sizes, name string, n int) {
	have := a.V.Size(name)
	tries := []remedy{s.c.cut(a.V, name, n)}
	if have < n {
		i := a.Ranges.Keys.Index(name)
		tries = nil
		if have == 1 {
			tries = append(tries, s.c.taken("size 1 does not stretch", a.V, axisList(name)))
		}
		if i >= 0 {
			start, step, _ := a.Ranges.Values[i].indices(a.X.Size(name))
			stop := start + have*step
			tries = append(tries, s.c.recall("set fewer places", s.c.ranged(name, Range{&start, &stop, &step})))
		}
	}
	s.Fail(fmt.Sprintf("axis %q is %d in %s but %d in the part of %s", name, have, s.Describe(a.V), n,
		s.Describe(a.X)), s.c.hint(tries...))
}

// part is the slice of x that is written.
func (a *Set) part() *Tensor {
	x := a.X
	t := &Tensor{env: x.env, dtype: x.dtype, axes: x.axes, buf: x.buf}
	t.sizes, t.strides = append([]int(nil), x.sizes...), append([]int(nil), x.strides...)
	skip := 0
	for i, name := range a.Ranges.Keys.Names() {
		k := x.axes.Index(name)
		start, step, n := a.Ranges.Values[i].indices(x.sizes[k])
		skip += start * x.strides[k]
		t.sizes[k], t.strides[k] = n, step*x.strides[k]
	}
	if x.data != nil && t.Len() > 0 {
		t.data = unsafe.Add(x.data, skip*x.dtype.Size())
	}
	return t
}

// looseSet is from how many bytes on values that lie in another order are copied before they are written.
const looseSet = 8 << 20

// Prepare copies values that may overlap with x; and many that lie in another order, if there is room for them: while
// x changes nothing can be stopped, and to write them then takes ten times as long as to write a copy that does not.
func (a *Set) Prepare(c *Ctx) {
	a.dense = nil
	if a.V.Len() == 0 {
		return
	}
	size, order := a.V.Len()*a.V.dtype.Size(), a.X.axes.Shared(a.V.axes)
	v := a.V.permuted(order)
	loose := size >= looseSet && !v.dense() && c.c.env.fits(int64(size))
	if loose || a.V.buf == a.X.buf {
		a.dense = c.Scratch(a.V.dtype, order, v.sizes)
		c.touch(a.dense)
		c.copyInto(a.dense, a.V)
	}
}

// Eval writes.
func (a *Set) Eval(c *Ctx) {
	v := a.V
	if a.dense != nil {
		v, a.dense = a.dense, nil
	}
	if part := a.part(); part.Len() > 0 {
		c.copyStrided(part, v)
		a.X.buf.Touch()
		a.X.version = a.X.buf.Version()
	}
}

// Samples covers the lengths of the part, values that repeat, stepped ranges, and the dtypes.
func (*Set) Samples(m *Maker) (list []Set) {
	one, two, nine, back := 1, 2, 9, -1
	for _, n := range lengths {
		list = append(list, Set{X: m.Tensor(dtype.F32, "row=3 col=%d", n), V: m.Tensor(dtype.F32, "col=%d row=2", n),
			Ranges: Map[Range]{axisList("row"), []Range{{Start: &one}}}})
	}
	for _, dt := range allDTypes {
		list = append(list, Set{X: m.Tensor(dt, "row=3 col=17"), V: m.Tensor(dt, "col=4 row=3"),
			Ranges: Map[Range]{axisList("col"), []Range{{Start: &one, Stop: &nine, Step: &two}}}},
			Set{X: m.Tensor(dt, "row=3 col=17"), V: m.Tensor(dt, ""),
				Ranges: Map[Range]{axisList("col"), []Range{{Step: &two}}}},
			Set{X: m.Tensor(dt, "a=3 col=17"), V: m.Tensor(dt, "a=3 col=17"),
				Ranges: Map[Range]{axisList("a"), []Range{{Step: &back}}}})
	}
	return list
}

// Saves nothing.
func (*Set) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP gives v the part of gy that it wrote, and x the rest.
func (a *Set) VJP(_, gy []*Tensor, g *Grads) {
	if g.Wants(0) {
		g.Set(0, set.Call(Set{X: gy[0].Copy(), V: Number(gy[0].env, 0, 0, false), Ranges: a.Ranges}))
	}
	if g.Wants(1) {
		g.Set(1, sliceOp.Call(Slice{X: gy[0], Ranges: a.Ranges}))
	}
}
