package core

import "unsafe"

// Set writes v into a part of x, in place, and returns x. The part is what x.slice(ranges) would
// be; v has its axes, or fewer and is repeated, or is a plain number.
//
// Errors: an axis that x lacks; v of another size or dtype; x whose bytes belong to a file or to
// several interpreters.
//
// Example:
//
//	zeros(a=4).set(7, a=(1, 3))
type Set struct {
	X      *Tensor    `arg:"x"`
	V      *Tensor    `arg:"v,number"`
	Ranges Map[Range] `arg:"ranges,rest"`
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
	if a.X.env == nil || a.X.buf != nil && a.X.buf.Borrowed() {
		p.Fail(p.Describe(a.X)+" is shared and may not be changed", "change a copy: x.copy()")
	}
	p.Out(a.X.axes, a.X.dtype)
}

// Sizes insists that v fits the part.
func (a *Set) Sizes(s *Sizes) {
	part := a.part()
	for k, name := range a.V.axes.Names() {
		if n := part.Size(name); n != a.V.sizes[k] {
			s.c.sizeConflict(part, a.V, name)
		}
	}
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

// Eval writes.
func (a *Set) Eval(c *Ctx) {
	if part := a.part(); part.Len() > 0 {
		c.copyStrided(part, a.V)
		a.X.buf.Touch()
		a.X.version = a.X.buf.Version()
	}
}
