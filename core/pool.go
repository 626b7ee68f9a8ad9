package core

import (
	"fmt"
	"strings"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// Pool is the argument struct of max_pool and avg_pool: a window of Kernel places slides along the named axes. Its
// Stride is its own size unless given. With CeilMode a last window that reaches beyond the padded axis counts, if it
// begins inside of the axis or the padding before it.
type Pool struct {
	Input    *Tensor  `arg:"input"`
	Kernel   Map[int] `arg:"kernel,rest"`
	Stride   PerAxis  `arg:"stride=0"`
	Padding  PerAxis  `arg:"padding=0,pairs"`
	CeilMode bool     `arg:"ceil_mode=false"`
	Dilation PerAxis  `arg:"dilation=1"`
}

// pool is the axes by role.
type pool struct {
	spatial, order *axis.List // in the input's order; the others, then these
}

// declare keeps the axes.
func (a *Pool) declare(p *Plan) {
	if a.Kernel.Keys == nil || a.Kernel.Keys.Len() == 0 {
		p.Fail("nothing says along which axes of "+p.Describe(a.Input)+" the window slides", p.c.info.AsIn())
	}
	p.NeedAll(a.Input, a.Kernel.Keys)
	p.Out(a.Input.axes, a.Input.dtype)
	p.Keep(a.roles())
}

func (a *Pool) roles() pool {
	spatial := a.Input.axes.Shared(a.Kernel.Keys)
	return pool{spatial, a.Input.axes.Without(spatial).Append(spatial)}
}

// windows is how the window slides along each axis: as a kernel does, from the output, which is the smaller side.
func (a *Pool) windows(r pool) []slide {
	list := make([]slide, r.spatial.Len())
	for i, name := range r.spatial.Names() {
		l := &list[i]
		l.kernel, l.large = a.Kernel.Values[a.Kernel.Keys.Index(name)], a.Input.Size(name)
		if l.s, _ = a.Stride.At(name, 0); l.s == 0 {
			l.s = l.kernel
		}
		l.d, _ = a.Dilation.At(name, 1)
		l.before, l.after = a.Padding.At(name, 0)
		if l.s < 1 {
			continue // an error
		}
		free := l.large + l.before + l.after - l.reach()
		if a.CeilMode {
			free += l.s - 1
		}
		if free >= 0 {
			l.small = free/l.s + 1
		}
		if a.CeilMode && (l.small-1)*l.s >= l.large+l.before {
			l.small--
		}
	}
	return list
}

// settle checks the options and sets the sizes.
func (a *Pool) settle(s *Sizes, r pool, windows []slide) {
	s.perAxis("stride", a.Stride, r.spatial)
	s.perAxis("padding", a.Padding, r.spatial)
	s.perAxis("dilation", a.Dilation, r.spatial)
	for i, l := range windows {
		name := r.spatial.At(i)
		if l.kernel < 1 || l.s < 1 || l.d < 1 {
			s.Fail(fmt.Sprintf("along %q the window has %d places, stride %d and dilation %d", name, l.kernel,
				l.s, l.d),
				s.c.hint(s.c.recall("they are at least 1", s.c.unstrided())))
		}
		if l.before < 0 || l.after < 0 || max(l.before, l.after) >= l.reach() {
			s.Fail(fmt.Sprintf("along %q the padding is (%d, %d) and the window reaches over %d places", name, l.before,
				l.after,
				l.reach()), refit(s.c,
				fmt.Sprintf("padding is 0 … %d, or a window may see nothing else", l.reach()-1), "padding", Every(0)))
		}
		if l.small < 1 {
			s.Fail(fmt.Sprintf("the window reaches over %d places of axis %q, which with its padding has %d in %s",
				l.reach(), name,
				l.large+l.before+l.after,
				s.Describe(a.Input)), s.c.hint(s.c.recall("a smaller window", s.c.unstrided())))
		}
		s.Set(0, name, l.small)
	}
}

// eachStrip calls f, on the workers, for the places first … end-1 of every run of the output along its last axis, of
// which there are total elements, piece by piece.
func eachStrip(c *Ctx, windows []slide, total int, f func(run, first, end int)) {
	const most = 1 << 10
	n := windows[len(windows)-1].small
	strips := ceilDiv(n, most)
	c.Split(total/n*strips, max(1, pointGrain/8/min(n, most)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			first := i % strips * most
			f(i/strips, first, min(n, first+most))
		}
	})
}

// eachWindow calls f for each place of the window, in order, with what it meets for the places first … end-1 of a run
// of the output along its last axis: for those from … to-1 the elements at, at+step, … of the input, both dense.
func eachWindow(c *Ctx, windows []slide, run, first, end int, f func(from, to, at, step int)) {
	last, work := len(windows)-1, 0
	w := &windows[last]
	places := 1
	for _, l := range windows {
		places *= l.kernel
	}
	for place := range places {
		if work += 16 + end - first; work > pauseLen {
			c.Pause()
			work = 0
		}
		offset := place%w.kernel*w.d - w.before
		rest, outer, stride, base, inside := place/w.kernel, run, w.large, 0, true
		for i := last - 1; i >= 0; i-- {
			l := &windows[i]
			p := outer%l.small*l.s + rest%l.kernel*l.d - l.before
			inside = inside && p >= 0 && p < l.large
			base += p * stride
			outer, rest, stride = outer/l.small, rest/l.kernel, stride*l.large
		}
		from := max(first, ceilDiv(-offset, w.s))
		to := min(end, ceilDiv(w.large-offset, w.s))
		if inside && from < to {
			f(from, to, outer*stride+base+from*w.s+offset, w.s)
		}
	}
}

// pools is samples of windows.
func (m *Maker) pools(dtypes []dtype.Type) (list []Pool) {
	add := func(dt dtype.Type, input, names string, kernel ...int) *Pool {
		window := Map[int]{axisList(strings.Fields(names)...), kernel}
		list = append(list, Pool{Input: m.Tensor(dt, input), Kernel: window, Dilation: Every(1 + len(list)%2)})
		return &list[len(list)-1]
	}
	for _, n := range lengths[1:] {
		add(dtype.F32, fmt.Sprintf("row=2 x=%d", 3*n), "x", 3)
		add(dtype.F32, fmt.Sprintf("row=2 x=%d y=5", n), "y", 2).Stride = Every(1)
		p := add(dtype.F32, fmt.Sprintf("row=2 x=%d", n), "x", 4)
		p.Stride, p.Padding, p.CeilMode = Every(3), Every(2), true
	}
	add(dtype.F32, "row=0 x=5", "x", 2)
	for _, dt := range dtypes {
		p := add(dt, "x=7 row=2 y=6", "y x", 2, 3)
		p.Stride.Each = Map[[2]int]{axisList("x"), [][2]int{{1, 1}}}
		p.Padding.Each = Map[[2]int]{axisList("y", "x"), [][2]int{{1, 0}, {2, 1}}}
		p = add(dt, "x=7", "x", 3)
		p.Stride, p.CeilMode = Every(2), true
	}
	return list
}
