package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// Scatter is x with the elements of source at the places that index says. Where a place occurs several times
// the last one in the order of the index's axes stays, always: other libraries leave open which. Unless reduce is
// "set", the element of x stays too, and the result is the sum, the product, the greatest or the least of it and
// all that index puts there, as PyTorch's scatter_reduce has it.
//
// Shape: x[row, expert], index[row, choice] of integers, source[row, choice] → y[row, expert] for
// scatter(index, source, "expert"). source has axes of x.gather(index, axis), or fewer and is repeated, or is
// a plain number.
//
// Numerics: taken one after another in the order of the index; f16 and bf16 compute in f32 and round once.
// Integers wrap; NaN is greatest and least. Equal greatest or least elements share the gradient.
//
// Errors: indices that are no integers or lie outside of 0 … n-1; an axis that x lacks; source with other axes,
// sizes or dtype.
//
// Example:
//
//	zeros(seq=4).scatter(tensor([2, 0], "place"), tensor([1.5, 2.5], "place"), "seq")
type Scatter struct {
	X      *Tensor `arg:"x"`
	Index  *Tensor `arg:"index"`
	Source *Tensor `arg:"source,number"`
	Axis   Axis    `arg:"axis"`
	Reduce string  `arg:"reduce=set" enum:"set add mul max min"`
}

// ScatterAdd adds the elements of source to those of x at the places that index says: PyTorch's name for what
// index_add does here for an index of any axes.
//
// Shape: x[row, expert], index[row, choice] of integers, source[row, choice] → y[row, expert] for
// scatter_add(index, source, "expert").
//
// Numerics and errors: as index_add.
//
// Example:
//
//	zeros(seq=4).scatter_add(tensor([2, 2], "place"), ones(place=2), "seq")
type ScatterAdd struct {
	X      *Tensor `arg:"x"`
	Index  *Tensor `arg:"index"`
	Source *Tensor `arg:"source"`
	Axis   Axis    `arg:"axis"`
}

var (
	scatterOp  = Declare[Scatter]("scatter")
	scatterAdd = Declare[ScatterAdd]("scatter_add")
)

// Scatter puts source at places of the axis; see the Scatter operation.
func (x *Tensor) Scatter(index, source *Tensor, axis string) *Tensor {
	return scatterOp.Call(Scatter{X: x, Index: index, Source: source, Axis: Axis(axis), Reduce: "set"})
}

// Names insists that source fits what would be gathered.
func (a *Scatter) Names(p *Plan) {
	l := p.lookup(a.X, a.Index, a.Axis)
	if more := a.Source.axes.Without(l.picked); more.Len() > 0 {
		p.Fail(fmt.Sprintf("%s has %s, which belongs to neither %s nor %s", p.Describe(a.Source), quoted(more.Names()),
			p.Describe(a.X), p.Describe(a.Index)), p.c.hint(p.c.taken("take one place of it", a.Source, more)))
	}
	p.Out(a.X.axes, p.Same(a.X, a.Source))
	p.Keep(l)
}

// Names are the rules of index_add.
func (a *ScatterAdd) Names(p *Plan) { (*IndexAdd)(a).Names(p) }

// Sizes are those of index_add.
func (a *ScatterAdd) Sizes(s *Sizes) { (*IndexAdd)(a).Sizes(s) }

// Compose adds.
func (a *ScatterAdd) Compose() *Tensor { return a.X.IndexAdd(a.Index, a.Source, string(a.Axis)) }

// Sizes compares source with x and the index.
func (a *Scatter) Sizes(s *Sizes) {
	s.Match(axisList(string(a.Axis)))
	// The axis itself has the index's size in source.
	if n := a.Source.Size(string(a.Axis)); n >= 0 && n != a.Index.Size(string(a.Axis)) {
		s.c.sizeConflict(a.Index, a.Source, string(a.Axis))
	}
}

// Eval puts source into a copy of x, run by run.
func (a *Scatter) Eval(c *Ctx) {
	switch dt := classOf(a.X.dtype); {
	case a.Reduce == "set":
		a.replace(c)
	case dt == dtype.F32:
		scatterWith[float32](c, a)
	case dt == dtype.F64:
		scatterWith[float64](c, a)
	default:
		scatterWith[int64](c, a)
	}
}

