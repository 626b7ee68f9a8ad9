package core

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
)

// Pad adds elements before and after those of x along axes; a negative number takes elements away.
//
// Shape: x[…, axis=n, …] → y[…, axis=before+n+after, …]. A width is (before, after), or one number for both.
//
// The mode says what is added: "constant" value, "edge" the first and last element again, "reflect" the
// elements beside the edge in reverse, as often as needed, "wrap" those of the other end: NumPy's modes.
//
// Errors: an axis that x lacks; more taken away than there is; an empty axis padded by other than a constant;
// a value that x's dtype cannot hold.
//
// Example:
//
//	tensor([1, 2, 3], "seq").pad(seq=(2, 1), mode="reflect")
type Pad struct {
	X      *Tensor     `arg:"x"`
	Widths Map[[2]int] `arg:"widths,rest"`
	Mode   string      `arg:"mode=constant" enum:"constant edge reflect wrap"`
	Value  float64     `arg:"value=0"`
}

var pad = Declare[Pad]("pad")

// Pad adds zeros before and after x along one axis; see the Pad operation.
func (x *Tensor) Pad(axis string, before, after int) *Tensor {
	return pad.Call(Pad{X: x, Widths: Map[[2]int]{axisList(axis), [][2]int{{before, after}}}, Mode: "constant"})
}

// Names keeps the axes.
func (a *Pad) Names(p *Plan) {
	p.NeedAll(a.X, a.Widths.Keys)
	p.Out(a.X.axes, a.X.dtype)
}

// Sizes adds the widths.
func (a *Pad) Sizes(s *Sizes) {
	if !holds(a.Value, a.X.dtype) {
		s.Fail(fmt.Sprintf("%s is %s, which cannot hold %v", s.Describe(a.X), a.X.dtype, a.Value),
			`nothing is promoted silently: x.cast("f32")`)
	}
	for i, name := range a.Widths.Keys.Names() {
		n, w := a.X.Size(name), a.Widths.Values[i]
		width := fmt.Sprintf("%s=(%d, %d)", Keyword(name), w[0], w[1])
		if max(w[0], -w[0], w[1], -w[1]) > manyElements {
			s.Fail(width+" is more than memory can hold", s.c.hint(s.c.recall("pad less", a.with(i, 1, 1))))
		}
		if n+w[0]+w[1] < 0 {
			s.Fail(fmt.Sprintf("%s takes away more than axis %q of %s has", width, name, s.Describe(a.X)),
				s.c.hint(s.c.recall("to take away all", a.with(i, 0, -n))))
		}
		if n == 0 && w[0]+w[1] > 0 && a.Mode != "constant" {
			fixed := *a
			fixed.Mode = "constant"
			s.Fail(fmt.Sprintf("axis %q of %s is empty, there is nothing to pad it with", name, s.Describe(a.X)),
				s.c.hint(s.c.recall("pad with a number", &fixed)))
		}
		s.Set(0, name, n+w[0]+w[1])
	}
}

// with is the call with other widths of the i-th axis.
func (a *Pad) with(i, before, after int) Op {
	fixed := *a
	fixed.Widths.Values = slices.Clone(a.Widths.Values)
	fixed.Widths.Values[i] = [2]int{before, after}
	return &fixed
}

// Eval picks and fills.
func (a *Pad) Eval(c *Ctx) {
	places := make([][]int, a.X.Rank())
	for i, name := range a.Widths.Keys.Names() {
		w, n := a.Widths.Values[i], a.X.Size(name)
		list := c.placesOf(w[0] + n + w[1])
		for lo, hi := range c.c.env.scan(len(list)) {
			for j := lo; j < hi; j++ {
				list[j] = a.place(j-w[0], n)
			}
		}
		places[a.X.axes.Index(name)] = list
	}
	whole := int64(a.Value)
	if a.X.dtype == dtype.Bool && a.Value != 0 {
		whole = 1
	}
	var fill uint64
	put(unsafe.Pointer(&fill), a.X.dtype, a.Value, whole)
	c.pick(a.X, places, unsafe.Pointer(&fill))
}

// place is where the element p places after the first of an axis of n comes from.
func (a *Pad) place(p, n int) int {
	switch {
	case p >= 0 && p < n:
	case a.Mode == "edge":
		p = min(max(p, 0), n-1)
	case a.Mode == "wrap":
		p = modulo(p, n)
	case a.Mode == "reflect":
		p = modulo(p, max(1, 2*n-2))
		p = min(p, 2*n-2-p)
	default:
		p = filling
	}
	return p
}

// Saves nothing.
func (*Pad) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP takes away what was added, and adds each copy of an element to it.
func (a *Pad) VJP(_, gy []*Tensor, g *Grads) {
	t := gy[0]
	if a.Mode == "constant" {
		back := Map[[2]int]{Keys: a.Widths.Keys}
		for _, w := range a.Widths.Values {
			back.Values = append(back.Values, [2]int{-w[0], -w[1]})
		}
		g.Set(0, pad.Call(Pad{X: t, Widths: back, Mode: a.Mode}))
		return
	}
	for i, name := range a.Widths.Keys.Names() {
		n := a.X.Size(name)
		index := make([]int64, a.Widths.Values[i][0]+n+a.Widths.Values[i][1])
		for j := range index {
			index[j] = int64(a.place(j-a.Widths.Values[i][0], n))
		}
		sizes := t.Sizes()
		sizes[t.axes.Index(name)] = n
		at := t.env.FromInts(dtype.I64, index, axisList(name), len(index))
		t = t.env.Zeros(t.dtype, t.axes, sizes...).IndexAdd(at, t, name)
	}
	g.Set(0, t)
}

// Samples covers the lengths, the modes, widths beyond the size and below zero, several axes, and the dtypes.
func (*Pad) Samples(m *Maker) (list []Pad) {
	add := func(x *Tensor, mode string, value float64, axes string, widths ...[2]int) {
		list = append(list, Pad{X: x, Widths: Map[[2]int]{axisList(axes), widths}, Mode: mode, Value: value})
	}
	for _, n := range lengths {
		add(m.Tensor(dtype.F32, "row=3 col=%d", n), "constant", 1.5, "col", [2]int{2, 3})
		if n > 0 {
			for _, mode := range []string{"edge", "reflect", "wrap"} {
				add(m.Tensor(dtype.F32, "row=3 col=%d", n), mode, 0, "col", [2]int{3, 2})
			}
		}
	}
	for _, mode := range []string{"constant", "edge", "reflect", "wrap"} {
		add(m.Tensor(dtype.F32, "row=3 a=4 col=5"), mode, 0, "col a", [2]int{11, -2}, [2]int{-1, 9})
	}
	add(m.Tensor(dtype.F32, "row=3 col=5"), "constant", 0, "col", [2]int{-5, 0})
	for _, dt := range allDTypes {
		add(m.Tensor(dt, "a=3 row=2 col=17"), "constant", 7, "a col", [2]int{1, 0}, [2]int{0, 2})
		add(m.Tensor(dt, "a=3 row=2 col=17"), "reflect", 0, "a", [2]int{1, 2})
	}
	return list
}
