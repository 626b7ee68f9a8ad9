package core

import (
	"fmt"
	"slices"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// Tile repeats x as a whole along axes it has: 1 2 3 1 2 3. To repeat each element, see repeat; along an axis
// it lacks, see expand.
//
// Shape: x[…, axis=n, …] → y[…, axis=n·times, …].
//
// Errors: an axis that x lacks; a negative number of times.
//
// Example:
//
//	tensor([1, 2, 3], "seq").tile(seq=2)
type Tile struct {
	X     *Tensor  `arg:"x"`
	Times Map[int] `arg:"times,rest"`
}

// Repeat repeats each element of x along axes: 1 1 2 2 3 3. To repeat x as a whole, see tile; along an axis
// it lacks, see expand.
//
// Shape: x[…, axis=n, …] → y[…, axis=n·times, …].
//
// Errors: an axis that x lacks; a negative number of times.
//
// Example:
//
//	tensor([1, 2, 3], "seq").repeat(seq=2)
type Repeat struct {
	X     *Tensor  `arg:"x"`
	Times Map[int] `arg:"times,rest"`
}

var (
	tile   = Declare[Tile]("tile")
	repeat = Declare[Repeat]("repeat")
)

// Tile repeats x as a whole along one axis; see the Tile operation.
func (x *Tensor) Tile(axis string, times int) *Tensor {
	return tile.Call(Tile{X: x, Times: Map[int]{axisList(axis), []int{times}}})
}

// Repeat repeats each element along one axis; see the Repeat operation.
func (x *Tensor) Repeat(axis string, times int) *Tensor {
	return repeat.Call(Repeat{X: x, Times: Map[int]{axisList(axis), []int{times}}})
}

// Names keeps the axes.
func (a *Tile) Names(p *Plan) { p.repeats(a.X, a.Times) }

// Names keeps the axes.
func (a *Repeat) Names(p *Plan) { p.repeats(a.X, a.Times) }

func (p *Plan) repeats(x *Tensor, times Map[int]) {
	p.NeedAll(x, times.Keys)
	p.Out(x.axes, x.dtype)
}

// Sizes multiplies.
func (a *Tile) Sizes(s *Sizes) {
	s.repeats(a.X, a.Times, func(times Map[int]) Op { return &Tile{X: a.X, Times: times} })
}

// Sizes multiplies.
func (a *Repeat) Sizes(s *Sizes) {
	s.repeats(a.X, a.Times, func(times Map[int]) Op { return &Repeat{X: a.X, Times: times} })
}

// repeats multiplies the sizes; with makes the operation with other numbers of times.
func (s *Sizes) repeats(x *Tensor, times Map[int], with func(times Map[int]) Op) {
	for i, name := range times.Keys.Names() {
		n, t := x.Size(name), times.Values[i]
		if t < 0 || t > manyElements/max(1, n) {
			fixed := Map[int]{times.Keys, slices.Clone(times.Values)}
			fixed.Values[i] = 1
			s.Fail(fmt.Sprintf("%s=%d is no number of times for axis %q of %s", Keyword(name), t, name, s.Describe(x)),
				s.c.hint(s.c.recall("it is 0, 1, 2, …", with(fixed))))
		}
		s.Set(0, name, n*t)
	}
}

// Eval begins anew after every n.
func (a *Tile) Eval(c *Ctx) {
	c.repeated(a.X, a.Times, func(i, n, _ int) int { return i % n })
}

// Eval stays at each element.
func (a *Repeat) Eval(c *Ctx) {
	c.repeated(a.X, a.Times, func(i, _, times int) int { return i / times })
}

// repeated picks the elements that from tells of.
func (c *Ctx) repeated(x *Tensor, times Map[int], from func(i, n, times int) int) {
	places := make([][]int, x.Rank())
	for j, name := range times.Keys.Names() {
		k := x.axes.Index(name)
		places[k] = c.placesOf(c.Out(0).sizes[k])
		for lo, hi := range c.c.env.scan(len(places[k])) {
			for i := lo; i < hi; i++ {
				places[k][i] = from(i, x.sizes[k], times.Values[j])
			}
		}
	}
	c.pick(x, places, nil)
}

// Saves nothing.
func (*Tile) Saves(uint64) (in, out uint64) { return 0, 0 }

// Saves nothing.
func (*Repeat) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP sums over the repetitions.
func (a *Tile) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, unrepeated(gy[0], a.X, a.Times, true))
}

// VJP sums over the repetitions.
func (a *Repeat) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, unrepeated(gy[0], a.X, a.Times, false))
}

// unrepeated is t with an axis for the repetitions of each axis split off, outside of it or inside.
func unrepeated(t, x *Tensor, times Map[int], outside bool) *Tensor {
	for i, name := range times.Keys.Names() {
		again := unused(t.axes, name)
		into := Map[int]{axisList(name, again), []int{x.Size(name), times.Values[i]}}
		if outside {
			into = Map[int]{axisList(again, name), []int{times.Values[i], x.Size(name)}}
		}
		t = split.Call(Split{X: t, Axis: Axis(name), Into: into})
	}
	return t
}

// unused is a name like the given one that is not in the list.
func unused(axes *axis.List, name string) string {
	for name += "_"; axes.Has(name); name += "_" {
	}
	return name
}

// Samples covers the lengths, no and several times, several axes, and the dtypes.
func (*Tile) Samples(m *Maker) (list []Tile) {
	for _, r := range repetitions(m) {
		list = append(list, Tile{X: r.X, Times: r.Times})
	}
	return list
}

// Samples covers the lengths, no and several times, several axes, and the dtypes.
func (*Repeat) Samples(m *Maker) []Repeat { return repetitions(m) }

func repetitions(m *Maker) (list []Repeat) {
	for _, n := range lengths {
		list = append(list,
			Repeat{X: m.Tensor(dtype.F32, "row=3 col=%d", n), Times: Map[int]{axisList("col"), []int{2}}},
			Repeat{X: m.Tensor(dtype.F32, "a=%d row=3", n), Times: Map[int]{axisList("a"), []int{3}}})
	}
	list = append(list, Repeat{X: m.Tensor(dtype.F32, "row=3 col=4"), Times: Map[int]{axisList("col"), []int{0}}})
	for _, dt := range allDTypes {
		list = append(list,
			Repeat{X: m.Tensor(dt, "a=3 row=2 col=17"), Times: Map[int]{axisList("col", "a"), []int{3, 2}}})
	}
	return list
}
