package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// Eye is 1 where the places along its two axes are equal, and 0 elsewhere: the identity matrix if both have one
// size.
//
// Errors: more or fewer than two axes.
//
// Example:
//
//	eye(row=3, col=3)
type Eye struct {
	Axes  Map[int]   `arg:"axes,rest"`
	DType dtype.Type `arg:"dtype=f32"`
}

var eye = Declare[Eye]("eye")

// Names takes the axes as given.
func (a *Eye) Names(p *Plan) {
	axes := given(a.Axes)
	if axes.Len() != 2 {
		p.Fail(fmt.Sprintf("got %d axes, want 2", axes.Len()), "as in: eye(row=3, col=3)")
	}
	p.Out(axes, a.DType)
}

// Sizes takes the sizes as given.
func (a *Eye) Sizes(s *Sizes) { s.take(a.Axes) }

// Eval fills.
func (a *Eye) Eval(c *Ctx) {
	n := a.Axes.Values[1]
	fillBlocks(c, func(y []int64, from int) {
		for k := range y {
			y[k] = 0
			if i := from + k; i/n == i%n {
				y[k] = 1
			}
		}
	})
}

// Samples covers the lengths and the dtypes.
func (*Eye) Samples(*Maker) (list []Eye) {
	for _, n := range lengths {
		list = append(list, Eye{Map[int]{axisList("row", "col"), []int{3, n}}, dtype.F32},
			Eye{Map[int]{axisList("row", "col"), []int{min(n, 17), 16}}, dtype.F32})
	}
	for _, dt := range allDTypes {
		list = append(list, Eye{Map[int]{axisList("row", "col"), []int{5, 5}}, dt})
	}
	return list
}
