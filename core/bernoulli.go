package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
)

// Bernoulli is 1 with probability p and 0 else, independently for every element. p is a number, or a tensor with
// a probability for each; axes, if given, repeat it.
//
// Shape: p[a] → y[batch=n, a] for bernoulli(p, batch=n), of p's dtype (f32 for a number) unless one is given. See
// seed for what is drawn.
//
// Errors: a p outside of [0, 1]; an axis that p has already.
//
// Example:
//
//	bernoulli(0.3, row=2, col=3, seed=1)
type Bernoulli struct {
	P     *Tensor    `arg:"p,number"`
	Axes  Map[int]   `arg:"axes,rest"`
	DType dtype.Type `arg:"dtype?"`
	Random
}

var bernoulli = Declare[Bernoulli]("bernoulli")

// Bernoulli is 1 with the probability that each element is, else 0; see the Bernoulli operation.
func (p *Tensor) Bernoulli() *Tensor {
	return bernoulli.Call(Bernoulli{P: p, Random: Random{Seed: -1}})
}

// Names puts the given axes before those of p.
func (a *Bernoulli) Names(p *Plan) {
	keys := given(a.Axes)
	if both := keys.Shared(a.P.axes); both.Len() > 0 {
		p.Fail(fmt.Sprintf("%s has the axis %s already", p.Describe(a.P), quoted(both.Names())),
			refit(p.c, "axes given repeat p, leave out those that it has", "axes", Map[int]{}))
	}
	dt := a.DType
	if dt == dtype.Invalid {
		dt = p.Float(a.P)
	}
	p.Float(a.P)
	p.Out(keys.Append(a.P.axes), dt)
}

// Sizes takes the new sizes as given.
func (a *Bernoulli) Sizes(s *Sizes) { s.take(a.Axes) }

// Eval compares p with random numbers.
func (a *Bernoulli) Eval(c *Ctx) {
	probs := elementsOf[float64](c.Dense(a.P, a.P.axes, dtype.F64)) // the last axes of out
	for lo, hi := range c.c.env.scan(len(probs)) {
		for i := lo; i < hi; i++ {
			if p := probs[i]; !(p >= 0 && p <= 1) {
				c.Fail(fmt.Sprintf("%s has elements outside of [0, 1]", c.Describe(a.P)),
					"probabilities of logits: p.sigmoid()")
			}
		}
	}
	from := a.draws(c)
	fillBlocks(c, func(y []int64, i int) {
		for k := range y {
			y[k] = 0
			if rng.Float64(from.seed, from.stream, uint64(i+k)) < probs[(i+k)%len(probs)] {
				y[k] = 1
			}
		}
	})
}

// Samples covers the lengths, probabilities for each, and the dtypes.
func (*Bernoulli) Samples(m *Maker) (list []Bernoulli) {
	probs := func(dt dtype.Type, shape string, sizes ...any) *Tensor {
		return m.Tensor(dtype.F64, shape, sizes...).Sigmoid().Cast(dt)
	}
	for _, n := range lengths {
		list = append(list, Bernoulli{P: probs(dtype.F32, "a=%d", n), Axes: Map[int]{axisList("b"), []int{3}},
			Random: Random{Seed: 1}})
	}
	for _, dt := range allDTypes {
		list = append(list, Bernoulli{P: probs(dtype.F32, "a=3 b=4"), DType: dt, Random: Random{Seed: 1}})
	}
	for _, dt := range floats {
		list = append(list, Bernoulli{P: probs(dt, "a=3 b=17"), Random: Random{Seed: 1}},
			Bernoulli{P: probs(dt, ""), Axes: Map[int]{axisList("b"), []int{17}}, Random: Random{Seed: 2}})
	}
	return list
}
