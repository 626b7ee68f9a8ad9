package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// IndexAdd adds the elements of source to those of x at the places that index says: the counterpart of
// gather. A place that occurs several times gets the sum.
//
// Shape: x[vocab, embed], index[row] of integers, source[row, embed] → y[vocab, embed] for
// index_add(index, source, "vocab"); x[row, expert], index[row, choice], source[row, choice] → y[row,
// expert] for "expert". source has the axes that x.gather(index, axis) has.
//
// Numerics: added one after another in the order of the index; f16 and bf16 add in f32 and round once.
// Integers wrap.
//
// Errors: indices that are no integers or lie outside of 0 … n-1; source with other axes or sizes.
//
// Example:
//
//	zeros(vocab=3).index_add(tensor([2, 0, 2], "row"), ones(row=3), "vocab")
type IndexAdd struct {
	X      *Tensor `arg:"x"`
	Index  *Tensor `arg:"index"`
	Source *Tensor `arg:"source"`
	Axis   Axis    `arg:"axis"`
}

var indexAdd = Declare[IndexAdd]("index_add")

// IndexAdd adds source to x at places of the axis; see the IndexAdd operation.
func (x *Tensor) IndexAdd(index, source *Tensor, axis string) *Tensor {
	return indexAdd.Call(IndexAdd{X: x, Index: index, Source: source, Axis: Axis(axis)})
}

// Names insists that source looks like what would be gathered.
func (a *IndexAdd) Names(p *Plan) {
	l := p.lookup(a.X, a.Index, a.Axis)
	p.NeedAll(a.Source, l.picked)
	if more := a.Source.axes.Without(l.picked); more.Len() > 0 {
		p.Fail(fmt.Sprintf("%s has %s, which belongs to neither %s nor %s", p.Describe(a.Source), quoted(more.Names()),
			p.Describe(a.X), p.Describe(a.Index)), "sum it first: source.sum("+quoted(more.Names())+")")
	}
	p.Out(a.X.axes, p.Same(a.X, a.Source))
	p.Keep(l)
}

// Sizes compares source with x and the index.
func (a *IndexAdd) Sizes(s *Sizes) {
	one := axisList(string(a.Axis))
	s.Match(one)
	if a.Index.axes.Has(string(a.Axis)) && a.Index.Size(string(a.Axis)) != a.Source.Size(string(a.Axis)) {
		s.c.sizeConflict(a.Index, a.Source, string(a.Axis))
	}
}

// Eval adds run by run.
func (a *IndexAdd) Eval(c *Ctx) {
	switch classOf(a.X.dtype) {
	case dtype.F32:
		addAt[float32](c, a)
	case dtype.F64:
		addAt[float64](c, a)
	default:
		addAt[int64](c, a)
	}
}

func addAt[C number](c *Ctx, a *IndexAdd) {
	source := c.Dense(a.Source, c.Data().(lookup).to, native[C]())
	putAt(c, a.X, a.Index, source, a.Axis, addAll[C])
}

func addAll[C number](y, v []C) {
	y = y[:len(v)]
	for i := range v {
		y[i] += v[i]
	}
}

// putAt sets output 0 to x and then lets put, run by run in the order of the index, change what lies at its places.
// source is dense, in the order of what would be looked up.
func putAt[C number](c *Ctx, x, index, source *Tensor, name Axis, put func(y, v []C)) {
	out, l := c.Out(0), c.Data().(lookup)
	ids := c.places(x, index, name, l.at)
	y := out
	if out.axes != l.x || out.dtype != native[C]() {
		y = c.Scratch(native[C](), l.x, out.permuted(l.x).sizes)
	}
	c.copyInto(y, x.permuted(l.x))
	if source.Len() > 0 {
		n := x.Size(string(name))
		each := volume(index, l.own) // places per batch
		width := source.Len() / len(ids)
		ys, vs := elementsOf[C](y), elementsOf[C](source)
		strips := ceilDiv(width, blockLen) // no two chunks write to one element
		c.Split(len(ids)/each*strips, max(1, pointGrain/(each*min(width, blockLen))), func(lo, hi int) {
			work := 0
			for k := lo; k < hi; k++ {
				batch, from := k/strips, k%strips*blockLen
				to := min(width, from+blockLen)
				for j := batch * each; j < (batch+1)*each; j++ {
					if work += 4 + to - from; work > pauseLen {
						c.Pause()
						work = 0
					}
					put(ys[(batch*n+int(ids[j]))*width:][from:to], vs[j*width:][from:to])
				}
			}
		})
	}
	if y != out {
		c.copyInto(out, y.permuted(out.axes))
	}
}

// Saves the index.
func (*IndexAdd) Saves(uint64) (in, out uint64) { return 2, 0 }

// VJP passes the gradient on to x, and to source what lies at its places.
func (a *IndexAdd) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0])
	if g.Wants(2) {
		g.Set(2, gy[0].Gather(a.Index, string(a.Axis)))
	}
}

// Samples covers the lengths of the axis, of the index and of the rest, shared axes, and the dtypes.
func (*IndexAdd) Samples(m *Maker) (list []IndexAdd) {
	for _, n := range lengths {
		list = append(list, IndexAdd{X: m.Tensor(dtype.F32, "vocab=5 embed=%d", n),
			Index:  m.Indices(dtype.I64, 5, "choice=3"),
			Source: m.Tensor(dtype.F32, "choice=3 embed=%d", n), Axis: "vocab"},
			IndexAdd{X: m.Tensor(dtype.F32, "row=3 expert=%d", max(1, n)),
				Index:  m.Indices(dtype.I64, max(1, n), "row=3 choice=%d", n),
				Source: m.Tensor(dtype.F32, "row=3 choice=%d", n), Axis: "expert"})
	}
	for _, dt := range integers {
		list = append(list, IndexAdd{X: m.Tensor(dtype.F32, "row=3 expert=4"),
			Index:  m.Indices(dt, 4, "row=3 expert=6"),
			Source: m.Tensor(dtype.F32, "expert=6 row=3"), Axis: "expert"})
	}
	for _, dt := range allDTypes {
		list = append(list, IndexAdd{X: m.Tensor(dt, "row=3 a=5 col=17"),
			Index:  m.Indices(dtype.I32, 5, "b=2 row=3 c=2"),
			Source: m.Tensor(dt, "col=17 row=3 b=2 c=2"), Axis: "a"})
	}
	return list
}
