package core

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core/dtype"
)

// Linspace is steps numbers at equal distances from start to stop, both included, along one axis.
//
// Numerics: computed in f64, the first half counted from start and the second from stop. An integer dtype drops the
// fractions.
//
// Errors: fewer than 0 steps; bounds that are infinite or that the dtype cannot hold.
//
// Example:
//
//	linspace(0, 1, 5, "x")
type Linspace struct {
	Start float64    `arg:"start"`
	Stop  float64    `arg:"stop"`
	Steps int        `arg:"steps"`
	Axis  Axis       `arg:"axis"`
	DType dtype.Type `arg:"dtype=f32"`
}

var linspace = Declare[Linspace]("linspace")

// Names makes one axis.
func (a *Linspace) Names(p *Plan) { p.Out(axisList(string(a.Axis)), a.DType) }

// Sizes takes the number of steps.
func (a *Linspace) Sizes(s *Sizes) {
	switch d := a.Stop - a.Start; {
	case a.Steps < 0:
		s.Fail(fmt.Sprintf("steps=%d, want 0 or more", a.Steps),
			refit(s.c, "as many as there shall be", "steps", -a.Steps))
	case d-d != 0:
		s.Fail(fmt.Sprintf("there is no way from %v to %v in equal steps", a.Start, a.Stop), s.c.info.AsIn())
	case a.DType.IsInt() && !(fits(int64(a.Start), a.DType) && fits(int64(a.Stop), a.DType)):
		s.Fail(fmt.Sprintf("%s cannot hold %v … %v", a.DType, a.Start, a.Stop),
			refit(s.c, "another dtype can", "dtype", dtype.F32))
	}
	s.Set(0, string(a.Axis), a.Steps)
}

// Eval counts.
func (a *Linspace) Eval(c *Ctx) {
	step := (a.Stop - a.Start) / float64(max(1, a.Steps-1))
	fillBlocks(c, func(y []float64, from int) {
		for k := range y {
			i := from + k
			y[k] = a.Start + float64(float64(i)*step)
			if 2*i >= a.Steps && i > 0 {
				y[k] = a.Stop - float64(float64(a.Steps-1-i)*step)
			}
			if a.DType.IsInt() {
				y[k] = math.Trunc(y[k])
			}
		}
	})
}

// Samples covers the lengths and the dtypes.
func (*Linspace) Samples(*Maker) (list []Linspace) {
	for _, n := range lengths {
		list = append(list, Linspace{-1, 2, n, "x", dtype.F32})
	}
	for _, dt := range allDTypes {
		list = append(list, Linspace{0, 100, 17, "x", dt})
	}
	return list
}
