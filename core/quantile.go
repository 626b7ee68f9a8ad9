package core

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core/dtype"
)

// Quantile is what the share q of the elements along an axis is not above: of the sorted elements the one at place
// q·(n-1), or between two of them the mean weighed by nearness, as in NumPy and PyTorch. A q of 0.5 is the median.
//
// Shape: x[…, axis, …] → y[…].
// Numerics: a + f·(b - a) for a fraction f of the way from a to b, from a half on b - (1-f)·(b - a); f16 and bf16
// compute in f32 and round once. NaN where an element is NaN, or the place lies between two equal infinities.
//
// Errors: a q outside of 0 … 1; an axis that x lacks, or of size 0; integers (cast them first).
//
// Example:
//
//	tensor([3.0, 1.0, 2.0, 10.0], "row").quantile(0.5, "row")
type Quantile struct {
	X    *Tensor `arg:"x"`
	Q    float64 `arg:"q"`
	Axis Axis    `arg:"axis"`
}

var quantile = Declare[Quantile]("quantile")

// Quantile is what the share q of the elements along the axis is not above; see the Quantile operation.
func (x *Tensor) Quantile(q float64, axis string) *Tensor {
	return quantile.Call(Quantile{X: x, Q: q, Axis: Axis(axis)})
}

// Names insists on the axis.
func (a *Quantile) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	p.Float(a.X)
}

// Sizes insists on a share, and on elements.
func (a *Quantile) Sizes(s *Sizes) {
	if !(0 <= a.Q && a.Q <= 1) {
		s.Fail(fmt.Sprintf("q=%v, want a share from 0 to 1", a.Q), refit(s.c, "0.5 is the median", "q", 0.5))
	}
	if a.X.Size(string(a.Axis)) == 0 {
		s.Fail(fmt.Sprintf("axis %q of %s has no elements", a.Axis, s.Describe(a.X)), "there is no quantile of nothing")
	}
}

// Compose sorts, and takes one place or two.
func (a *Quantile) Compose() *Tensor {
	axis, n := string(a.Axis), a.X.Size(string(a.Axis))
	sorted, _ := a.X.wide().Sort(axis)
	low, f := math.Modf(a.Q * float64(n-1))
	y := sorted.At(axis, int(low))
	if f > 0 {
		next := sorted.At(axis, int(low)+1)
		if way := next.Sub(y); f < 0.5 {
			y = y.Add(way.times(f))
		} else {
			y = next.Sub(way.times(1 - f))
		}
	}
	last := sorted.At(axis, n-1) // NaN is greatest
	return last.IsNaN().Where(last, y).narrow(a.X.dtype)
}

// Samples covers the lengths, places on an element and between two, and the dtypes.
func (*Quantile) Samples(m *Maker) (list []Quantile) {
	for _, n := range lengths {
		list = append(list, Quantile{m.Tensor(dtype.F32, "row=3 col=%d", max(1, n)), 0.3, "col"})
	}
	for _, dt := range floats {
		list = append(list, Quantile{m.Tensor(dt, "col=17 row=3"), 0.5, "col"}, Quantile{m.Tensor(dt, "a=4"), 1, "a"},
			Quantile{m.Tensor(dt, "a=4 b=0"), 0, "a"})
	}
	return list
}
