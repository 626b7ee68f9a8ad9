package core

import (
	"fmt"
	"slices"

	"github.com/fucina-go/fucina/core/dtype"
)

// Slice is a part of x along the named axes, as Python's x[start:stop:step] along each. It is a
// view: nothing is copied.
//
// Shape: x[…, axis=n, …] → y[…, axis=len(range(start, stop, step)), …]. A range is (start, stop) or
// (start, stop, step); None stands for the end of the axis, negative places count from it, and
// places beyond it are clamped. A negative step walks backwards.
//
// Errors: an axis that x lacks; a step of 0.
//
// Example:
//
//	arange(10, "seq").slice(seq=(2, 8, 2))
type Slice struct {
	X      *Tensor    `arg:"x"`
	Ranges Map[Range] `arg:"ranges,rest"`
}

var sliceOp = Declare[Slice]("slice")

// Slice is the part of x along one axis; see the Slice operation.
func (x *Tensor) Slice(axis string, start, stop, step int) *Tensor {
	return sliceOp.Call(Slice{X: x, Ranges: Map[Range]{axisList(axis), []Range{{&start, &stop, &step}}}})
}

// Names keeps the axes.
func (a *Slice) Names(p *Plan) {
	p.NeedAll(a.X, a.Ranges.Keys)
	p.Out(a.X.axes, a.X.dtype)
}

// Sizes counts the places of each range.
func (a *Slice) Sizes(s *Sizes) {
	for i, name := range a.Ranges.Keys.Names() {
		r := a.Ranges.Values[i]
		r.check(s, name)
		_, _, n := r.indices(a.X.Size(name))
		s.Set(0, name, n)
	}
}

// check insists on a range that goes somewhere.
func (r Range) check(s *Sizes, name string) {
	if r.Step != nil && *r.Step == 0 {
		s.Fail(fmt.Sprintf("the step along %q is 0", name),
			s.c.hint(s.c.recall("a step is 1, 2, … or -1, -2, …",
				s.c.ranged(name, Range{Start: r.Start, Stop: r.Stop}))))
	}
}

// ranged is the call with another range of the axis.
func (c *call) ranged(name string, r Range) Op {
	op := c.info.clone(c.op)
	for k := range c.info.Fields {
		if f := &c.info.Fields[k]; f.Kind == KindRanges {
			m := (*Map[Range])(f.At(op))
			m.Values = slices.Clone(m.Values)
			m.Values[m.Keys.Index(name)] = r
		}
	}
	return op
}

// View moves the start and stretches the strides.
func (a *Slice) View(v *View) bool {
	x, skip := a.X, 0
	for k, name := range x.axes.Names() {
		stride := x.strides[k]
		if i := a.Ranges.Keys.Index(name); i >= 0 {
			start, step, _ := a.Ranges.Values[i].indices(x.sizes[k])
			skip += start * stride
			stride *= step
		}
		v.Stride(k, stride)
	}
	v.Alias(x, skip)
	return true
}

// indices is where the range begins on an axis of size n, its step and how many places it has:
// Python's slice.indices.
func (r Range) indices(n int) (start, step, count int) {
	step = 1
	if r.Step != nil {
		step = *r.Step
	}
	lo, hi := 0, n // the clamping bounds
	if step < 0 {
		lo, hi = -1, n-1
	}
	place := func(p *int, absent int) int {
		if p == nil {
			return absent
		}
		at := *p
		if at < 0 {
			at += n
		}
		return min(max(at, lo), hi)
	}
	if step > 0 {
		start = place(r.Start, lo)
		stop := place(r.Stop, hi)
		if start >= stop {
			return start, step, 0
		}
		return start, step, (stop-start-1)/step + 1
	}
	start = place(r.Start, hi)
	stop := place(r.Stop, lo)
	if start <= stop {
		return start, step, 0
	}
	return start, step, (start-stop-1)/-step + 1
}

// Samples covers the lengths, both directions, ranges that are empty or open, and the dtypes.
func (*Slice) Samples(m *Maker) (list []Slice) {
	one, two, back := 1, 2, -2
	for _, n := range lengths {
		list = append(list, Slice{X: m.Tensor(dtype.F32, "row=3 col=%d", n),
			Ranges: Map[Range]{axisList("col"), []Range{{Start: &one, Step: &two}}}})
	}
	for _, dt := range allDTypes {
		list = append(list, Slice{X: m.Tensor(dt, "row=3 col=17 a=4"),
			Ranges: Map[Range]{axisList("a", "col"), []Range{{Step: &back}, {Start: &two, Stop: &back}}}},
			Slice{X: m.Tensor(dt, "row=3 col=17"),
				Ranges: Map[Range]{axisList("col"), []Range{{Start: &two, Stop: &one}}}})
	}
	return list
}

// Saves nothing.
func (*Slice) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP puts gy into zeros.
func (a *Slice) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, set.Call(Set{X: a.X.zerosIn(gy[0].env), V: gy[0], Ranges: a.Ranges}))
}
