package core

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Rope turns pairs of elements along an axis by angles that grow with the position: the rotary
// embedding (Su et al. 2021), with the YaRN correction for long contexts (Peng et al. 2023).
//
// Shape: x[…, row, …, head_dim], positions[row] of integers → y of x's axes. positions may have any
// of x's axes but the turned one. factors[any] has one divisor per pair. Instead of positions, the
// cosines and sines may be given: cos[row, pair] and sin[row, pair] have one axis that x lacks, with a
// place for each pair, and any of x's but the turned one. Rows of a longer table are taken by
// positions with cos.gather(positions, "position").
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
// Errors: positions that are no integers or have other axes; an odd number of dims; wrong factors;
// both positions and tables, or one table; tables together with what only computes them.
//
// Example:
//
//	rope(ones(row=2, head_dim=4), arange(2, "row"))
type Rope struct {
	X             *Tensor `arg:"x"`
	Positions     *Tensor `arg:"positions?"`
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
	Cos           *Tensor `arg:"cos?"`
	Sin           *Tensor `arg:"sin?"`
}

var rope = Declare[Rope]("rope")

// Names keeps x's axes; rows are visited position by position.
func (a *Rope) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	if a.Cos != nil || a.Sin != nil || a.Positions == nil {
		a.tables(p)
		return
	}
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
	p.Keep(&ropeOrders{rows: a.Positions.axes.Append(inner(a.X.axes, a.Axis))})
}

// tables is the rule for given cosines and sines.
func (a *Rope) tables(p *Plan) {
	if a.Cos == nil || a.Sin == nil {
		p.Fail("got neither positions nor both cos and sin", p.c.info.AsIn())
	}
	if a.Positions != nil || a.Factors != nil {
		p.Fail("positions and factors are for computing the tables "+p.Describe(a.Cos)+" and "+p.Describe(a.Sin),
			"leave them out; rows of a longer table: cos.gather(positions, \"position\")")
	}
	p.Float(a.X)
	dt := p.Same(a.X, a.Cos, a.Sin)
	rows := a.X.axes.Without(axisList(string(a.Axis)))
	for _, t := range []*Tensor{a.Cos, a.Sin} {
		if t.axes.Without(rows).Len() != 1 {
			p.Fail(fmt.Sprintf("want one axis for the pairs in %s beside those of the rows of %s", p.Describe(t),
				p.Describe(a.X)), "")
		}
	}
	if more := a.Sin.axes.Without(a.Cos.axes); more.Len() > 0 || a.Sin.Rank() != a.Cos.Rank() {
		p.Fail(fmt.Sprintf("%s and %s have different axes", p.Describe(a.Cos), p.Describe(a.Sin)), "")
	}
	p.Out(a.X.axes, dt)
	pair := axisList(a.pair())
	p.Keep(&ropeOrders{rows: a.Cos.axes.Shared(rows).Append(inner(a.X.axes, a.Axis)), pair: pair,
		tables: a.Cos.axes.Without(pair).Append(pair), turned: a.X.axes.Index(string(a.Axis)),
		cos: a.Cos.axes.Index(a.pair()), sin: a.Sin.axes.Index(a.pair())})
}

// ropeOrders is in which order axes are walked: those of x, and those of given tables, whose last is that of the pairs;
// and where the turned axis is in x, and the pairs in given tables.
type ropeOrders struct {
	rows, tables, pair *axis.List
	turned, cos, sin   int
}

// pair is the axis of the pairs in the tables, which may have the name of the turned one.
func (a *Rope) pair() string {
	for i := range a.Cos.axes.Len() {
		if name := a.Cos.axes.At(i); name == string(a.Axis) || !a.X.axes.Has(name) {
			return name
		}
	}
	return ""
}

