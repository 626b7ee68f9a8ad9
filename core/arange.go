package core

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core/dtype"
)

// Arange is start, start + step, … up to but without stop, along one axis: NumPy's arange with
// the axis named. With one number it counts from 0.
//
// Numerics: element i is start + i·step, computed in f64. The dtype is i64 unless given.
//
// Errors: a step of 0; bool; a number that the dtype cannot hold.
//
// Example:
//
//	arange(5, "seq")
type Arange struct {
	Stop  float64    `arg:"stop"`
	Axis  Axis       `arg:"axis"`
	Start float64    `arg:"start=0"`
	Step  float64    `arg:"step=1"`
	DType dtype.Type `arg:"dtype=i64"`
}

var arange = Declare[Arange]("arange")

// Arange counts from 0 to n-1 along the named axis, in this Env.
func (e *Env) Arange(n int, axis string, dt dtype.Type) *Tensor {
	return arange.In(e, Arange{Stop: float64(n), Axis: Axis(axis), Step: 1, DType: dt})
}

// Names makes one axis.
func (a *Arange) Names(p *Plan) {
	if a.DType == dtype.Bool {
		fixed := *a
		fixed.DType = dtype.I64
		p.Fail("bool cannot count", p.c.hint(p.c.recall("integers can", &fixed)))
	}
	p.Out(axisList(string(a.Axis)), a.DType)
}

// Sizes counts the steps.
func (a *Arange) Sizes(s *Sizes) {
	n := math.Ceil((a.Stop - a.Start) / a.Step)
	if n > longestCount && !math.IsInf(a.Stop, 0) && !math.IsInf(a.Start, 0) && a.Step != 0 {
		s.Fail(fmt.Sprintf("from %v to %v in steps of %v has %v elements, more than memory can hold", a.Start, a.Stop,
			a.Step, n), "a larger step makes fewer")
	}
	if math.IsInf(a.Stop, 0) || math.IsInf(a.Start, 0) {
		s.Fail(fmt.Sprintf("from %v to %v in steps of %v never ends", a.Start, a.Stop, a.Step),
			"want numbers that are finite")
	}
	if a.Step == 0 || math.IsNaN(n) || n > longestCount {
		s.Fail(fmt.Sprintf("from %v to %v in steps of %v never ends", a.Start, a.Stop, a.Step),
			s.c.hint(s.c.recall("give a step that gets there", a.stepping())))
	}
	if last := a.Start + (n-1)*a.Step; n > 0 {
		for _, v := range []float64{a.Start, a.Start + a.Step*min(1, n-1), last} {
			if !holds(v, a.DType) {
				fixed := *a
				fixed.DType = dtypeFor(a.Start, a.Step, last)
				s.Fail(fmt.Sprintf("%s cannot hold %v", a.DType, v), s.c.hint(s.c.recall("another dtype can", &fixed)))
			}
		}
	}
	s.Set(0, string(a.Axis), max(0, int(n)))
}

// longestCount is how many elements arange may have.
const longestCount = 1 << 40

// stepping is the call with steps of 1 towards stop.
func (a *Arange) stepping() Op {
	fixed := *a
	if fixed.Step = 1; a.Stop < a.Start {
		fixed.Step = -1
	}
	return &fixed
}

// dtypeFor is a dtype that holds the numbers: i64 unless one has a fraction or is too large.
func dtypeFor(values ...float64) dtype.Type {
	for _, v := range values {
		if !holds(v, dtype.I64) {
			return dtype.F32
		}
	}
	return dtype.I64
}

// Eval counts.
func (a *Arange) Eval(c *Ctx) {
	out := c.Out(0)
	c.Split(out.Len(), pointGrain, func(lo, hi int) {
		var y [blockLen]float64
		for ; lo < hi; lo += blockLen {
			n := min(blockLen, hi-lo)
			for i := range n {
				y[i] = a.Start + float64(float64(lo+i)*a.Step)
			}
			store(out, lo, y[:n])
		}
	})
}

// Samples covers the lengths, both directions, and the dtypes.
func (*Arange) Samples(*Maker) (list []Arange) {
	for _, n := range lengths {
		list = append(list, Arange{Stop: float64(n), Axis: "seq", Step: 1, DType: dtype.I64},
			Arange{Stop: 1.5 + 0.25*float64(n), Axis: "seq", Start: 1.5, Step: 0.25, DType: dtype.F32})
	}
	for _, dt := range append(floats[:4:4], integers...) {
		list = append(list, Arange{Stop: 1, Axis: "seq", Start: 101, Step: -2, DType: dt})
	}
	return list
}
