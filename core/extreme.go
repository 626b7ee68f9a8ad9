package core

import "github.com/fucina-go/fucina/core/dtype"

// Extreme is the argument struct of max and min: a reduction to one of the elements, or to Initial, a number that is
// among them though no axis has it. With it there is always something to choose from.
type Extreme struct {
	Reduce
	Initial *Tensor `arg:"initial?,number"`
}

// Names drops the axes.
func (a *Extreme) Names(p *Plan) {
	if a.Initial != nil && a.Initial.Rank() > 0 {
		p.Fail("want one number in "+p.Describe(a.Initial), "one for each: x.maximum(initial), x.minimum(initial)")
	}
	a.keeps(p, p.Same(a.X, a.Initial))
}

// Sizes insists on something to choose from.
func (a *Extreme) Sizes(s *Sizes) {
	if a.Initial == nil {
		s.notEmpty(a.X, a.reduced())
	}
}

// notEmpty insists that the named axes of t have elements.
func (s *Sizes) notEmpty(t *Tensor, names Axes) {
	for _, n := range names.Names() {
		if t.Size(n) == 0 {
			s.Fail("axis "+quoted([]string{n})+" of "+s.Describe(t)+" is empty", s.c.unlessEmpty(n))
		}
	}
}

// extremeOf is the one that choose takes of a run's and the initial element.
func extremeOf[C number](initial *Tensor, run []C, best func([]C) C, choose func(x, y C) C) C {
	if initial == nil {
		return best(run)
	}
	var buf []C
	first := load(initial, 0, 1, 1, &buf)[0]
	if len(run) == 0 {
		return first
	}
	return choose(first, best(run))
}

// Divisor is none.
func (*Extreme) Divisor(int) int { return 1 }

// Saves x and the initial element.
func (*Extreme) Saves(uint64) (in, out uint64) { return 3, 0 }

// share gives gy to one element of each run, that at the place of the merged axis, or where the initial one wins
// against the best of them, to that.
func (a *Extreme) share(gy *Tensor, g *Grads, place func(x *Tensor, axis string) *Tensor, best func() *Tensor,
	wins func(initial, best *Tensor) *Tensor) {
	switch {
	case a.Initial == nil:
		g.Set(0, a.toOne(gy, place))
	case a.X.Len() == 0:
		g.zero(0, gy)
		g.Set(1, gy)
	default:
		won := wins(a.Initial, best())
		g.Set(0, a.toOne(gy.where(won.LogicalNot()), place))
		g.Set(1, gy.where(won))
	}
}

// toOne gives gy to one element of each run: that at the place of the merged axis.
func (a *Reduce) toOne(gy *Tensor, place func(x *Tensor, axis string) *Tensor) *Tensor {
	const run = "reduced_run"
	axes := a.reduced()
	if axes.Len() == 0 {
		return gy
	}
	x := merge.Call(Merge{X: a.X, Into: Map[Axes]{axisList(run), []Axes{axes}}})
	gx := x.zerosIn(gy.env).IndexAdd(place(x, run), gy, run)
	return split.Call(Split{X: gx, Axis: run, Into: a.X.sized(axes)})
}

// extremes is samples with and without an initial element.
func (m *Maker) extremes() (list []Extreme) {
	add := func(axes Axes, x, initial *Tensor) {
		list = append(list, Extreme{Reduce{X: x, Axes: axes}, initial})
	}
	for _, n := range lengths {
		x := m.Tensor(dtype.F32, "row=3 col=%d", n)
		if add(axisList("col"), x, m.Tensor(dtype.F32, "")); n > 0 {
			add(axisList("col"), x, nil)
		}
	}
	add(axisList("col"), m.Tensor(dtype.F32, "row=0 col=3"), nil)
	add(axisList("col", "a"), m.Tensor(dtype.F32, "a=3 row=4 col=5"), nil)
	add(axisList("a"), m.Tensor(dtype.F32, "a=3 row=4 col=5"), m.Tensor(dtype.F32, ""))
	add(nil, m.Tensor(dtype.F32, "a=3 row=4 col=5"), nil)
	add(nil, m.Tensor(dtype.F32, ""), m.Tensor(dtype.F32, ""))
	for _, dt := range allDTypes {
		add(axisList("row"), m.Tensor(dt, "row=3 col=17"), m.Tensor(dt, ""))
		add(nil, m.Tensor(dt, "row=3 col=17"), nil)
	}
	return list
}
