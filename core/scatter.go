package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// Scatter is x with the elements of source at the places that index says. Where a place occurs several times
// the last one in the order of the index's axes stays, always: other libraries leave open which. To add them
// up, see scatter_add.
//
// Shape: x[row, expert], index[row, choice] of integers, source[row, choice] → y[row, expert] for
// scatter(index, source, "expert"). source has axes of x.gather(index, axis), or fewer and is repeated, or is
// a plain number.
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
	return scatterOp.Call(Scatter{X: x, Index: index, Source: source, Axis: Axis(axis)})
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

// Eval copies x and then run by run.
func (a *Scatter) Eval(c *Ctx) {
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
			for k := lo; k < hi; k++ {
				batch, from := k/strips, k%strips*strip
				to := min(width, from+strip)
				for j := batch * each; j < (batch+1)*each; j++ {
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

// Saves the index.
func (*Scatter) Saves(uint64) (in, out uint64) { return 2, 0 }

// VJP gives x what stayed of it, and source what lies at its places unless another came later.
func (a *Scatter) VJP(_, gy []*Tensor, g *Grads) {
	env, name := gy[0].env, string(a.Axis)
	if g.Wants(0) {
		g.Set(0, gy[0].Scatter(a.Index, env.Zeros(gy[0].dtype, axisList()), name))
	}
	if !g.Wants(2) {
		return
	}
	lost := gy[0].Gather(a.Index, name)
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
		list = append(list, Scatter{X: x, Index: index, Source: source, Axis: axis})
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
	return list
}

// Samples are those of index_add.
func (*ScatterAdd) Samples(m *Maker) (list []ScatterAdd) {
	for _, a := range (*IndexAdd)(nil).Samples(m) {
		list = append(list, ScatterAdd(a))
	}
	return list
}
