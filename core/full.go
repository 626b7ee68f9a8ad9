package core

import (
	"fmt"
	"slices"

	"github.com/fucina-go/fucina/core/dtype"
)

// Full is a tensor of the given axes and sizes filled with one number.
//
// Errors: a negative size; a number that the dtype cannot hold.
//
// Example:
//
//	full(7, row=2, col=3, dtype="i32")
type Full struct {
	Value float64    `arg:"value"`
	Axes  Map[int]   `arg:"axes,rest"`
	DType dtype.Type `arg:"dtype=f32"`
}

// Zeros is a tensor of the given axes and sizes filled with 0.
//
// Example:
//
//	zeros(batch=2, seq=3)
type Zeros struct {
	Axes  Map[int]   `arg:"axes,rest"`
	DType dtype.Type `arg:"dtype=f32"`
}

// Ones is a tensor of the given axes and sizes filled with 1.
//
// Example:
//
//	ones({"in": 4}, dtype="f64")
type Ones struct {
	Axes  Map[int]   `arg:"axes,rest"`
	DType dtype.Type `arg:"dtype=f32"`
}

var (
	full  = Declare[Full]("full")
	zeros = Declare[Zeros]("zeros")
	ones  = Declare[Ones]("ones")
)

// Names takes the axes as given.
func (a *Full) Names(p *Plan) { p.Out(given(a.Axes), a.DType) }

// Names takes the axes as given.
func (a *Zeros) Names(p *Plan) { p.Out(given(a.Axes), a.DType) }

// Names takes the axes as given.
func (a *Ones) Names(p *Plan) { p.Out(given(a.Axes), a.DType) }

// Sizes takes the sizes as given and insists that the dtype holds the number.
func (a *Full) Sizes(s *Sizes) {
	s.take(a.Axes)
	if !holds(a.Value, a.DType) {
		fixed := *a
		fixed.DType = dtypeFor(a.Value)
		s.Fail(fmt.Sprintf("%s cannot hold %v", a.DType, a.Value), s.c.hint(s.c.recall("another dtype can", &fixed)))
	}
}

// Sizes takes the sizes as given.
func (a *Zeros) Sizes(s *Sizes) { s.take(a.Axes) }

// Sizes takes the sizes as given.
func (a *Ones) Sizes(s *Sizes) { s.take(a.Axes) }

// Eval fills.
func (a *Full) Eval(c *Ctx) { c.fill(a.Value) }

// Eval fills.
func (a *Zeros) Eval(c *Ctx) { c.fill(0) }

// Eval fills.
func (a *Ones) Eval(c *Ctx) { c.fill(1) }

// Zeros is a tensor of zeros in this Env; see the Zeros operation.
func (e *Env) Zeros(dt dtype.Type, axes Axes, sizes ...int) *Tensor {
	return zeros.In(e, Zeros{Axes: Map[int]{axes, sizes}, DType: dt})
}

// given is the axes of a map of sizes, which may be absent: a scalar.
func given(m Map[int]) Axes {
	if m.Keys == nil {
		return axisList()
	}
	return m.Keys
}

// take gives output 0 the sizes of m.
func (s *Sizes) take(m Map[int]) {
	for i, n := range m.Values {
		if n < 0 {
			s.Fail(fmt.Sprintf("axis %q cannot have size %d", m.Keys.At(i), n),
				s.c.hint(s.c.recall("sizes are 0, 1, 2, …", s.c.positive())))
		}
		s.Set(0, m.Keys.At(i), n)
	}
}

// positive is the call with sizes above 0 for those below.
func (c *call) positive() Op {
	op := c.info.clone(c.op)
	for k := range c.info.Fields {
		if f := &c.info.Fields[k]; f.Kind == KindSizes {
			m := (*Map[int])(f.At(op))
			m.Values = slices.Clone(m.Values)
			for i, n := range m.Values {
				m.Values[i] = max(n, -n)
			}
		}
	}
	return op
}

// fill sets every element of output 0.
func (c *Ctx) fill(v float64) {
	pointwise(c, c.Out(0), func(op Op, y []float64, _ *[maxOperands][]float64) {
		v := 0.0
		switch a := op.(type) {
		case *Full:
			v = a.Value
		case *Ones:
			v = 1
		}
		for i := range y {
			y[i] = v
		}
	})
}

// Samples covers the lengths and the dtypes.
func (*Full) Samples(*Maker) (list []Full) {
	for _, n := range lengths {
		list = append(list, Full{Value: 1.5, Axes: Map[int]{axisList("row", "col"), []int{3, n}}, DType: dtype.F32})
	}
	for _, dt := range allDTypes {
		list = append(list, Full{Value: 7, Axes: Map[int]{axisList("col"), []int{17}}, DType: dt},
			Full{Value: 7, DType: dt})
	}
	return list
}

// Samples covers the lengths and the dtypes.
func (*Zeros) Samples(*Maker) (list []Zeros) {
	for _, n := range lengths {
		list = append(list, Zeros{Axes: Map[int]{axisList("row", "col"), []int{3, n}}, DType: dtype.F32})
	}
	for _, dt := range allDTypes {
		list = append(list, Zeros{Axes: Map[int]{axisList("col"), []int{17}}, DType: dt}, Zeros{DType: dt})
	}
	return list
}

// Samples covers the lengths and the dtypes.
func (*Ones) Samples(*Maker) (list []Ones) {
	for _, n := range lengths {
		list = append(list, Ones{Axes: Map[int]{axisList("row", "col"), []int{3, n}}, DType: dtype.F32})
	}
	for _, dt := range allDTypes {
		list = append(list, Ones{Axes: Map[int]{axisList("col"), []int{17}}, DType: dt}, Ones{DType: dt})
	}
	return list
}
