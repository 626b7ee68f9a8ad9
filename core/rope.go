package core

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Rope turns pairs of elements along an axis by angles that grow with the position: the rotary
// embedding (Su et al. 2021), with the YaRN correction for long contexts (Peng et al. 2023).
//
// Shape: x[…, row, …, head_dim], positions[row] of integers → y of x's axes. positions may have any
// of x's axes but the turned one. factors[any] has one divisor per pair.
//
// Pair i of d/2 turns by position · base^(-2i/d) · scale / factors[i]. style says which elements
// are a pair: "interleaved" 2i and 2i+1, "half" i and i + d/2. d is dims, or the size of the axis
// when dims is 0; elements beyond d stay. With extrapolation > 0 each angle is blended between the
// scaled and the unscaled one by a ramp between the pairs that turn beta_fast and beta_slow times
// within context positions, and lengths are multiplied by 1 + 0.1·ln(1/scale).
//
// Numerics: angles in f64, cosine and sine rounded to the compute dtype; results are multiplied by
// magnitude.
//
// Errors: positions that are no integers or have other axes; an odd number of dims; wrong factors.
//
// Example:
//
//	rope(ones(row=2, head_dim=4), arange(2, "row"))
type Rope struct {
	X             *Tensor `arg:"x"`
	Positions     *Tensor `arg:"positions"`
	Axis          Axis    `arg:"axis=head_dim"`
	Base          float64 `arg:"base=10000"`
	Scale         float64 `arg:"scale=1"`
	Dims          int     `arg:"dims=0"`
	Style         string  `arg:"style=interleaved" enum:"interleaved half"`
	Factors       *Tensor `arg:"factors?"`
	Magnitude     float64 `arg:"magnitude=1"`
	Extrapolation float64 `arg:"extrapolation=0"`
	BetaFast      float64 `arg:"beta_fast=32"`
	BetaSlow      float64 `arg:"beta_slow=1"`
	Context       int     `arg:"context=0"`
}

var rope = Declare[Rope]("rope")

// Names keeps x's axes; rows are visited position by position.
func (a *Rope) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	p.Integer(a.Positions)
	p.NeedAll(a.X, a.Positions.axes)
	if a.Positions.axes.Has(string(a.Axis)) {
		p.Fail(fmt.Sprintf("%s has the axis %q that is turned", p.Describe(a.Positions), a.Axis),
			p.c.hint(p.c.taken("one position per row", a.Positions, axisList(string(a.Axis)))))
	}
	if a.Factors != nil {
		if p.Float(a.Factors); a.Factors.Rank() != 1 {
			p.Fail("want one axis in "+p.Describe(a.Factors), p.c.oneAxis("one divisor per pair", a.Factors, a.X))
		}
	}
	p.Out(a.X.axes, p.Float(a.X))
	p.Keep(a.Positions.axes.Append(inner(a.X.axes, a.Axis)))
}

// Sizes checks the pairs.
func (a *Rope) Sizes(s *Sizes) {
	if a.Factors != nil {
		s.Match(a.Factors.axes)
	} else {
		s.Match(nil)
	}
	n := a.X.Size(string(a.Axis))
	d := a.dims()
	if d <= 0 || d%2 != 0 || d > n {
		s.Fail(fmt.Sprintf("cannot turn %d elements of axis %q of %s", d, a.Axis, s.Describe(a.X)),
			s.c.hint(s.c.recall(fmt.Sprintf("dims is an even number up to %d", n), a.turning(max(2, min(d, n)/2*2)))))
	}
	if a.Factors != nil && a.Factors.sizes[0] != d/2 {
		s.Fail(fmt.Sprintf("%s has %d factors for %d pairs", s.Describe(a.Factors), a.Factors.sizes[0], d/2),
			s.c.hint(s.c.cut(a.Factors, a.Factors.axes.At(0), d/2),
				s.c.recall("one divisor per pair", a.turning(2*a.Factors.sizes[0]))))
	}
}

// turning is the call with another number of dims.
func (a *Rope) turning(dims int) Op {
	fixed := *a
	fixed.Dims = dims
	return &fixed
}

func (a *Rope) dims() int {
	if a.Dims != 0 {
		return a.Dims
	}
	return a.X.Size(string(a.Axis))
}

// Eval turns every row.
func (a *Rope) Eval(c *Ctx) {
	if a.X.Len() == 0 {
		return
	}
	if a.X.dtype == dtype.F64 {
		turnRows[float64](c, a)
	} else {
		turnRows[float32](c, a)
	}
}

