package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// FromLists is a tensor of numbers written out in nested lists, one level per axis. A name per
// level is given, outermost first; a single number needs none. Without a dtype, integers give
// i64, True and False bool, bytes (of one level: tensor(b"text", "byte")) u8, anything else f32.
//
// Errors: lists of different lengths on one level; more or fewer names than levels; a number that
// the dtype cannot hold.
//
// Example:
//
//	tensor([[1, 2], [3, 4]], "row col", dtype="f32")
type FromLists struct {
	Data  Nested     `arg:"data"`
	Axes  Axes       `arg:"axes?"`
	DType dtype.Type `arg:"dtype?"`
}

var fromLists = Declare[FromLists]("tensor")

// FromFloats is a tensor in this Env with the given values, in the order of the axes.
func (e *Env) FromFloats(dt dtype.Type, values []float64, axes Axes, sizes ...int) *Tensor {
	return fromLists.In(e, FromLists{Data: Nested{Sizes: sizes, Floats: values}, Axes: axes, DType: dt})
}

// FromInts is a tensor in this Env with the given values, in the order of the axes.
func (e *Env) FromInts(dt dtype.Type, values []int64, axes Axes, sizes ...int) *Tensor {
	return fromLists.In(e, FromLists{Data: Nested{Sizes: sizes, Ints: values}, Axes: axes, DType: dt})
}

// Names pairs axes and levels.
func (a *FromLists) Names(p *Plan) {
	axes := a.Axes
	if axes == nil {
		axes = axisList()
	}
	p.Out(axes, a.dtype())
}

// dtype is the dtype asked for, or the one the numbers suggest.
func (a *FromLists) dtype() dtype.Type {
	switch {
	case a.DType != dtype.Invalid:
		return a.DType
	case a.Data.Ints != nil:
		return dtype.I64
	case a.Data.Bools != nil:
		return dtype.Bool
	case a.Data.Bytes != nil:
		return dtype.U8
	}
	return dtype.F32
}

// Sizes takes the lengths of the lists. What the numbers are is not part of the plan, so whether
// names and levels agree is looked at here.
func (a *FromLists) Sizes(s *Sizes) {
	out := s.c.outs[0]
	if n := len(a.Data.Sizes); n != out.Rank() {
		s.Fail(fmt.Sprintf("the lists are nested %d deep but %d axes are named", n, out.Rank()),
			s.c.hint(s.c.recall("name one axis per level", a.named(n))))
	}
	a.checkNumbers(s)
	copy(out.sizes, a.Data.Sizes)
	out.dtype = a.dtype() // a plan made for integers may be used for floats
}

// named is the call with n axes named: those given, more, or fewer.
func (a *FromLists) named(n int) Op {
	fixed := *a
	fixed.Axes = axisList()
	if a.Axes != nil {
		fixed.Axes = axisList(a.Axes.Names()[:min(n, a.Axes.Len())]...)
	}
	usual := axisList("batch", "row", "col")
	for fixed.Axes.Len() < n {
		k := usual.Len() - min(usual.Len(), n-fixed.Axes.Len())
		fixed.Axes = fixed.Axes.Append(axisList(freshNames(axisList(usual.At(k)), fixed.Axes)...))
	}
	return &fixed
}

// checkNumbers insists that the dtype holds every number.
func (a *FromLists) checkNumbers(s *Sizes) {
	dt := a.dtype()
	given := len(a.Data.Ints) + len(a.Data.Floats) + len(a.Data.Bools) + len(a.Data.Bytes)
	if n, ok := elements(a.Data.Sizes); ok && n != given {
		s.Fail(fmt.Sprintf("got %d numbers for %s", given, shapeText(s.c.outs[0].axes, a.Data.Sizes)), s.c.info.AsIn())
	}
	if !dt.IsInt() {
		return
	}
	fixed := *a
	refuse := func(v int64) {
		fixed.DType = dtype.I64
		s.Fail(fmt.Sprintf("%s cannot hold %d", dt, v), s.c.hint(s.c.recall("another dtype can", &fixed)))
	}
	for _, v := range a.Data.Ints {
		if !fits(v, dt) {
			refuse(v)
		}
	}
	for _, v := range a.Data.Bytes {
		if !fits(int64(v), dt) {
			refuse(int64(v))
		}
	}
	for _, v := range a.Data.Floats {
		if !holds(v, dt) {
			fixed.DType = dtype.F32
			s.Fail(fmt.Sprintf("%s cannot hold %v", dt, v), s.c.hint(s.c.recall("another dtype can", &fixed)))
		}
	}
}

// Eval copies the numbers.
func (a *FromLists) Eval(c *Ctx) {
	out := c.Out(0)
	switch {
	case out.Len() == 0:
	case a.Data.Bools != nil:
		ints := make([]int64, len(a.Data.Bools))
		for i, b := range a.Data.Bools {
			if b {
				ints[i] = 1
			}
		}
		scatter(out.data, out.dtype, ints)
	case a.Data.Ints != nil:
		c.pieces(len(a.Data.Ints), func(lo, hi int) { store(out, lo, a.Data.Ints[lo:hi]) })
	case a.Data.Bytes != nil:
		ints := make([]int64, len(a.Data.Bytes))
		for i, b := range a.Data.Bytes {
			ints[i] = int64(b)
		}
		scatter(out.data, out.dtype, ints)
	default:
		c.pieces(len(a.Data.Floats), func(lo, hi int) { store(out, lo, a.Data.Floats[lo:hi]) })
	}
}

// Samples covers the lengths, the dtypes, and the kinds of numbers.
func (*FromLists) Samples(*Maker) (list []FromLists) {
	row := axisList("row")
	for _, n := range lengths {
		values := make([]float64, n)
		for i := range values {
			values[i] = 0.5 * float64(i)
		}
		list = append(list, FromLists{Data: Nested{Sizes: []int{n}, Floats: values}, Axes: row})
	}
	for _, dt := range append(allDTypes, dtype.Invalid) {
		list = append(list, FromLists{Data: Nested{Floats: []float64{1}}, DType: dt},
			FromLists{Data: Nested{Sizes: []int{3}, Ints: []int64{1, 2, 127}}, Axes: row, DType: dt},
			FromLists{Data: Nested{Sizes: []int{2}, Bools: []bool{true, false}}, Axes: row, DType: dt},
			FromLists{Data: Nested{Sizes: []int{2}, Bytes: []byte("ab")}, Axes: row, DType: dt})
	}
	return list
}
