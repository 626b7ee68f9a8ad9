package optim

import (
	"strings"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	kernel "github.com/fucina-go/fucina/kernels/update"
)

// matrix says how the axes of a parameter make the two of a matrix.
type matrix struct {
	rows, cols *axis.List // the parameter's axes
	m, n       int        // rows and columns
}

// matrixOf takes as rows those of the parameter's axes that rows lists, separated by spaces; if it has none of them, or
// no others, its first axis.
func matrixOf(p *Param, rows string) matrix {
	axes := p.Value.Axes()
	chosen := axis.Empty
	for _, name := range axes.Names() {
		for _, word := range strings.Fields(rows) {
			if name == word {
				chosen = chosen.Append(one(name))
			}
		}
	}
	if chosen.Len() == 0 || chosen.Len() == axes.Len() {
		chosen = one(axes.At(0))
	}
	x := matrix{rows: chosen, cols: axes.Without(chosen), m: 1, n: 1}
	for _, name := range x.rows.Names() {
		x.m *= p.Value.Size(name)
	}
	for _, name := range x.cols.Names() {
		x.n *= p.Value.Size(name)
	}
	return x
}

func one(name string) *axis.List {
	l, err := axis.Of(name)
	if err != nil {
		panic(err) // it is an axis already, or our own
	}
	return l
}

// flat is a tensor with the parameter's axes as a matrix with the axes row and col.
func (x *matrix) flat(t *core.Tensor) *core.Tensor {
	return t.Packed(x.rows.Append(x.cols)).Reshape(rowCol, x.m, x.n)
}

// back undoes flat: the axes are those of like.
func (x *matrix) back(t, like *core.Tensor) *core.Tensor {
	axes := x.rows.Append(x.cols)
	sizes := make([]int, axes.Len())
	for i, name := range axes.Names() {
		sizes[i] = like.Size(name)
	}
	return t.Packed(rowCol).Reshape(axes, sizes...).Packed(like.Axes())
}

var rowCol = one("row").Append(one("col"))

// wide is the gradient in the dtype in which the parameter changes.
func (u *update) wide() *core.Tensor {
	if u.g.DType() != u.p.DType() {
		return u.g.Cast(u.p.DType())
	}
	return u.g
}

// combine sets z to x·a + y·b.
func (u *update) combine(z, x, y *core.Tensor, a, b float64) {
	u.over(1, combined[float32](a, b), combined[float64](a, b), z, x, y)
}

func combined[T kernel.Float](a, b float64) func(int, [][]T) {
	return func(_ int, xs [][]T) { kernel.Combine(xs[0], xs[1], xs[2], T(a), T(b)) }
}
