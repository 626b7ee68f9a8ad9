package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// Unfold is the windows of a given length that slide along an axis, step places at a time. It is a view:
// windows that overlap share their memory.
//
// Shape: x[…, seq=n, …] → y[…, seq=(n-size)/step+1, …, window=size] for unfold("seq", window=size).
//
// Errors: an axis that x lacks; a window longer than the axis; a new name that x has already; a step below 1.
//
// Example:
//
//	arange(6, "seq").unfold("seq", window=3)
type Unfold struct {
	X    *Tensor  `arg:"x"`
	Axis Axis     `arg:"axis"`
	Into Map[int] `arg:"into,rest"`
	Step int      `arg:"step=1"`
}

var unfold = Declare[Unfold]("unfold")

// Unfold is the windows of size elements along the axis, which lie along a new axis; see the Unfold operation.
func (x *Tensor) Unfold(axis, window string, size, step int) *Tensor {
	return unfold.Call(Unfold{X: x, Axis: Axis(axis), Into: Map[int]{axisList(window), []int{size}}, Step: step})
}

// Names puts the new axis last.
func (a *Unfold) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	if a.Into.Keys.Len() != 1 {
		p.Fail(fmt.Sprintf("got %d axes for the windows of %s, want one", a.Into.Keys.Len(), p.Describe(a.X)),
			p.c.hint(p.c.recall("name it and say how long a window is",
				a.with(freshNames(axisList("window"), a.X.axes)[0], 1))))
	}
	if name := a.Into.Keys.At(0); a.X.axes.Has(name) {
		p.Fail(fmt.Sprintf("%s has the axis %q already", p.Describe(a.X), name), p.c.hint(
			p.c.recall("choose another name", a.with(freshNames(axisList(name), a.X.axes)[0], a.Into.Values[0]))))
	}
	p.Out(a.X.axes.Append(a.Into.Keys), a.X.dtype)
}

// with is the call with windows of another name and size.
func (a *Unfold) with(name string, size int) Op {
	fixed := *a
	fixed.Into = Map[int]{axisList(name), []int{size}}
	return &fixed
}

// Sizes counts the windows.
func (a *Unfold) Sizes(s *Sizes) {
	name, size, n := a.Into.Keys.At(0), a.Into.Values[0], a.X.Size(string(a.Axis))
	if size < 1 || size > n {
		s.Fail(fmt.Sprintf("%s=%d, but axis %q of %s has %d elements", Keyword(name), size, a.Axis, s.Describe(a.X), n),
			s.c.hint(s.c.recall(fmt.Sprintf("a window has 1 … %d", n), a.with(name, min(max(size, 1), n)))))
	}
	if a.Step < 1 {
		fixed := *a
		fixed.Step = 1
		s.Fail(fmt.Sprintf("step=%d leads nowhere", a.Step), s.c.hint(s.c.recall("it is 1, 2, …", &fixed)))
	}
	s.Set(0, string(a.Axis), (n-size)/a.Step+1)
	s.Set(0, name, size)
}

// View walks the axis twice.
func (a *Unfold) View(v *View) bool {
	for k, stride := range a.X.strides {
		if a.X.axes.At(k) == string(a.Axis) {
			v.Stride(len(a.X.strides), stride)
			stride *= a.Step
		}
		v.Stride(k, stride)
	}
	v.Alias(a.X, 0)
	return true
}

// Saves nothing.
func (*Unfold) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP adds up what all the windows over an element give it.
func (a *Unfold) VJP(_, gy []*Tensor, g *Grads) {
	windows, size := gy[0].Size(string(a.Axis)), a.Into.Values[0]
	index := make([]int64, 0, windows*size)
	for w := range windows {
		for i := range size {
			index = append(index, int64(w*a.Step+i))
		}
	}
	at := gy[0].env.FromInts(dtype.I64, index, axisList(string(a.Axis), a.Into.Keys.At(0)), windows, size)
	g.Set(0, a.X.zerosIn(gy[0].env).IndexAdd(at, gy[0], string(a.Axis)))
}

// Samples covers the lengths, windows that overlap, touch and leave gaps, and the dtypes.
func (*Unfold) Samples(m *Maker) (list []Unfold) {
	add := func(x *Tensor, size, step int) {
		list = append(list, Unfold{X: x, Axis: "col", Into: Map[int]{axisList("window"), []int{size}}, Step: step})
	}
	for _, n := range lengths {
		if n > 0 {
			add(m.Tensor(dtype.F32, "row=3 col=%d", n), min(n, 3), 2)
		}
	}
	add(m.Tensor(dtype.F32, "row=0 col=3"), 2, 1)
	for _, dt := range allDTypes {
		add(m.Tensor(dt, "col=17 row=3"), 2, 2)
		add(m.Tensor(dt, "col=17"), 2, 5)
	}
	return list
}