func turnRows[C float32 | float64](c *Ctx, a *Rope) {
	ids := c.Dense(a.Positions, a.Positions.axes, dtype.I64)
	positions := unsafe.Slice((*int64)(ids.data), ids.Len())
	pairs := a.dims() / 2
	table := make([]C, 2*pairs*len(positions)) // cosines, then sines, of each position
	freqs, magnitude := a.frequencies(c)
	for i, pos := range positions {
		cos, sin := table[2*i*pairs:][:pairs], table[(2*i+1)*pairs:][:pairs]
		for k, f := range freqs {
			s, co := math.Sincos(float64(pos) * f)
			cos[k], sin[k] = C(co*magnitude), C(s*magnitude)
		}
	}
	turn := num.RopeInterleaved[C]
	if a.Style == "half" {
		turn = num.RopeHalf[C]
	}
	rowsPer := a.X.Len() / len(positions) / a.X.Size(string(a.Axis))
	eachRowAt(c, a.X, func(i int, y, x []C) {
		p := i / rowsPer
		turn(y, x, table[2*p*pairs:][:pairs], table[(2*p+1)*pairs:][:pairs])
	})
}

// frequencies is the angle per position of each pair, and what lengths are multiplied by.
func (a *Rope) frequencies(c *Ctx) (freqs []float64, magnitude float64) {
	d := float64(a.dims())
	freqs, magnitude = make([]float64, a.dims()/2), a.Magnitude
	var factors []float32
	if a.Factors != nil {
		factors = row[float32](c.Dense(a.Factors, a.Factors.axes, dtype.F32), 0, len(freqs))
	}
	low, high := 0.0, 0.0
	if a.Extrapolation != 0 {
		// the pair that turns n times within the original context
		pair := func(n float64) float64 {
			return d * math.Log(float64(a.Context)/(n*2*math.Pi)) / (2 * math.Log(a.Base))
		}
		low = max(0, math.Floor(pair(a.BetaFast)))
		high = min(d-1, math.Ceil(pair(a.BetaSlow)))
		magnitude *= 1 + 0.1*math.Log(1/a.Scale)
	}
	for i := range freqs {
		f := math.Pow(a.Base, -2*float64(i)/d)
		if factors != nil {
			f /= float64(factors[i])
		}
		scaled := f * a.Scale
		if a.Extrapolation != 0 {
			ramp := 1 - min(1, max(0, (float64(i)-low)/max(0.001, high-low)))
			mix := ramp * a.Extrapolation
			scaled = scaled*(1-mix) + f*mix
		}
		freqs[i] = scaled
	}
	return freqs, magnitude
}

// Samples covers the numbers of rows, styles, partial turning, factors, YaRN, and the dtypes.
func (*Rope) Samples(m *Maker) (list []Rope) {
	add := func(a Rope) {
		a.Axis, a.Base, a.Scale, a.Magnitude, a.BetaFast, a.BetaSlow = "head_dim", 10000, 0.5, 1.25, 32, 1
		list = append(list, a)
	}
	for _, n := range append(lengths, 4000) {
		add(Rope{X: m.Tensor(dtype.F32, "row=%d head_dim=4", n), Positions: m.Indices(dtype.I64, 4000, "row=%d", n),
			Style: "interleaved"})
	}
	for _, dt := range floats {
		add(Rope{X: m.Tensor(dt, "batch=2 row=3 head=2 head_dim=16"), Positions: m.Indices(dtype.I64, 4000, "row=3"),
			Style: "half"})
		add(Rope{X: m.Tensor(dt, "row=3 head_dim=18 batch=2"), Positions: m.Indices(dtype.I64, 4000, "batch=2 row=3"),
			Style: "interleaved", Dims: 16, Extrapolation: 1, Context: 4096})
		add(Rope{X: m.Tensor(dt, "row=3 head_dim=18"), Positions: m.Indices(dtype.I64, 4000, ""),
			Style: "half", Dims: 16, Factors: m.Tensor(dt, "pair=8")})
	}
	for _, dt := range integers {
		add(Rope{X: m.Tensor(dtype.F32, "row=3 head_dim=4"), Positions: m.Indices(dt, 100, "row=3"), Style: "half"})
	}
	return list
}

// Saves the positions and factors.
func (*Rope) Saves(uint64) (in, out uint64) { return ^uint64(1), 0 }

// VJP turns gy back.
func (a *Rope) VJP(_, gy []*Tensor, g *Grads) {
	g.None(2, "factors")
	back := *a
	back.X, back.Positions = gy[0], a.Positions.Cast(dtype.I64).Neg()
	g.Set(0, rope.Call(back))
}
