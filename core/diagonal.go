package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// Diagonal is the elements on a diagonal of two axes, the rows and the columns, along one axis. It is a view.
//
// Shape: x[…, row=n, …, col=m, …] → y[…, out=number of places], out being the last axis and called as the
// rows unless given. Place i is row i and column i + offset, or row i - offset and column i.
//
// Errors: other than two axes; an axis that x lacks; an out that the result has already.
//
// Example:
//
//	tensor([[1, 2], [3, 4]], "row col").diagonal("row col")
type Diagonal struct {
	X      *Tensor `arg:"x"`
	Axes   Axes    `arg:"axes"`
	Offset int     `arg:"offset=0"`
	Out    Axis    `arg:"out?"`
}

var diagonal = Declare[Diagonal]("diagonal")

// Diagonal is the main diagonal of two axes, called as the first of them; see the Diagonal operation.
func (x *Tensor) Diagonal(axes string) *Tensor {
	return diagonal.Call(Diagonal{X: x, Axes: axisList(axes)})
}

func (a *Diagonal) out() string {
	if a.Out != "" {
		return string(a.Out)
	}
	return a.Axes.At(0)
}

// Names puts the new axis last.
func (a *Diagonal) Names(p *Plan) {
	p.needTwo(a.X, a.Axes)
	rest := a.X.axes.Without(a.Axes)
	if rest.Has(a.out()) {
		fixed := *a
		fixed.Out = Axis(freshNames(axisList(a.out()), a.X.axes)[0])
		p.Fail(fmt.Sprintf("%s has the axis %q already", p.Describe(a.X), a.out()),
			p.c.hint(p.c.recall("choose another name", &fixed)))
	}
	p.Out(rest.Append(axisList(a.out())), a.X.dtype)
}

// Sizes counts the places.
func (a *Diagonal) Sizes(s *Sizes) {
	_, _, n := a.begin()
	s.Set(0, a.out(), n)
}

// begin is the first place on the diagonal and the number of places.
func (a *Diagonal) begin() (row, col, n int) {
	row, col = max(0, -a.Offset), max(0, a.Offset)
	n = min(a.X.Size(a.Axes.At(0))-row, a.X.Size(a.Axes.At(1))-col)
	return row, col, max(0, n)
}

// View walks along both axes at once.
func (a *Diagonal) View(v *View) bool {
	x := a.X
	rows, cols := x.strides[x.axes.Index(a.Axes.At(0))], x.strides[x.axes.Index(a.Axes.At(1))]
	for k, name := range v.out.axes.Names() {
		if name == a.out() {
			v.Stride(k, rows+cols)
			continue
		}
		v.Stride(k, x.strides[x.axes.Index(name)])
	}
	row, col, _ := a.begin()
	v.Alias(x, row*rows+col*cols)
	return true
}

// Saves nothing.
func (*Diagonal) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP puts gy on the diagonal of zeros: in the rows laid end to end, its places are evenly spaced.
func (a *Diagonal) VJP(_, gy []*Tensor, g *Grads) {
	rest := a.X.axes.Without(a.Axes)
	flat := unused(rest, a.out())
	cols := a.X.Size(a.Axes.At(1))
	axes := rest.Append(axisList(flat))
	sizes := append(a.X.sized(rest).Values, volume(a.X, a.Axes))
	row, col, n := a.begin()
	start, step := row*cols+col, cols+1
	stop := start + max(0, n-1)*step + min(n, 1)
	gx := set.Call(Set{X: gy[0].env.Zeros(gy[0].dtype, axes, sizes...), V: gy[0].Rename(a.out(), flat),
		Ranges: Map[Range]{axisList(flat), []Range{{&start, &stop, &step}}}})
	g.Set(0, split.Call(Split{X: gx, Axis: Axis(flat), Into: a.X.sized(a.Axes)}))
}

// Samples covers the lengths, offsets to both sides and beyond, an axis between the two, and the dtypes.
func (*Diagonal) Samples(m *Maker) (list []Diagonal) {
	axes := axisList("a", "b")
	for _, n := range lengths {
		list = append(list, Diagonal{X: m.Tensor(dtype.F32, "row=2 a=%d b=17", n), Axes: axes})
	}
	for _, offset := range []int{-5, -2, 1, 5, 9} {
		list = append(list, Diagonal{X: m.Tensor(dtype.F32, "b=6 row=3 a=4"), Axes: axes, Offset: offset, Out: "c"})
	}
	for _, dt := range allDTypes {
		list = append(list, Diagonal{X: m.Tensor(dt, "a=5 row=2 b=17"), Axes: axes},
			Diagonal{X: m.Tensor(dt, "b=5 a=4"), Axes: axes})
	}
	return list
}
