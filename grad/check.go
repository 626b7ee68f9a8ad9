package grad

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
)

// checkEach is up to how many elements of an input Check moves one by one; a larger input is moved as a whole,
// in checkDirections random directions.
const (
	checkEach       = 16
	checkDirections = 2
)

// Check compares the gradients of f at xs, which are f64, with central differences, and then the gradients of
// a random projection of these gradients, which tests the second order. It returns an error that names the first
// element that differs by more than tol · max(1, |gradient|). Where f is not smooth around xs, so that a smaller
// difference gives another quotient, nothing can be compared; if that is so nearly everywhere, it is an error.
func Check(f func(xs []*core.Tensor) *core.Tensor, xs []*core.Tensor, tol float64) (err error) {
	defer core.Recover(&err)
	c := &checker{f: f, env: xs[0].Env(), tol: tol}
	for i, x := range xs {
		if x.DType() != dtype.F64 {
			return fmt.Errorf("check: xs[%d] is %s, want f64", i, x.Shape())
		}
		c.points = append(c.points, point{x.Axes(), x.Sizes(), floats(x)})
	}
	if err := c.compare("gradient", c.value, c.gradients); err != nil {
		return err
	}
	if err := c.compare("second-order gradient", c.projected, c.secondOrder); err != nil {
		return err
	}
	if c.passedOver > 3*c.compared {
		return fmt.Errorf("check: f is smooth in only %d of %d directions", c.compared, c.compared+c.passedOver)
	}
	return nil
}

type checker struct {
	f      func(xs []*core.Tensor) *core.Tensor
	env    *core.Env
	tol    float64
	points []point

	compared, passedOver int // directions
}

// point is the values of one input.
type point struct {
	axes   core.Axes
	sizes  []int
	values []float64
}

// floats is the elements of an f64 tensor.
func floats(x *core.Tensor) []float64 {
	values := x.Values()
	list := make([]float64, len(values))
	for i, v := range values {
		list[i] = v.(float64)
	}
	return list
}

// inScope runs f on variables at the points and ends all that it makes.
func (c *checker) inScope(f func(xs []*core.Tensor)) {
	s := c.env.Open()
	defer s.Close()
	xs := make([]*core.Tensor, len(c.points))
	for i, p := range c.points {
		x := c.env.FromFloats(dtype.F64, p.values, p.axes, p.sizes...)
		xs[i] = c.env.Watch(x)
		defer xs[i].Free()
	}
	f(xs)
}

// weights is a fixed random tensor like t, for projections.
func (c *checker) weights(t *core.Tensor, stream int) *core.Tensor {
	values := make([]float64, t.Len())
	for i := range values {
		values[i] = 2*rng.Float64(7, uint64(stream), uint64(i)) - 1
	}
	return c.env.FromFloats(dtype.F64, values, t.Axes(), t.Sizes()...)
}

// project is Σ t · weights.
func (c *checker) project(t *core.Tensor, stream int) *core.Tensor {
	return t.Mul(c.weights(t, stream)).Sum()
}

// value is a projection of f.
func (c *checker) value() (v float64) {
	c.inScope(func(xs []*core.Tensor) { v = c.project(c.f(xs), 0).Item().(float64) })
	return v
}

// gradients is the gradients of value.
func (c *checker) gradients() (all [][]float64) {
	c.inScope(func(xs []*core.Tensor) {
		all = c.grads(c.project(c.f(xs), 0), xs)
	})
	return all
}

// grads is the gradients of y as numbers; an input without one has zeros.
func (c *checker) grads(y *core.Tensor, xs []*core.Tensor) [][]float64 {
	all := make([][]float64, len(xs))
	for i, x := range xs {
		all[i] = make([]float64, x.Len())
	}
	if !y.Tracked() {
		return all
	}
	for i, g := range Gradients([]*core.Tensor{y}, xs, nil, Mode{AllowUnused: true}) {
		if g != nil {
			all[i] = floats(g)
		}
	}
	return all
}

// slope is a projection of the gradients of value, as a tensor to differentiate; nil if it is constant.
func (c *checker) slope(xs []*core.Tensor) (total *core.Tensor) {
	y := c.project(c.f(xs), 0)
	if !y.Tracked() {
		return nil
	}
	for i, g := range Gradients([]*core.Tensor{y}, xs, nil, Mode{CreateGraph: true, AllowUnused: true}) {
		if g == nil {
			continue
		}
		part := c.project(g, 1+i)
		if total != nil {
			part = total.Add(part)
		}
		total = part
	}
	return total
}

// projected is the value of slope.
func (c *checker) projected() (v float64) {
	c.inScope(func(xs []*core.Tensor) {
		if s := c.slope(xs); s != nil {
			v = s.Item().(float64)
		}
	})
	return v
}

// secondOrder is the gradients of slope.
func (c *checker) secondOrder() (all [][]float64) {
	c.inScope(func(xs []*core.Tensor) {
		s := c.slope(xs)
		if s == nil {
			s = c.env.FromFloats(dtype.F64, []float64{0}, nil)
		}
		all = c.grads(s, xs)
	})
	return all
}

// compare holds gradients against differences of value.
func (c *checker) compare(what string, value func() float64, gradients func() [][]float64) error {
	all := gradients()
	for i, p := range c.points {
		n := len(p.values)
		if n <= checkEach {
			for k := range n {
				direction := make([]float64, n)
				direction[k] = 1
				if err := c.along(value, all[i], p.values, direction); err != nil {
					return fmt.Errorf("check: %s of xs[%d] at element %d: %w", what, i, k, err)
				}
			}
			continue
		}
		for k := range checkDirections {
			direction := make([]float64, n)
			for j := range direction {
				direction[j] = (2*rng.Float64(8, uint64(k), uint64(j)) - 1) / math.Sqrt(float64(n))
			}
			if err := c.along(value, all[i], p.values, direction); err != nil {
				return fmt.Errorf("check: %s of xs[%d] in random direction %d: %w", what, i, k, err)
			}
		}
	}
	return nil
}

// along compares in one direction. The step balances the error of the formula, which grows with its fourth power,
// and the rounding of the values.
func (c *checker) along(value func() float64, gradient, at, direction []float64) error {
	const step = 1e-4
	got := 0.0
	for j, g := range gradient {
		got += g * direction[j]
	}
	want := quotient(value, at, direction, step)
	limit := c.tol * max(1, math.Abs(want))
	if math.Abs(got-want) <= limit {
		c.compared++
		return nil
	}
	if half := quotient(value, at, direction, step/2); !(math.Abs(want-half) <= max(limit, math.Abs(got-half)/64)) {
		c.passedOver++
		return nil
	}
	return fmt.Errorf("got %v, the difference quotient is %v", got, want)
}

// quotient is the slope of value at a point in a direction, by the five-point formula.
func quotient(value func() float64, at, direction []float64, step float64) float64 {
	move := func(steps float64) float64 {
		old := append([]float64(nil), at...)
		defer copy(at, old)
		for j := range at {
			at[j] += float64(steps*step) * direction[j]
		}
		return value()
	}
	return (8*(move(1)-move(-1)) - (move(2) - move(-2))) / (12 * step)
}
