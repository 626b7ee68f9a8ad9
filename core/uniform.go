package core

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
)

// Uniform is random numbers drawn evenly from low (included) to high (excluded), of the given axes and sizes.
//
// Numerics: f64 from 53 random bits, other dtypes from 24; rounding does not reach high. See seed for what is
// drawn.
//
// Errors: low above high, or infinite; a dtype of integers.
//
// Example:
//
//	uniform(-1, 1, row=2, col=3, seed=1)
type Uniform struct {
	Low   float64    `arg:"low"`
	High  float64    `arg:"high"`
	Axes  Map[int]   `arg:"axes,rest"`
	DType dtype.Type `arg:"dtype=f32"`
	Random
}

// Rand is random numbers drawn evenly from 0 (included) to 1 (excluded), of the given axes and sizes.
//
// Numerics: as uniform.
//
// Example:
//
//	rand(row=2, col=3, seed=1)
type Rand struct {
	Axes  Map[int]   `arg:"axes,rest"`
	DType dtype.Type `arg:"dtype=f32"`
	Random
}

var (
	uniform = Declare[Uniform]("uniform")
	randOp  = Declare[Rand]("rand")
)

// Names takes the axes as given.
func (a *Uniform) Names(p *Plan) { p.Out(given(a.Axes), p.drawable(a.DType)) }

// Names takes the axes as given.
func (a *Rand) Names(p *Plan) { p.Out(given(a.Axes), p.drawable(a.DType)) }

// drawable insists on a dtype of fractions.
func (p *Plan) drawable(dt dtype.Type) dtype.Type {
	if !dt.IsFloat() {
		p.Fail(fmt.Sprintf("dtype=%q holds no fractions", dt), "for integers instead: randint(0, 10, row=2)")
	}
	return dt
}

// Sizes takes the sizes as given.
func (a *Uniform) Sizes(s *Sizes) {
	if w := a.High - a.Low; !(w >= 0) || math.IsInf(w, 0) {
		s.Fail(fmt.Sprintf("cannot draw from %v to %v", a.Low, a.High),
			refit(s.c, "high is above low", "high", a.Low+1))
	}
	s.take(a.Axes)
}

// Sizes takes the sizes as given.
func (a *Rand) Sizes(s *Sizes) { s.take(a.Axes) }

// Eval draws.
func (a *Uniform) Eval(c *Ctx) { drawUniform(c, a.draws(c), a.Low, a.High) }

// Eval draws.
func (a *Rand) Eval(c *Ctx) { drawUniform(c, a.draws(c), 0, 1) }

func drawUniform(c *Ctx, from source, low, high float64) {
	dt := c.Out(0).dtype
	top := below(high, dt)
	if low == high {
		top = high
	}
	if dt == dtype.F64 {
		fillBlocks(c, func(y []float64, i int) {
			from.uniforms(y, i)
			for k, u := range y {
				y[k] = min(low+float64(u*(high-low)), top)
			}
		})
		return
	}
	fillBlocks(c, func(y []float32, i int) {
		rng.FillFloat32(y, from.seed, from.stream, uint64(i))
		for k, u := range y {
			y[k] = float32(min(low+float64(float64(u)*(high-low)), top))
		}
	})
}

// below is the greatest number of a floating-point dtype under x.
func below(x float64, dt dtype.Type) float64 {
	switch dt {
	case dtype.F32:
		v := float32(x)
		if float64(v) < x {
			return float64(v)
		}
		return float64(math.Nextafter32(v, float32(math.Inf(-1))))
	case dtype.F16, dtype.BF16:
		narrow, wide := dtype.F32ToF16, dtype.F16ToF32
		if dt == dtype.BF16 {
			narrow, wide = dtype.F32ToBF16, dtype.BF16ToF32
		}
		h := narrow(float32(x))
		if v := float64(wide(h)); v < x {
			return v
		}
		switch {
		case h<<1 == 0: // ±0: the least magnitude below it
			h = 1<<15 | 1
		case h>>15 != 0:
			h++
		default:
			h--
		}
		return float64(wide(h))
	}
	return math.Nextafter(x, math.Inf(-1))
}

// Samples covers the lengths and the dtypes.
func (*Uniform) Samples(*Maker) (list []Uniform) {
	for _, n := range lengths {
		list = append(list, Uniform{-2, 3, Map[int]{axisList("row", "col"), []int{3, n}}, dtype.F32, Random{Seed: 1}})
	}
	for _, dt := range floats {
		list = append(list, Uniform{-2, 3, Map[int]{axisList("col"), []int{17}}, dt, Random{Seed: 1}},
			Uniform{1, 1, Map[int]{}, dt, Random{Seed: 2}})
	}
	return list
}

// Samples covers the lengths and the dtypes.
func (*Rand) Samples(*Maker) (list []Rand) {
	for _, n := range lengths {
		list = append(list, Rand{Map[int]{axisList("row", "col"), []int{3, n}}, dtype.F32, Random{Seed: 1}})
	}
	for _, dt := range floats {
		list = append(list, Rand{Map[int]{axisList("col"), []int{17}}, dt, Random{Seed: 1}},
			Rand{DType: dt, Random: Random{Seed: 2}})
	}
	return list
}
