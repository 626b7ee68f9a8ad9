package core

import (
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Clamp is x brought to at least min and at most max, element by element. Each may be left out, and be a number or
// a tensor aligned by axis name.
//
// Shape: x[a], min[b], max[c] → y[the widest one's axes], which the others' are a subset of.
// Numerics: NaN if any of the three is NaN; max where min is above it.
//
// Errors: neither min nor max.
//
// Example:
//
//	tensor([-2.0, 0.5, 3.0], "a").clamp(min=0, max=1)
type Clamp struct {
	X   *Tensor `arg:"x"`
	Min *Tensor `arg:"min?,number"`
	Max *Tensor `arg:"max?,number"`
}

var clamp = Declare[Clamp]("clamp")

// Clamp is x brought to at least low and at most high, each of which may be nil; see the Clamp operation.
func (x *Tensor) Clamp(low, high *Tensor) *Tensor {
	return clamp.Call(Clamp{X: x, Min: low, Max: high})
}

// Names broadcasts by name; all have one dtype, which is the result's.
func (a *Clamp) Names(p *Plan) {
	if a.Min == nil && a.Max == nil {
		p.Fail("got neither min nor max", "give one or both: x.clamp(0, 1)")
	}
	axes := p.Broadcast(false, a.X, a.Min, a.Max)
	p.Out(axes, p.Same(a.X, a.Min, a.Max))
}

// Eval brings each element between the bounds.
func (a *Clamp) Eval(c *Ctx) {
	switch classOf(a.X.dtype) {
	case dtype.F32:
		clampAll[float32](c, a)
	case dtype.F64:
		clampAll[float64](c, a)
	default:
		clampAll[int64](c, a)
	}
}

func clampAll[C number](c *Ctx, a *Clamp) {
	switch {
	case a.Max == nil:
		pointwise(c, c.Out(0), atLeast[C], a.X, a.Min)
	case a.Min == nil:
		pointwise(c, c.Out(0), atMost[C], a.X, a.Max)
	default:
		pointwise(c, c.Out(0), between[C], a.X, a.Min, a.Max)
	}
}

func atLeast[C number](_ Op, y []C, xs *[maxOperands][]C) { raise(y, xs[0][:len(y)], xs[1][:len(y)]) }

func atMost[C number](_ Op, y []C, xs *[maxOperands][]C) { lower(y, xs[0][:len(y)], xs[1][:len(y)]) }

func between[C number](_ Op, y []C, xs *[maxOperands][]C) {
	raise(y, xs[0][:len(y)], xs[1][:len(y)])
	lower(y, y, xs[2][:len(y)])
}

// raise is the greater of x and y in z, which may be one of them.
func raise[C number](z, x, y []C) {
	switch z := any(z).(type) {
	case []float32:
		num.Maximum(z, any(x).([]float32), any(y).([]float32))
	case []float64:
		num.Maximum(z, any(x).([]float64), any(y).([]float64))
	case []int64:
		x, y := any(x).([]int64), any(y).([]int64)
		for i := range z {
			z[i] = max(x[i], y[i])
		}
	}
}

// lower is the lesser of x and y in z, which may be one of them.
func lower[C number](z, x, y []C) {
	switch z := any(z).(type) {
	case []float32:
		num.Minimum(z, any(x).([]float32), any(y).([]float32))
	case []float64:
		num.Minimum(z, any(x).([]float64), any(y).([]float64))
	case []int64:
		x, y := any(x).([]int64), any(y).([]int64)
		for i := range z {
			z[i] = min(x[i], y[i])
		}
	}
}

// VJP gives gy to x where it lies between the bounds or on one, else to the bound.
func (a *Clamp) VJP(_, gy []*Tensor, g *Grads) {
	less := func(x, y *Tensor) *Tensor { return lt.Call(Lt{Compare{X: x, Y: y, Outer: true}}) }
	inside, raised := gy[0], a.X
	if a.Min != nil {
		below := less(a.X, a.Min)
		if g.Wants(1) {
			low := gy[0].where(below)
			if a.Max != nil {
				low = low.where(less(a.Min, a.Max))
			}
			g.Set(1, low)
		}
		inside = inside.where(below.LogicalNot())
		raised = maximum.Call(Maximum{Binary{X: a.X, Y: a.Min, Outer: true}})
	}
	if a.Max != nil {
		if g.Wants(2) {
			g.Set(2, gy[0].where(less(a.Max, raised)))
		}
		inside = inside.where(less(a.Max, a.X).LogicalNot())
	}
	g.Set(0, inside)
}

// Samples covers the lengths, both bounds and one, numbers and tensors, and the dtypes.
func (*Clamp) Samples(m *Maker) (list []Clamp) {
	for _, n := range lengths {
		list = append(list, Clamp{X: m.Tensor(dtype.F32, "row=3 col=%d", n), Min: m.Tensor(dtype.F32, "row=3"),
			Max: m.Tensor(dtype.F32, "col=%d row=3", n)})
	}
	for _, dt := range allDTypes {
		list = append(list, Clamp{X: m.Tensor(dt, "row=3 col=17"), Min: m.Tensor(dt, "")},
			Clamp{X: m.Tensor(dt, "row=3 col=17"), Max: m.Tensor(dt, "col=17")},
			Clamp{X: m.Tensor(dt, "col=17"), Min: m.Tensor(dt, "col=17"), Max: m.Tensor(dt, "row=3 col=17")})
	}
	return list
}
