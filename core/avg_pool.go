package core

import (
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// AvgPool is the mean of the elements in a window that slides along the named axes, as PyTorch's avg_pool1d, 2d and
// 3d.
//
// Shape: input[batch, channel, y, x] → y[batch, channel, y', x'] for input.avg_pool(y=2, x=2); the sizes and the
// options are those of max_pool. Padding counts as elements of 0 unless count_include_pad is false; what a last
// window of ceil_mode has beyond the padding never counts.
// Numerics: elements are added in the order of the window, and divided once; f16 and bf16 compute in f32. A window
// of which nothing counts, which only a dilation makes possible, gives NaN.
//
// Errors: an axis that the input lacks; padding as wide as the window; a window that does not fit; integers.
//
// Example:
//
//	ones(channel=3, y=8, x=8).avg_pool(y=2, x=2)
type AvgPool struct {
	Pool
	CountIncludePad bool `arg:"count_include_pad=true"`
}

var avgPool = Declare[AvgPool]("avg_pool")

// Names keeps the axes.
func (a *AvgPool) Names(p *Plan) {
	p.Float(a.Input)
	a.declare(p)
}

// Sizes counts the windows.
func (a *AvgPool) Sizes(s *Sizes) {
	r := s.c.plan.data.(pool)
	a.settle(s, r, a.windows(r))
}

// Eval averages.
func (a *AvgPool) Eval(c *Ctx) {
	if c.Out(0).Len() == 0 {
		return
	}
	if a.Input.dtype == dtype.F64 {
		poolAverage[float64](c, a)
	} else {
		poolAverage[float32](c, a)
	}
}

func poolAverage[C float32 | float64](c *Ctx, a *AvgPool) {
	r, out := c.Data().(pool), c.Out(0)
	windows := a.windows(r)
	x := elementsOf[C](c.Dense(a.Input, r.order, native[C]()))
	y := out
	if out.axes != r.order || out.dtype != native[C]() {
		y = c.Scratch(native[C](), r.order, out.permuted(r.order).sizes)
	}
	counts := a.counts(c.c.env, windows)
	n := windows[len(windows)-1].small
	eachStrip(c, windows, y.Len(), func(i, first, end int) {
		ys := row[C](y, i, n)
		clear(ys[first:end])
		eachWindow(c, windows, i, first, end, func(from, to, at, step int) {
			for j, p := from, at; j < to; j, p = j+1, p+step {
				ys[j] += x[p]
			}
		})
		for j := first; j < end; j++ {
			ys[j] /= C(counts[(i*n+j)%len(counts)])
		}
	})
	if y != out {
		c.copyInto(out, y.permuted(out.axes))
	}
}

// counts is how many elements each window has, in the order of the output.
func (a *AvgPool) counts(e *Env, windows []slide) []float64 {
	counts := []float64{1}
	for _, l := range windows {
		next := make([]float64, len(counts)*l.small)
		for lo, hi := range e.scan(len(next)) {
			for i := lo; i < hi; i++ {
				start := i%l.small*l.s - l.before
				low, high := start, l.large+l.after
				if !a.CountIncludePad {
					low, high = 0, l.large
				}
				first, end := max(0, ceilDiv(low-start, l.d)), min(l.kernel, ceilDiv(high-start, l.d))
				next[i] = counts[i/l.small] * float64(max(0, end-first))
			}
		}
		counts = next
	}
	return counts
}

// Saves nothing.
func (*AvgPool) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP spreads gy, divided by the count, over the window: conv_transpose with a kernel of ones.
func (a *AvgPool) VJP(_, gy []*Tensor, g *Grads) {
	r := a.roles()
	windows := a.windows(r)
	env, dt := gy[0].env, classOf(a.Input.dtype)
	kernel := freshNames(r.spatial, a.Input.axes)
	stride, padding, dilation := perAxisOf(r.spatial), perAxisOf(r.spatial), perAxisOf(r.spatial)
	var sizes, small []int
	for i, l := range windows {
		sizes, small = append(sizes, l.kernel), append(small, l.small)
		stride.Each.Values[i] = [2]int{l.s, l.s}
		dilation.Each.Values[i] = [2]int{l.d, l.d}
		padding.Each.Values[i] = [2]int{l.before, (l.small-1)*l.s + l.reach() - l.before - l.large}
	}
	counts := env.FromFloats(dt, a.counts(env, windows), r.spatial, small...)
	weight := ones.In(env, Ones{Axes: Map[int]{axisList(kernel...), sizes}, DType: dt})
	g.Set(0, convTranspose.Call(ConvTranspose{Padding: padding, Convolution: Convolution{
		Input: gy[0].wide().Div(counts), Weight: weight, Axis: axis.Empty, Spatial: Map[string]{r.spatial, kernel},
		Stride: stride, Dilation: dilation, Groups: 1}}))
}

// Samples covers the lengths, one axis and several, every option, and the dtypes.
func (*AvgPool) Samples(m *Maker) (list []AvgPool) {
	for i, p := range m.pools(floats) {
		list = append(list, AvgPool{Pool: p, CountIncludePad: i%2 == 0})
	}
	return list
}
