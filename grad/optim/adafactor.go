package optim

import (
	"math"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
)

// Adafactor keeps, of the squares of a matrix's gradient, the averages of rows and of columns only: with f = n ^
// beta2_decay in step n, average += f · (mean - average), and their product over the mean of the rows stands for v. The
// update g / √v is divided by its root mean square, if that is above clipping, and goes in with min(lr, 1/√n) ·
// max(eps, root mean square of the parameter). Before, the parameter is multiplied by 1 - lr · weight_decay. maximize
// climbs instead.
//
// The rows of a tensor with more than two axes are its first, or those that rows lists; of one with one axis, or none,
// the average is kept as it is. As torch.optim.Adafactor, of matrices; Shazeer and Stern, Adafactor: adaptive learning
// rates with sublinear memory cost (2018). Remembers m + n numbers of an m × n matrix.
type Adafactor struct {
	Beta2Decay  float64 `arg:"beta2_decay=-0.8"`
	Eps         float64 `arg:"eps=1e-3"`
	Clipping    float64 `arg:"clipping=1"`
	WeightDecay float64 `arg:"weight_decay=0"`
	Maximize    bool    `arg:"maximize=false"`
	Rows        string  `arg:"rows="`
}

var _ = declareRule[Adafactor]("adafactor", 0.01)

func (a *Adafactor) check(c *checks) {
	c.want(a.Beta2Decay <= 0, "beta2_decay", a.Beta2Decay, "a number of at most 0")
	c.atLeast0("eps", a.Eps)
	c.want(a.Clipping > 0, "clipping", a.Clipping, "a number above 0")
	c.atLeast0("weight_decay", a.WeightDecay)
}

func (a *Adafactor) slots(p *Param) []slot {
	if p.Value.Rank() < 2 {
		return like("variance")
	}
	x := matrixOf(p, a.Rows)
	return []slot{{"row_var", one("row"), []int{x.m}}, {"col_var", one("col"), []int{x.n}}}
}

// scratch: the gradient in another order and dtype, its square, v, the update and that put back.
func (a *Adafactor) scratch(p *Param) int { return 6 * p.Value.Len() }

func (a *Adafactor) step(u *update) {
	s := u.env.Open()
	defer s.Close()
	fresh := math.Pow(float64(u.n), a.Beta2Decay)
	count := float64(u.p.Len())
	alpha := min(u.lr, 1/math.Sqrt(float64(u.n))) * max(a.Eps, norm(u.env, u.p)/math.Sqrt(count))
	g, square := u.wide(), u.slots[0]
	var x matrix
	if u.p.Rank() >= 2 {
		x = matrixOf(u.param, a.Rows)
		g = x.flat(g)
		square = a.factored(u, g, fresh)
	} else {
		u.combine(square, square, g.Square(), 1-fresh, fresh)
	}
	by := u.env.Scratch(g.DType(), g.Axes(), g.Sizes()...)
	u.over(1, divided[float32](u.least()), divided[float64](u.least()), by, g, square)
	rms := norm(u.env, by) / math.Sqrt(count)
	if x.rows != nil {
		by = x.back(by, u.p)
	}
	u.combine(u.p, u.p, by, 1-u.lr*a.WeightDecay, -sign(a.Maximize)*alpha/max(1, rms/a.Clipping))
}

// factored updates the averages of rows and columns and returns what stands for v.
func (a *Adafactor) factored(u *update, g *core.Tensor, fresh float64) *core.Tensor {
	row, col := u.slots[0], u.slots[1]
	square := g.Square()
	u.combine(row, row, square.Mean("col"), 1-fresh, fresh)
	u.combine(col, col, square.Mean("row"), 1-fresh, fresh)
	return row.Outer(col.Div(row.Mean().Maximum(core.Number(u.env, u.least(), 0, false))))
}

// least is the distance from 1 to the next number.
func (u *update) least() float64 {
	if u.p.DType() == dtype.F64 {
		return 0x1p-52
	}
	return 0x1p-23
}

// divided is g / √max(v, least²).
func divided[T float32 | float64](least float64) func(int, [][]T) {
	return func(_ int, xs [][]T) {
		for i, v := range xs[2] {
			xs[0][i] = xs[1][i] / T(math.Sqrt(float64(max(v, T(least*least)))))
		}
	}
}
