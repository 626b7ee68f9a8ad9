package core

import "github.com/fucina-go/fucina/core/dtype"

// Flip is x with the order of its elements reversed along the named axes. It is a view.
//
// Shape: x[axes] → y[axes].
//
// Errors: an axis that x lacks.
//
// Example:
//
//	arange(5, "seq").flip("seq")
type Flip struct {
	X    *Tensor `arg:"x"`
	Axes Axes    `arg:"axes"`
}

var flip = Declare[Flip]("flip")

// Flip reverses the named axes; see the Flip operation.
func (x *Tensor) Flip(axes string) *Tensor { return flip.Call(Flip{X: x, Axes: axisList(axes)}) }

// Names keeps the axes.
func (a *Flip) Names(p *Plan) {
	p.NeedAll(a.X, a.Axes)
	p.Out(a.X.axes, a.X.dtype)
}

// View begins at the other end and walks backwards.
func (a *Flip) View(v *View) bool {
	skip := 0
	for k, name := range a.X.axes.Names() {
		stride := a.X.strides[k]
		if a.Axes.Has(name) {
			skip += (a.X.sizes[k] - 1) * stride
			stride = -stride
		}
		v.Stride(k, stride)
	}
	v.Alias(a.X, skip)
	return true
}

// Samples covers the lengths, several axes, and the dtypes.
func (*Flip) Samples(m *Maker) (list []Flip) {
	for _, n := range lengths {
		list = append(list, Flip{X: m.Tensor(dtype.F32, "row=3 col=%d", n), Axes: axisList("col")})
	}
	for _, dt := range allDTypes {
		list = append(list, Flip{X: m.Tensor(dt, "a=3 row=2 col=17"), Axes: axisList("col", "a")})
	}
	return list
}

// Saves nothing.
func (*Flip) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP flips back.
func (a *Flip) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, flip.Call(Flip{X: gy[0], Axes: a.Axes})) }
