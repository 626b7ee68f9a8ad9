package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
)

// Normal is random numbers of the normal distribution with the given mean and standard deviation, of the given
// axes and sizes.
//
// Numerics: f64 from 106 random bits each, other dtypes from 64, scaled in f32. See seed for what is drawn.
//
// Errors: a negative std; a dtype of integers.
//
// Source: Box, Muller: A note on the generation of random normal deviates (1958).
//
// Example:
//
//	normal(0, 0.02, row=2, col=3, seed=1)
type Normal struct {
	Mean  float64    `arg:"mean"`
	Std   float64    `arg:"std"`
	Axes  Map[int]   `arg:"axes,rest"`
	DType dtype.Type `arg:"dtype=f32"`
	Random
}

// Randn is random numbers of the normal distribution with mean 0 and standard deviation 1, of the given axes and
// sizes.
//
// Numerics: as normal.
//
// Example:
//
//	randn(row=2, col=3, seed=1)
type Randn struct {
	Axes  Map[int]   `arg:"axes,rest"`
	DType dtype.Type `arg:"dtype=f32"`
	Random
}

var (
	normal = Declare[Normal]("normal")
	randn  = Declare[Randn]("randn")
)

// Randn is random numbers of the normal distribution in this Env; see the Randn operation.
func (e *Env) Randn(dt dtype.Type, axes Axes, sizes ...int) *Tensor {
	return randn.In(e, Randn{Map[int]{axes, sizes}, dt, Random{Seed: -1}})
}

// Names takes the axes as given.
func (a *Normal) Names(p *Plan) { p.Out(given(a.Axes), p.drawable(a.DType)) }

// Names takes the axes as given.
func (a *Randn) Names(p *Plan) { p.Out(given(a.Axes), p.drawable(a.DType)) }

// Sizes takes the sizes as given.
func (a *Normal) Sizes(s *Sizes) {
	if !(a.Std >= 0) {
		s.Fail(fmt.Sprintf("std=%v, want 0 or more", a.Std), refit(s.c, "it is the root of the variance", "std", 1.0))
	}
	s.take(a.Axes)
}

// Sizes takes the sizes as given.
func (a *Randn) Sizes(s *Sizes) { s.take(a.Axes) }

// Eval draws.
func (a *Normal) Eval(c *Ctx) { drawNormal(c, a.draws(c), a.Mean, a.Std) }

// Eval draws.
func (a *Randn) Eval(c *Ctx) { drawNormal(c, a.draws(c), 0, 1) }

func drawNormal(c *Ctx, from source, mean, std float64) {
	if c.Out(0).dtype == dtype.F64 {
		fillBlocks(c, func(y []float64, i int) {
			for k := range y {
				y[k] = mean + float64(rng.Normal(from.seed, from.stream, uint64(i+k))*std)
			}
		})
		return
	}
	fillBlocks(c, func(y []float32, i int) {
		rng.FillNormal32(y, from.seed, from.stream, uint64(i))
		for k, v := range y {
			y[k] = float32(mean) + float32(v*float32(std))
		}
	})
}

// Samples covers the lengths and the dtypes.
func (*Normal) Samples(*Maker) (list []Normal) {
	for _, n := range lengths {
		list = append(list, Normal{1, 2, Map[int]{axisList("row", "col"), []int{3, n}}, dtype.F32, Random{Seed: 1}})
	}
	for _, dt := range floats {
		list = append(list, Normal{1, 2, Map[int]{axisList("col"), []int{17}}, dt, Random{Seed: 1}},
			Normal{DType: dt, Random: Random{Seed: 2}})
	}
	return list
}

// Samples covers the lengths and the dtypes.
func (*Randn) Samples(*Maker) (list []Randn) {
	for _, n := range lengths {
		list = append(list, Randn{Map[int]{axisList("row", "col"), []int{3, n}}, dtype.F32, Random{Seed: 1}})
	}
	for _, dt := range floats {
		list = append(list, Randn{Map[int]{axisList("col"), []int{17}}, dt, Random{Seed: 1}},
			Randn{DType: dt, Random: Random{Seed: 2}})
	}
	return list
}
