package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// Squeeze takes away axes of size 1. It is a view.
//
// Shape: x[batch=1, seq] → y[seq] for squeeze("batch").
//
// Errors: an axis that x lacks, or of another size. The axes are always named: which ones a result has must
// not depend on sizes.
//
// Example:
//
//	zeros(batch=1, seq=2).squeeze("batch")
type Squeeze struct {
	X    *Tensor `arg:"x"`
	Axes Axes    `arg:"axes"`
}

var squeeze = Declare[Squeeze]("squeeze")

// Squeeze takes away axes of size 1; see the Squeeze operation.
func (x *Tensor) Squeeze(axes string) *Tensor {
	return squeeze.Call(Squeeze{X: x, Axes: axisList(axes)})
}

// Names drops the axes.
func (a *Squeeze) Names(p *Plan) {
	p.NeedAll(a.X, a.Axes)
	p.Out(a.X.axes.Without(a.Axes), a.X.dtype)
}

// Sizes insists on size 1.
func (a *Squeeze) Sizes(s *Sizes) {
	for _, name := range a.Axes.Names() {
		if n := a.X.Size(name); n != 1 {
			s.Fail(fmt.Sprintf("axis %q of %s is %d, want 1", name, s.Describe(a.X), n),
				fmt.Sprintf("take one place of it instead: x.at(%s=0)", Keyword(name)))
		}
	}
}

// View keeps the strides.
func (a *Squeeze) View(v *View) bool {
	v.keep(a.X)
	return true
}

// Samples covers the lengths of what stays, several axes, and the dtypes.
func (*Squeeze) Samples(m *Maker) (list []Squeeze) {
	for _, n := range lengths {
		list = append(list, Squeeze{X: m.Tensor(dtype.F32, "row=3 b=1 col=%d", n), Axes: axisList("b")})
	}
	for _, dt := range allDTypes {
		list = append(list, Squeeze{X: m.Tensor(dt, "b=1 row=3 a=2 c=1"), Axes: axisList("c", "b")})
	}
	return list
}

// Saves nothing.
func (*Squeeze) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP puts the axes back.
func (a *Squeeze) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, insert.Call(Insert{X: gy[0], Axes: a.Axes}))
}
