package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// Insert gives x new axes of size 1. They come first, in the order given, unless before or after names the
// axis of x they are to stand beside. It is a view.
//
// Shape: x[seq, embed] → y[batch=1, seq, embed] for insert("batch"); y[seq, head=1, embed] for
// insert("head", before="embed") or insert("head", after="seq").
//
// Errors: an axis that x has already; before or after naming one that x lacks, or both given.
//
// Example:
//
//	zeros(seq=2, embed=3).insert("head", after="seq")
type Insert struct {
	X      *Tensor `arg:"x"`
	Axes   Axes    `arg:"axes"`
	Before Axis    `arg:"before?"`
	After  Axis    `arg:"after?"`
}

var insert = Declare[Insert]("insert")

// Insert gives x new axes of size 1, which come first; see the Insert operation.
func (x *Tensor) Insert(axes string) *Tensor { return insert.Call(Insert{X: x, Axes: axisList(axes)}) }

// Names puts the new axes in their place.
func (a *Insert) Names(p *Plan) {
	if both := a.Axes.Shared(a.X.axes); both.Len() > 0 {
		fixed := *a
		fixed.Axes, _ = a.Axes.Rename(both, freshNames(both, a.Axes, a.X.axes))
		p.Fail(fmt.Sprintf("%s has the axis %s already", p.Describe(a.X), quoted(both.Names())),
			p.c.hint(p.c.recall("choose another name", &fixed)))
	}
	if a.Before != "" && a.After != "" {
		fixed := *a
		fixed.After = ""
		p.Fail("got both before and after", p.c.hint(p.c.recall("one of them is enough", &fixed)))
	}
	at := 0
	switch {
	case a.Before != "":
		p.Need(a.X, a.Before)
		at = a.X.axes.Index(string(a.Before))
	case a.After != "":
		p.Need(a.X, a.After)
		at = a.X.axes.Index(string(a.After)) + 1
	}
	names := a.X.axes.Names()
	axes := axisList(names[:at]...).Append(a.Axes).Append(axisList(names[at:]...))
	p.Out(axes, a.X.dtype)
}

// Sizes gives the new axes size 1.
func (a *Insert) Sizes(s *Sizes) {
	for _, name := range a.Axes.Names() {
		s.Set(0, name, 1)
	}
}

// View keeps the strides.
func (a *Insert) View(v *View) bool {
	v.keep(a.X)
	return true
}

// keep makes the output share x's bytes and has its strides along the axes that both have.
func (v *View) keep(x *Tensor) {
	for k, name := range v.out.axes.Names() {
		stride := 1
		if i := x.axes.Index(name); i >= 0 {
			stride = x.strides[i]
		}
		v.Stride(k, stride)
	}
	v.Alias(x, 0)
}

// Samples covers the lengths, every place, several axes, and the dtypes.
func (*Insert) Samples(m *Maker) (list []Insert) {
	b := axisList("b")
	for _, n := range lengths {
		list = append(list, Insert{X: m.Tensor(dtype.F32, "row=3 col=%d", n), Axes: b, After: "row"},
			Insert{X: m.Tensor(dtype.F32, "row=3 col=%d", n), Axes: b, After: "col"})
	}
	list = append(list, Insert{X: m.Tensor(dtype.F32, ""), Axes: b},
		Insert{X: m.Tensor(dtype.F32, "row=3"), Axes: axis.Empty})
	for _, dt := range allDTypes {
		list = append(list, Insert{X: m.Tensor(dt, "row=3 a=2 col=17"), Axes: axisList("c", "b"), Before: "a"})
	}
	return list
}

// Saves nothing.
func (*Insert) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP takes the axes away again.
func (a *Insert) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, squeeze.Call(Squeeze{X: gy[0], Axes: a.Axes}))
}