func scatterWith[C number](c *Ctx, a *Scatter) {
	l := c.Data().(lookup)
	source := c.Dense(c.spread(a.Source, l.to, a.sizes(l)), l.to, native[C]())
	put := map[string]func(y, v []C){
		"add": addAll[C],
		"mul": func(y, v []C) {
			for i := range v {
				y[i] *= v[i]
			}
		},
		"max": func(y, v []C) {
			for i := range v {
				y[i] = max(y[i], v[i])
			}
		},
		"min": func(y, v []C) {
			for i := range v {
				y[i] = min(y[i], v[i])
			}
		},
	}[a.Reduce]
	putAt(c, a.X, a.Index, source, a.Axis, put)
}

// replace copies bytes, whatever they stand for.
func (a *Scatter) replace(c *Ctx) {
	out, l := c.Out(0), c.Data().(lookup)
	ids := c.places(a.X, a.Index, a.Axis, l.at)
	y := out
	if out.axes != l.x {
		y = c.Scratch(out.dtype, l.x, out.permuted(l.x).sizes)
	}
	c.copyInto(y, a.X.permuted(l.x))
	if out.Len() > 0 && len(ids) > 0 {
		source := c.spread(a.Source, l.to, a.sizes(l))
		n, each := a.X.Size(string(a.Axis)), volume(a.Index, l.own) // places in x, in the index, per batch
		size := out.dtype.Size()
		width := source.Len() / len(ids) * size
		strip := blockLen * size
		strips := ceilDiv(width, strip) // no two chunks write to one element
		c.Split(len(ids)/each*strips, max(1, pointGrain/(each*min(width, strip))), func(lo, hi int) {
			work := 0
			for k := lo; k < hi; k++ {
				batch, from := k/strips, k%strips*strip
				to := min(width, from+strip)
				for j := batch * each; j < (batch+1)*each; j++ {
					if work += 4 + to - from; work > pauseLen {
						c.Pause()
						work = 0
					}
					copy(row[byte](y, batch*n+int(ids[j]), width)[from:to], row[byte](source, j, width)[from:to])
				}
			}
		})
	}
	if y != out {
		c.copyInto(out, y.permuted(out.axes))
	}
}

// sizes is the sizes of what would be gathered.
func (a *Scatter) sizes(l lookup) []int {
	sizes := make([]int, 0, l.to.Len())
	for _, name := range l.to.Names() {
		n := a.Index.Size(name)
		if n < 0 {
			n = a.X.Size(name)
		}
		sizes = append(sizes, n)
	}
	return sizes
}

// Saves the index, and what all but "set" and "add" compare.
func (a *Scatter) Saves(uint64) (in, out uint64) {
	if a.Reduce == "set" || a.Reduce == "add" {
		return 2, 0
	}
	return 7, 1
}

// VJP of a sum passes gy on, as index_add does.
func (a *Scatter) VJP(y, gy []*Tensor, g *Grads) {
	switch a.Reduce {
	case "set":
		a.replaced(gy[0], g)
	case "mul":
		a.multiplied(y[0].wide(), gy[0].wide(), g)
	case "max", "min":
		a.chosen(y[0], gy[0].wide(), g)
	default:
		g.Set(0, gy[0])
		g.Set(2, gy[0].Gather(a.Index, string(a.Axis)))
	}
}

// with is the same operation on other operands.
func (a *Scatter) with(x, source *Tensor, reduce string) *Tensor {
	return scatterOp.Call(Scatter{X: x, Index: a.Index, Source: source, Axis: a.Axis, Reduce: reduce})
}

// multiplied gives each factor gy times the product of the others. Where one of source is 0 that is the product of
// those that are not, if it is alone.
func (a *Scatter) multiplied(y, gy *Tensor, g *Grads) {
	name, source := string(a.Axis), a.Source.wide()
	g.Set(0, gy.Mul(a.with(y.onesIn(gy.env), source, "mul")))
	if !g.Wants(2) {
		return
	}
	full := y.Gather(a.Index, name)
	zero := eq.Call(Eq{Compare{X: expandTo(source, full), Y: Number(gy.env, 0, 0, true)}})
	rest := zero.Where(full.onesIn(gy.env), source) // without zeros
	count := a.with(y.zerosIn(gy.env), zero.Cast(y.dtype), "add").Gather(a.Index, name)
	alone := eq.Call(Eq{Compare{X: count, Y: Number(gy.env, 0, 1, true)}})
	others := a.with(a.X.wide(), rest, "mul").Gather(a.Index, name).where(alone)
	g.Set(2, gy.Gather(a.Index, name).Mul(zero.Where(others, full.Div(rest))))
}

