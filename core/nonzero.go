package core

import (
	"fmt"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
)

// Nonzero is where x is not zero: for every axis of x the places along it, as NumPy's nonzero. They are in the
// order of x's axes, the last one fastest.
//
// Shape: x[row, col] → rows[axis=number of them], cols[axis=number of them], of i64.
//
// Numerics: NaN is not zero, -0.0 is.
//
// Errors: a scalar. The size is not known in a shape-only run, which fails here.
//
// Example:
//
//	rows, cols = tensor([[0, 1], [2, 0]], "row col").nonzero()
type Nonzero struct {
	X    *Tensor `arg:"x"`
	Axis Axis    `arg:"axis=selected"`
}

var nonzero = Declare[Nonzero]("nonzero")

// Nonzero is where x is not zero, one tensor per axis of x; see the Nonzero operation.
func (x *Tensor) Nonzero(axis string) []*Tensor { return nonzero.All(Nonzero{X: x, Axis: Axis(axis)}) }

// Names makes one output per axis.
func (a *Nonzero) Names(p *Plan) {
	if a.X.Rank() == 0 {
		p.Fail(p.Describe(a.X)+" is a scalar, which has no places", "give it an axis: x.insert(\"row\")")
	}
	for range a.X.Rank() {
		p.Out(axisList(string(a.Axis)), dtype.I64)
	}
}

// Sizes counts.
func (a *Nonzero) Sizes(s *Sizes) {
	if s.c.env.shapeOnly {
		s.Fail(fmt.Sprintf("how long axis %q gets depends on the values of %s", a.Axis, s.Describe(a.X)),
			"a shape-only run has no values, but what keeps the shape instead: x.ne(0)")
	}
	n := 0
	if a.X.dense() {
		s.c.ctx.c = s.c
		s.c.ctx.pieces(a.X.Len(), func(lo, hi int) { eachNonzero(a.X, lo, hi, func(int) { n++ }) })
	} else {
		one := &Tensor{dtype: a.X.dtype}
		seen := 0
		for offset := range a.X.each {
			if seen++; seen%pauseLen == 0 {
				s.c.env.checkStop()
			}
			one.data = unsafe.Add(a.X.data, offset*a.X.dtype.Size())
			eachNonzero(one, 0, 1, func(int) { n++ })
		}
	}
	for i := range a.X.Rank() {
		s.Set(i, string(a.Axis), n)
	}
}

// eachNonzero calls f with those of the elements [lo, hi) of a dense tensor that are other than 0; of floats
// the sign does not count.
func eachNonzero(x *Tensor, lo, hi int, f func(i int)) {
	sign := uint64(0)
	if x.dtype.IsFloat() {
		sign = 1 << (8*x.dtype.Size() - 1)
	}
	switch x.dtype.Size() {
	case 1:
		eachWord(elementsOf[uint8](x)[lo:hi], 0, lo, f)
	case 2:
		eachWord(elementsOf[uint16](x)[lo:hi], uint16(sign), lo, f)
	case 4:
		eachWord(elementsOf[uint32](x)[lo:hi], uint32(sign), lo, f)
	case 8:
		eachWord(elementsOf[uint64](x)[lo:hi], sign, lo, f)
	}
}

func eachWord[T uint8 | uint16 | uint32 | uint64](words []T, ignore T, first int, f func(i int)) {
	for i, w := range words {
		if w&^ignore != 0 {
			f(first + i)
		}
	}
}

// Eval counts in blocks, and then writes each block's places behind those of the blocks before it.
func (a *Nonzero) Eval(c *Ctx) {
	if c.Out(0).Len() == 0 {
		return
	}
	x := c.Dense(a.X, a.X.axes, a.X.dtype)
	n := x.Len()
	each := func(block int, f func(i int)) {
		eachNonzero(x, block*pointGrain, min(n, (block+1)*pointGrain), f)
	}
	begin := make([]int, ceilDiv(n, pointGrain)+1)
	c.Split(len(begin)-1, 1, func(lo, hi int) {
		for b := lo; b < hi; b++ {
			found := 0
			each(b, func(int) { found++ })
			begin[b+1] = found
		}
	})
	for b := range len(begin) - 1 {
		begin[b+1] += begin[b]
	}
	places := make([][]int64, x.Rank())
	for k := range places {
		places[k] = elementsOf[int64](c.Out(k))
	}
	c.Split(len(begin)-1, 1, func(lo, hi int) {
		for b := lo; b < hi; b++ {
			at := begin[b]
			each(b, func(i int) {
				for k := len(places) - 1; k >= 0; k-- {
					places[k][at] = int64(i % x.sizes[k])
					i /= x.sizes[k]
				}
				at++
			})
		}
	})
}

// Samples covers the lengths, elements all and none of which are zero, and the dtypes.
func (*Nonzero) Samples(m *Maker) (list []Nonzero) {
	add := func(x *Tensor) { list = append(list, Nonzero{X: x, Axis: "selected"}) }
	for _, n := range lengths {
		add(m.Indices(dtype.I32, 2, "a=3 col=%d", n))
	}
	add(m.Indices(dtype.I32, 1, "col=5"))
	for _, dt := range allDTypes {
		add(m.Tensor(dt, "a=3 col=17"))
	}
	return list
}
