package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// Triangle is the argument struct of operations that keep the elements on one side of a diagonal of two
// axes, rows and columns, and put 0 elsewhere.
type Triangle struct {
	X        *Tensor `arg:"x"`
	Axes     Axes    `arg:"axes"`
	Diagonal int     `arg:"diagonal=0"`
}

// Tril keeps the elements on and below a diagonal of two axes, the rows and the columns; the others become 0.
//
// Shape: x[…, row, …, col, …] → y of x's axes; y is x where col - row <= diagonal.
//
// Errors: other than two axes; an axis that x lacks.
//
// Example:
//
//	ones(row=3, col=3).tril("row col")
type Tril struct{ Triangle }

// Triu keeps the elements on and above a diagonal of two axes, the rows and the columns; the others become 0.
//
// Shape: x[…, row, …, col, …] → y of x's axes; y is x where col - row >= diagonal.
//
// Errors: other than two axes; an axis that x lacks.
//
// Example:
//
//	ones(row=3, col=3).triu("row col", diagonal=1)
type Triu struct{ Triangle }

var (
	tril = Declare[Tril]("tril")
	triu = Declare[Triu]("triu")
)

// Tril keeps the elements on and below a diagonal; see the Tril operation.
func (x *Tensor) Tril(axes string, diagonal int) *Tensor {
	return tril.Call(Tril{Triangle{X: x, Axes: axisList(axes), Diagonal: diagonal}})
}

// Triu keeps the elements on and above a diagonal; see the Triu operation.
func (x *Tensor) Triu(axes string, diagonal int) *Tensor {
	return triu.Call(Triu{Triangle{X: x, Axes: axisList(axes), Diagonal: diagonal}})
}

// Names keeps the axes.
func (a *Triangle) Names(p *Plan) {
	p.needTwo(a.X, a.Axes)
	p.Out(a.X.axes, a.X.dtype)
}

// needTwo insists on two axes of x, the rows and the columns.
func (p *Plan) needTwo(x *Tensor, axes Axes) {
	p.NeedAll(x, axes)
	if axes.Len() != 2 {
		first := axes.Append(x.axes).Names()
		code := fmt.Sprintf("x.%s(\"row col\")", p.c.info.Name)
		if len(first) >= 2 {
			code = fmt.Sprintf("x.%s(\"%s %s\")", p.c.info.Name, first[0], first[1])
		}
		p.Fail(fmt.Sprintf("got %d axes of %s, want two", axes.Len(), p.Describe(x)), "the rows and the columns: "+code)
	}
}

// Eval keeps what lies below.
func (a *Tril) Eval(c *Ctx) { a.eval(c, true) }

// Eval keeps what lies above.
func (a *Triu) Eval(c *Ctx) { a.eval(c, false) }

func (a *Triangle) eval(c *Ctx, below bool) {
	out := c.Out(0)
	if out.Len() == 0 {
		return
	}
	c.copyInto(out, a.X)
	// The elements kept along the last axis are one range, which is said in terms of that axis.
	last := len(out.sizes) - 1
	rows, cols := out.axes.Index(a.Axes.At(0)), out.axes.Index(a.Axes.At(1))
	n, size := out.sizes[last], out.dtype.Size()
	c.Split(out.Len()/n, max(1, pointGrain/n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from, to := a.kept(placeIn(out, rows, i), placeIn(out, cols, i), n, rows == last, cols == last, below)
			elements := row[byte](out, i, n*size)
			clear(elements[:from*size])
			clear(elements[to*size:])
		}
	})
}

// placeIn is the place along axis k of run i of the last axis; 0 for that axis itself.
func placeIn(t *Tensor, k, i int) int {
	for j := len(t.sizes) - 2; j > k; j-- {
		i /= t.sizes[j]
	}
	if k == len(t.sizes)-1 {
		return 0
	}
	return i % t.sizes[k]
}

// kept is the range of the n elements along the last axis to be kept, where r is the row and c the column, of
// which the last axis may be one.
func (a *Triangle) kept(r, c, n int, isRows, isCols, below bool) (from, to int) {
	within := func(i int) int { return min(max(i, 0), n) }
	switch {
	case isCols && below:
		return 0, within(r + a.Diagonal + 1)
	case isCols:
		return within(r + a.Diagonal), n
	case isRows && below:
		return within(c - a.Diagonal), n
	case isRows:
		return 0, within(c - a.Diagonal + 1)
	case below == (c-r <= a.Diagonal) || c-r == a.Diagonal:
		return 0, n
	}
	return n, n
}

// Saves nothing.
func (*Triangle) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP keeps the same part of gy.
func (a *Tril) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, tril.Call(Tril{Triangle{gy[0], a.Axes, a.Diagonal}}))
}

// VJP keeps the same part of gy.
func (a *Triu) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, triu.Call(Triu{Triangle{gy[0], a.Axes, a.Diagonal}}))
}

// Samples covers the lengths, either axis or another one last, diagonals inside and outside, and the dtypes.
func (*Tril) Samples(m *Maker) (list []Tril) {
	for _, t := range triangles(m) {
		list = append(list, Tril{t})
	}
	return list
}

// Samples covers the lengths, either axis or another one last, diagonals inside and outside, and the dtypes.
func (*Triu) Samples(m *Maker) (list []Triu) {
	for _, t := range triangles(m) {
		list = append(list, Triu{t})
	}
	return list
}

func triangles(m *Maker) (list []Triangle) {
	axes := axisList("a", "b")
	for _, n := range lengths {
		list = append(list, Triangle{X: m.Tensor(dtype.F32, "row=2 a=5 b=%d", n), Axes: axes, Diagonal: 1})
	}
	for _, d := range []int{-9, -2, 0, 3, 9} {
		for _, shape := range []string{"a=4 b=6", "b=6 a=4", "a=4 b=6 row=3"} {
			list = append(list, Triangle{X: m.Tensor(dtype.F32, shape), Axes: axes, Diagonal: d})
		}
	}
	for _, dt := range allDTypes {
		list = append(list, Triangle{X: m.Tensor(dt, "a=5 row=2 b=17"), Axes: axes})
	}
	return list
}