// chosen shares gy equally among x and the elements of source that equal the result.
func (a *Scatter) chosen(y, gy *Tensor, g *Grads) {
	name := string(a.Axis)
	kept := eq.Call(Eq{Compare{X: a.X, Y: y}})
	put := eq.Call(Eq{Compare{X: y.Gather(a.Index, name), Y: a.Source}})
	count := a.with(kept.Cast(gy.dtype), put.Cast(gy.dtype), "add")
	part := gy.Div(count)
	g.Set(0, part.where(kept))
	if g.Wants(2) {
		g.Set(2, part.Gather(a.Index, name).where(put))
	}
}

// expandTo is t with the axes of like that it lacks.
func expandTo(t, like *Tensor) *Tensor {
	if missing := like.axes.Without(t.axes); missing.Len() > 0 {
		return expand.Call(Expand{X: t, Axes: like.sized(missing)})
	}
	return t
}

// replaced gives x what stayed of it, and source what lies at its places unless another came later.
func (a *Scatter) replaced(gy *Tensor, g *Grads) {
	env, name := gy.env, string(a.Axis)
	if g.Wants(0) {
		g.Set(0, gy.Scatter(a.Index, env.Zeros(gy.dtype, axisList()), name))
	}
	if !g.Wants(2) {
		return
	}
	lost := gy.Gather(a.Index, name)
	one := axisList(name)
	shared := a.Index.axes.Shared(a.X.axes).Without(one)
	own := a.Index.axes.Without(shared)
	if own.Len() == 0 {
		g.Set(2, lost)
		return
	}
	numbers := split.Call(Split{X: env.Arange(volume(a.Index, own), name, dtype.I64), Axis: a.Axis,
		Into: a.Index.sized(own)})
	marked := a.X.sized(shared.Append(one))
	last := env.Zeros(dtype.I64, marked.Keys, marked.Values...).Scatter(a.Index, numbers, name).Gather(a.Index, name)
	g.Set(2, lost.where(eq.Call(Eq{Compare{X: last, Y: numbers}})))
}

// Samples covers the lengths of the axis, of the index and of the rest, sources that repeat, and the dtypes.
func (*Scatter) Samples(m *Maker) (list []Scatter) {
	add := func(x, index, source *Tensor, axis Axis) {
		how := []string{"set", "add", "mul", "max", "min"}[len(list)%5]
		list = append(list, Scatter{X: x, Index: index, Source: source, Axis: axis, Reduce: how})
	}
	for _, n := range lengths {
		add(m.Tensor(dtype.F32, "vocab=5 embed=%d", n), m.Indices(dtype.I64, 5, "choice=3"),
			m.Tensor(dtype.F32, "choice=3 embed=%d", n), "vocab")
		add(m.Tensor(dtype.F32, "row=3 expert=%d", max(1, n)), m.Indices(dtype.I64, max(1, n), "row=3 choice=%d", n),
			m.Tensor(dtype.F32, "row=3 choice=%d", n), "expert")
	}
	add(m.Tensor(dtype.F32, "row=3 a=4"), m.Indices(dtype.I64, 4, "a=2"), m.Tensor(dtype.F32, "a=2"), "a")
	for _, dt := range integers {
		add(m.Tensor(dtype.F32, "row=3 expert=4"), m.Indices(dt, 4, "row=3 expert=6"),
			m.Tensor(dtype.F32, "expert=6 row=3"),
			"expert")
	}
	for _, dt := range allDTypes {
		add(m.Tensor(dt, "row=3 a=5 col=17"), m.Indices(dtype.I32, 5, "b=2 row=3 c=2"),
			m.Tensor(dt, "col=17 row=3 b=2 c=2"), "a")
		add(m.Tensor(dt, "row=3 a=5"), m.Indices(dtype.I32, 5, "row=3"), m.Tensor(dt, ""), "a")
	}
	for range 5 { // every reduction where places occur several times
		add(m.Tensor(dtype.F32, "row=3 a=5"), m.Indices(dtype.I32, 5, "b=7 row=3"),
			m.Tensor(dtype.F32, "row=3 b=7"), "a")
	}
	return list
}

// Samples are those of index_add.
func (*ScatterAdd) Samples(m *Maker) (list []ScatterAdd) {
	for _, a := range (*IndexAdd)(nil).Samples(m) {
		list = append(list, ScatterAdd(a))
	}
	return list
}
