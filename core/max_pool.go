package core

import (
	"math"

	"github.com/fucina-go/fucina/core/dtype"
)

// MaxPool is the greatest element in a window that slides along the named axes, as PyTorch's max_pool1d, 2d and 3d.
//
// Shape: input[batch, channel, y, x] → y[batch, channel, y', x'] for input.max_pool(y=2, x=2). An axis of n gets (n +
// before + after - dilation · (window - 1) - 1) // stride + 1 places, or one more with ceil_mode for what is left.
// stride, padding and dilation are one number, or one per axis in a dict; padding takes (before, after) too. The
// stride is the window's size unless given. With return_indices=True the places of the greatest follow, of i64,
// counted over the window's axes in the order of the input's: y, i = input.max_pool(y=2, x=2, return_indices=True)
// has y equal to input.merge(place="y x").gather(i, "place").
// Numerics: NaN is greatest. Of equals, the first in the order of the input's axes gets the gradient. A window that
// sees no element, which only a dilation makes possible, gives -inf or the least integer, and place 0.
//
// Errors: an axis that the input lacks; padding as wide as the window; a window that does not fit.
//
// Example:
//
//	ones(channel=3, y=8, x=8).max_pool(y=2, x=2)
type MaxPool struct {
	Pool
	ReturnIndices bool `arg:"return_indices=false"`
}

var maxPool = Declare[MaxPool]("max_pool")

// Names keeps the axes.
func (a *MaxPool) Names(p *Plan) {
	if a.declare(p); a.ReturnIndices {
		p.Out(a.Input.axes, dtype.I64)
	}
}

// Sizes counts the windows.
func (a *MaxPool) Sizes(s *Sizes) {
	r := s.c.plan.data.(pool)
	windows := a.windows(r)
	a.settle(s, r, windows)
	if a.ReturnIndices {
		for i, l := range windows {
			s.Set(1, r.spatial.At(i), l.small)
		}
	}
}

// Eval looks for the greatest.
func (a *MaxPool) Eval(c *Ctx) {
	switch classOf(a.Input.dtype) {
	case dtype.F32:
		poolMax(c, a, float32(math.Inf(-1)))
	case dtype.F64:
		poolMax(c, a, math.Inf(-1))
	default:
		least, _ := intRange(a.Input.dtype)
		if a.Input.dtype == dtype.Bool {
			least = 0
		}
		poolMax(c, a, least)
	}
}

func poolMax[C number](c *Ctx, a *MaxPool, least C) {
	r, out := c.Data().(pool), c.Out(0)
	sizes := out.permuted(r.order).sizes
	places := c.Save(dtype.I64, r.order, sizes) // of the greatest, counted over the spatial axes
	if out.Len() == 0 {
		return
	}
	if a.ReturnIndices && places == nil {
		places = c.Scratch(dtype.I64, r.order, sizes)
	}
	windows := a.windows(r)
	x := elementsOf[C](c.Dense(a.Input, r.order, native[C]()))
	y := out
	if out.axes != r.order || out.dtype != native[C]() {
		y = c.Scratch(native[C](), r.order, sizes)
	}
	n, plane, outer := windows[len(windows)-1].small, 1, 1
	for i, l := range windows {
		plane *= l.large
		if i < len(windows)-1 {
			outer *= l.small
		}
	}
	eachStrip(c, windows, y.Len(), func(i, first, end int) {
		ys := row[C](y, i, n)
		for j := first; j < end; j++ {
			ys[j] = least
		}
		if places == nil {
			eachWindow(c, windows, i, first, end, func(from, to, at, step int) {
				for j, p := from, at; j < to; j, p = j+1, p+step {
					if v := x[p]; v > ys[j] || v != v {
						ys[j] = v
					}
				}
			})
			return
		}
		ps := row[int64](places, i, n)
		for j := first; j < end; j++ {
			ps[j] = -1 // nothing seen
		}
		eachWindow(c, windows, i, first, end, func(from, to, at, step int) {
			for j, p := from, at; j < to; j, p = j+1, p+step {
				if v := x[p]; v > ys[j] || v != v || ps[j] < 0 {
					ys[j], ps[j] = v, int64(p-i/outer*plane)
				}
			}
		})
		for j := first; j < end; j++ {
			ps[j] = max(ps[j], 0)
		}
	})
	if y != out {
		c.copyInto(out, y.permuted(out.axes))
	}
	if a.ReturnIndices {
		c.copyInto(c.Out(1), places.permuted(out.axes))
	}
}

// Saves nothing: the places are state of Eval.
func (*MaxPool) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP adds gy to where the greatest elements are.
func (a *MaxPool) VJP(_, gy []*Tensor, g *Grads) {
	const run = "pool_run"
	r := a.roles()
	axes := a.Input.axes.Without(r.spatial).Append(axisList(run))
	sizes := make([]int, axes.Len())
	for k, name := range axes.Names() {
		sizes[k] = a.Input.Size(name)
	}
	sizes[len(sizes)-1] = volume(a.Input, r.spatial)
	gx := gy[0].env.Zeros(gy[0].dtype, axes, sizes...).IndexAdd(g.State(0), gy[0], run)
	g.Set(0, split.Call(Split{X: gx, Axis: run, Into: a.Input.sized(r.spatial)}))
}

// Samples covers the lengths, one axis and several, every option, and the dtypes.
func (*MaxPool) Samples(m *Maker) (list []MaxPool) {
	for i, p := range m.pools(allDTypes) {
		list = append(list, MaxPool{Pool: p, ReturnIndices: i%3 == 0})
	}
	return list
}
