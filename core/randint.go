package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
)

// Randint is random integers drawn evenly from low (included) to high (excluded), of the given axes and sizes.
// See seed for what is drawn.
//
// Errors: nothing between low and high; a dtype that cannot hold them.
//
// Example:
//
//	randint(0, 10, row=2, col=3, seed=1)
type Randint struct {
	Low   int        `arg:"low"`
	High  int        `arg:"high"`
	Axes  Map[int]   `arg:"axes,rest"`
	DType dtype.Type `arg:"dtype=i64"`
	Random
}

var randint = Declare[Randint]("randint")

// Names takes the axes as given.
func (a *Randint) Names(p *Plan) {
	if a.DType == dtype.Bool {
		p.Fail(`dtype="bool" holds no integers`, `for True and False instead: bernoulli(0.5, row=2, dtype="bool")`)
	}
	p.Out(given(a.Axes), a.DType)
}

// Sizes takes the sizes as given.
func (a *Randint) Sizes(s *Sizes) {
	if a.High <= a.Low || a.High-a.Low < 0 {
		s.Fail(fmt.Sprintf("there is no integer from %d to below %d", a.Low, a.High),
			refit(s.c, "high is not drawn", "high", a.Low+1))
	}
	if a.DType.IsInt() && !(fits(int64(a.Low), a.DType) && fits(int64(a.High)-1, a.DType)) {
		s.Fail(fmt.Sprintf("%s cannot hold all of %d … %d", a.DType, a.Low, a.High-1),
			refit(s.c, "another dtype can", "dtype", dtype.I64))
	}
	s.take(a.Axes)
}

// Eval draws.
func (a *Randint) Eval(c *Ctx) {
	from := a.draws(c)
	fillBlocks(c, func(y []int64, i int) {
		for k := range y {
			y[k] = int64(a.Low + rng.IntN(from.seed, from.stream, uint64(i+k), a.High-a.Low))
		}
	})
}

// Samples covers the lengths and the dtypes.
func (*Randint) Samples(*Maker) (list []Randint) {
	for _, n := range lengths {
		list = append(list, Randint{-3, 5, Map[int]{axisList("row", "col"), []int{3, n}}, dtype.I64, Random{Seed: 1}})
	}
	for _, dt := range append(floats[:4:4], integers...) {
		list = append(list, Randint{0, 100, Map[int]{axisList("col"), []int{17}}, dt, Random{Seed: 1}},
			Randint{Low: 5, High: 6, DType: dt, Random: Random{Seed: 2}})
	}
	return list
}