// Sizes checks the pairs.
func (a *Rope) Sizes(s *Sizes) {
	if a.Cos != nil {
		at := s.c.plan.data.(*ropeOrders)
		s.Match(at.pair)
		a.sizeTables(s, at)
		return
	}
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

// sizeTables compares the tables with each other, with dims and with the axis.
func (a *Rope) sizeTables(s *Sizes, at *ropeOrders) {
	pairs, n := a.Cos.sizes[at.cos], a.X.sizes[at.turned]
	if a.Sin.sizes[at.sin] != pairs {
		s.c.sizeConflict(a.Cos, a.Sin, a.pair())
	}
	if a.Extrapolation != 0 {
		s.Fail("extrapolation is for computing the tables cos and sin", "leave it out")
	}
	if pairs < 1 || a.Dims != 0 && a.Dims != 2*pairs || 2*pairs > n {
		s.Fail(fmt.Sprintf("%s has %d cosines to turn %d of the %d elements of axis %q of %s", s.Describe(a.Cos), pairs,
			a.dims(), n, a.Axis, s.Describe(a.X)), fmt.Sprintf("one per pair: at most %d", n/2))
	}
}

// turning is the call with another number of dims.
func (a *Rope) turning(dims int) Op {
	fixed := *a
	fixed.Dims = dims
	return &fixed
}

func (a *Rope) dims() int {
	switch {
	case a.Dims != 0:
		return a.Dims
	case a.Cos != nil:
		return 2 * a.Cos.Size(a.pair())
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
	pairs := a.dims() / 2
	cos, sin := tablesOf[C](c, a)
	half := a.Style == "half"
	n := a.X.Size(string(a.Axis))
	rowsPer := a.X.Len() / (len(cos) / pairs) / n
	if y, x, ok := atOnce[C](c, a.X, c.Data().(*ropeOrders).rows); ok {
		for i := range len(y) / n {
			p := i / rowsPer * pairs
			turnRow(y[i*n:][:n], x[i*n:][:n], cos[p:][:pairs], sin[p:][:pairs], half)
		}
		return
	}
	eachRun(c, a.X, c.Data().(*ropeOrders).rows, n, func(i int, y, x []C) {
		p := i / rowsPer * pairs
		turnRow(y, x, cos[p:][:pairs], sin[p:][:pairs], half)
	})
}

// turnRow turns a row's pairs.
func turnRow[C float32 | float64](y, x, cos, sin []C, half bool) {
	if half {
		num.RopeHalf(y, x, cos, sin)
	} else {
		num.RopeInterleaved(y, x, cos, sin)
	}
}

// tablesOf is the cosines and sines of each pair, those given or row by row of the positions.
func tablesOf[C float32 | float64](c *Ctx, a *Rope) (cos, sin []C) {
	if a.Cos != nil {
		order := c.Data().(*ropeOrders).tables
		return elementsOf[C](c.Dense(a.Cos, order, native[C]())), elementsOf[C](c.Dense(a.Sin, order, native[C]()))
	}
	return anglesOf[C](c, a)
}

// anglesOf is tablesOf where they are to be computed.
func anglesOf[C float32 | float64](c *Ctx, a *Rope) (cos, sin []C) {
	positions := elementsOf[int64](c.Dense(a.Positions, a.Positions.axes, dtype.I64))
	freqs, magnitude := a.frequencies(c)
	pairs := len(freqs)
	room := func() []C {
		return elementsOf[C](c.Scratch(native[C](), ropeTable, []int{len(positions), pairs}))
	}
	cos, sin = room(), room()
	c.Split(len(positions), max(1, pointGrain/4/max(1, pairs)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for k, f := range freqs {
				s, co := math.Sincos(float64(positions[i]) * f)
				cos[i*pairs+k], sin[i*pairs+k] = C(co*magnitude), C(s*magnitude)
			}
		}
	})
	return cos, sin
}

var ropeTable = axisList("position", "pair")

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

// Samples covers the numbers of rows, styles, partial turning, factors, YaRN, tables and the dtypes.
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
	for _, dt := range floats {
		add(Rope{X: m.Tensor(dt, "row=3 head_dim=6 batch=2"), Cos: m.Tensor(dt, "batch=2 pair=2 row=3"),
			Sin: m.Tensor(dt, "pair=2 row=3 batch=2"), Style: "half"})
		add(Rope{X: m.Tensor(dt, "head_dim=36 row=3"), Cos: m.Tensor(dt, "row=3 head_dim=17"),
			Sin: m.Tensor(dt, "row=3 head_dim=17"), Style: "interleaved", Dims: 34})
		add(Rope{X: m.Tensor(dt, "head=2 row=3 head_dim=4"), Cos: m.Tensor(dt, "pair=2"), Sin: m.Tensor(dt, "pair=2"),
			Style: "interleaved"})
	}
	return list
}

// Saves the positions and factors or the tables, and x if these want a gradient.
func (*Rope) Saves(want uint64) (in, out uint64) { return ^uint64(1) | want>>3&1 | want>>4&1, 0 }

// VJP turns gy back. A cosine gets gy·x of both elements of its pairs, a sine gy·x with x turned by a quarter.
func (a *Rope) VJP(_, gy []*Tensor, g *Grads) {
	back := *a
	back.X = gy[0]
	if a.Cos == nil {
		g.None(2, "factors")
		back.Positions = a.Positions.Cast(dtype.I64).Neg()
		g.Set(0, rope.Call(back))
		return
	}
	if g.Wants(0) {
		back.Sin = a.Sin.Neg()
		g.Set(0, rope.Call(back))
	}
	if g.Wants(3) {
		g.Set(3, a.pairSums(gy[0].wide().Mul(a.X.wide())))
	}
	if g.Wants(4) {
		quarter := *a
		quarter.Cos, quarter.Sin = a.Cos.zerosIn(gy[0].env), a.Sin.onesIn(gy[0].env)
		g.Set(4, a.pairSums(gy[0].wide().Mul(rope.Call(quarter).wide())))
	}
}

// pairSums adds the two elements of each pair of t, which looks like x, and leaves out those that are not turned.
func (a *Rope) pairSums(t *Tensor) *Tensor {
	const pair, side = "rope_pair", "rope_side"
	into := Map[int]{axisList(pair, side), []int{a.dims() / 2, 2}}
	if a.Style == "half" {
		into = Map[int]{axisList(side, pair), []int{2, a.dims() / 2}}
	}
	t = split.Call(Split{X: t.Slice(string(a.Axis), 0, a.dims(), 1), Axis: a.Axis, Into: into})
	return t.Sum(side).Rename(pair, a.pair())
}
