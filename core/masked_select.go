package core

import (
	"fmt"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// MaskedSelect is the elements of x where the mask is true, one after another along one axis, in the order
// of x's axes. x and the mask are aligned by axis name.
//
// Shape: x[axes], mask[a subset of them, or the other way round] of bools → y[axis=number of true ones].
//
// Errors: a mask of another dtype. The size is not known in a shape-only run, which fails here.
//
// Example:
//
//	x = tensor([1.0, -2.0, 3.0], "a")
//	x.masked_select(x.gt(0))
type MaskedSelect struct {
	X    *Tensor `arg:"x"`
	Mask *Tensor `arg:"mask"`
	Axis Axis    `arg:"axis=selected"`
}

var maskedSelect = Declare[MaskedSelect]("masked_select")

// MaskedSelect is the elements where mask is true, along the named axis; see the MaskedSelect operation.
func (x *Tensor) MaskedSelect(mask *Tensor, axis string) *Tensor {
	return maskedSelect.Call(MaskedSelect{X: x, Mask: mask, Axis: Axis(axis)})
}

// Names makes one axis.
func (a *MaskedSelect) Names(p *Plan) {
	if a.Mask.dtype != dtype.Bool {
		p.Fail(fmt.Sprintf("%s is %s, want bool", p.Describe(a.Mask), a.Mask.dtype), "compare it: mask.ne(0)")
	}
	p.Keep(p.Broadcast(false, a.X, a.Mask))
	p.Out(axisList(string(a.Axis)), a.X.dtype)
}

// Sizes counts.
func (a *MaskedSelect) Sizes(s *Sizes) {
	s.Match(nil)
	if s.c.env.shapeOnly {
		s.Fail(fmt.Sprintf("how long axis %q gets depends on the values of %s", a.Axis, s.Describe(a.Mask)),
			"a shape-only run has no values, but what keeps the shape instead: x.mul(mask.cast(\"f32\"))")
	}
	n, seen := 0, 0
	for offset := range a.Mask.each {
		if seen++; seen%pauseLen == 0 {
			s.c.env.checkStop()
		}
		if *(*bool)(unsafe.Add(a.Mask.data, offset)) {
			n++
		}
	}
	s.Set(0, string(a.Axis), n*volume(a.X, a.X.axes.Without(a.Mask.axes)))
}

// Eval notes where the mask is true and copies from there.
func (a *MaskedSelect) Eval(c *Ctx) {
	out, axes := c.Out(0), c.Data().(*axis.List)
	places := c.Save(dtype.I64, out.axes, out.sizes)
	if places == nil {
		places = c.Scratch(dtype.I64, out.axes, out.sizes)
	}
	if out.Len() == 0 {
		return
	}
	at := elementsOf[int64](places)[:0]
	mask := elementsOf[bool](c.spread(a.Mask, axes, a.sizes(axes)))
	for lo, hi := range c.c.env.scan(len(mask)) {
		for i := lo; i < hi; i++ {
			if mask[i] {
				at = append(at, int64(i))
			}
		}
	}
	x, size := c.spread(a.X, axes, a.sizes(axes)), out.dtype.Size()
	c.Split(len(at), pointGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(row[byte](out, i, size), row[byte](x, int(at[i]), size))
		}
	})
}

// sizes is the sizes of the axes, which are x's and the mask's.
func (a *MaskedSelect) sizes(axes Axes) []int {
	sizes := make([]int, axes.Len())
	for k, name := range axes.Names() {
		sizes[k] = max(a.X.Size(name), a.Mask.Size(name))
	}
	return sizes
}

// spread is t repeated along the axes it lacks, dense: t itself where it is that already.
func (c *Ctx) spread(t *Tensor, axes *axis.List, sizes []int) *Tensor {
	if t.axes == axes && t.dense() {
		return t
	}
	d := c.Scratch(t.dtype, axes, sizes)
	c.copyInto(d, t)
	return d
}

// Saves nothing: the places are state of Eval.
func (*MaskedSelect) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP puts gy where the elements came from.
func (a *MaskedSelect) VJP(_, gy []*Tensor, g *Grads) {
	const run = "masked_run"
	axes, _ := axis.Broadcast(a.X.axes, a.Mask.axes)
	into := Map[int]{axes, a.sizes(axes)}
	n := 1
	for _, size := range into.Values {
		n *= size
	}
	gx := gy[0].env.Zeros(gy[0].dtype, axisList(run), n).IndexAdd(g.State(0), gy[0], run)
	if axes.Len() == 0 {
		g.Set(0, gx.At(run, 0))
		return
	}
	g.Set(0, split.Call(Split{X: gx, Axis: run, Into: into}))
}

// Samples covers the lengths, masks with fewer and more axes, and the dtypes.
func (*MaskedSelect) Samples(m *Maker) (list []MaskedSelect) {
	add := func(dt dtype.Type, x, mask string) {
		list = append(list, MaskedSelect{X: m.Tensor(dt, x), Mask: m.Tensor(dtype.Bool, mask), Axis: "selected"})
	}
	for _, n := range lengths {
		shape := fmt.Sprintf("row=3 col=%d", n)
		add(dtype.F32, shape, shape)
	}
	add(dtype.F32, "", "")
	add(dtype.F32, "row=4 col=5", "col=5")
	add(dtype.F32, "col=5", "row=4 col=5")
	for _, dt := range allDTypes {
		add(dt, "row=3 col=17", "col=17 row=3")
	}
	return list
}
