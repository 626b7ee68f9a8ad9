package optim

import (
	"math"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/rng"
)

// APOLLO is Adam with the memory of SGD for matrices. The gradient is projected to rank rows or columns by a random
// matrix, R = G·Pᵀ, or Pᵀ·G if the matrix is wider than high; Adam's averages are kept of R alone. How much Adam would
// scale R says how the gradient is scaled: each channel for itself (scale_type "channel", a channel being a row, of a
// wide matrix a column) or as a whole ("tensor"), then by √scale. The norm of that may grow by 1 % a step at most
// (limiter). After the step the parameter is multiplied by 1 - lr · weight_decay. A new P is drawn every
// update_proj_gap steps, from seed and the place of the parameter.
//
// Parameters with one axis, or none, change as by AdamW whose eps is added to √v before v is corrected. The rows of a
// tensor with more than two axes are its first, or those that rows lists. optim.apollo(..., rank=1, scale=128,
// scale_type="tensor") is APOLLO-Mini, which is optim.apollo_mini.
//
// As the program of Zhu and others, APOLLO: SGD-like memory, AdamW-level performance (2024). Remembers, of an m × n
// matrix with m ≤ n, 2 · n · rank numbers and one.
type APOLLO struct {
	Rank          int        `arg:"rank=256"`
	UpdateProjGap int        `arg:"update_proj_gap=200"`
	Scale         float64    `arg:"scale=1"`
	ScaleType     string     `arg:"scale_type=channel" enum:"channel tensor"`
	Betas         [2]float64 `arg:"betas=0.9 0.999"`
	Eps           float64    `arg:"eps=1e-6"`
	WeightDecay   float64    `arg:"weight_decay=0"`
	Limiter       bool       `arg:"limiter=true"`
	ScaleFront    bool       `arg:"scale_front=false"`
	Seed          int        `arg:"seed=0"`
	Rows          string     `arg:"rows="`

	projection func(n int64) [][]float64 // in tests: P of step n
}

var _ = declareRule[APOLLO]("apollo", 0.01)

func (a *APOLLO) check(c *checks) {
	c.want(a.Rank > 0, "rank", a.Rank, "a number above 0")
	c.want(a.UpdateProjGap > 0, "update_proj_gap", a.UpdateProjGap, "a number of steps above 0")
	c.atLeast0("scale", a.Scale)
	c.oneOf("scale_type", a.ScaleType, "channel tensor")
	c.fraction("betas", a.Betas[:]...)
	c.atLeast0("eps", a.Eps)
	c.atLeast0("weight_decay", a.WeightDecay)
}

// sides is the matrix, its rank, and the axis along which channels are counted and the one that is projected away.
func (a *APOLLO) sides(p *Param) (x matrix, rank int, channel, other string) {
	x = matrixOf(p, a.Rows)
	channel, other = "row", "col"
	if x.m < x.n {
		channel, other = other, channel
	}
	return x, min(a.Rank, x.m, x.n), channel, other
}

func (a *APOLLO) slots(p *Param) []slot {
	if p.Value.Rank() < 2 {
		return like("exp_avg", "exp_avg_sq")
	}
	x, rank, channel, _ := a.sides(p)
	axes, sizes := one(channel).Append(one("rank")), []int{max(x.m, x.n), rank}
	return []slot{{"exp_avg", axes, sizes}, {"exp_avg_sq", axes, sizes}}
}

func (a *APOLLO) numbers() []string { return []string{"norm"} }

// scratch: the gradient in another order and dtype, scaled, and put back, P, and what comes of R.
func (a *APOLLO) scratch(p *Param) int {
	if p.Value.Rank() < 2 {
		return 0
	}
	x, rank, _, _ := a.sides(p)
	return 4*p.Value.Len() + rank*min(x.m, x.n) + 5*rank*max(x.m, x.n)
}

func (a *APOLLO) step(u *update) {
	s := u.env.Open()
	defer s.Close()
	root := math.Sqrt(u.correction(a.Betas[1]))
	rate := u.lr * root / u.correction(a.Betas[0])
	if u.param.Value.Rank() < 2 {
		plain := Adam{Betas: a.Betas, Eps: a.Eps / root}
		plain.run(u, 0, 1) // √v·(1/root) + eps/root is (√v + eps)/root
	} else {
		a.scaled(u, rate)
	}
	if a.WeightDecay > 0 {
		u.combine(u.p, u.p, u.p, 1-u.lr*a.WeightDecay, 0)
	}
}

// scaled is the step of a matrix.
func (a *APOLLO) scaled(u *update, rate float64) {
	x, rank, _, other := a.sides(u.param)
	g := x.flat(u.wide())
	r := g.Dot(a.project(u, rank, other, g.Size(other)), other).Packed(u.slots[0].Axes())
	by := u.env.Scratch(r.DType(), r.Axes(), r.Sizes()...)
	u.over(3, averaged[float32](a), averaged[float64](a), by, u.slots[0], u.slots[1], r)
	h := u.env.Scratch(g.DType(), rowCol, x.m, x.n)
	front, back := 1.0, math.Sqrt(a.Scale)
	if a.ScaleFront {
		front, back = back, 1
	}
	if a.ScaleType == "tensor" {
		u.combine(h, g, g, norm(u.env, by)/(norm(u.env, r)+1e-8)*front, 0)
	} else {
		eps := core.Number(u.env, 1e-8, 0, false)
		scale := by.Square().Sum("rank").Sqrt().Div(r.Square().Sum("rank").Sqrt().Add(eps))
		g = g.Mul(scale).Packed(rowCol)
		u.combine(h, g, g, front, 0)
	}
	grown := norm(u.env, h)
	shrink := 1.0
	if before := u.numbers[0]; a.Limiter {
		if u.n > 1 {
			shrink = max(grown/(before+1e-8), 1.01) / 1.01
		}
		u.numbers[0] = grown / shrink
	}
	u.combine(u.p, u.p, x.back(h, u.p), 1, -rate*back/shrink)
}

// averaged updates m and v by r and sets the first to m / (√v + eps).
func averaged[T float32 | float64](a *APOLLO) func(int, [][]T) {
	b1, c1, b2, c2, eps := T(a.Betas[0]), T(1-a.Betas[0]), T(a.Betas[1]), T(1-a.Betas[1]), T(a.Eps)
	return func(_ int, xs [][]T) {
		by, m, v, r := xs[0], xs[1], xs[2], xs[3]
		for i, x := range r {
			m[i] = T(m[i]*b1) + T(x*c1)
			v[i] = T(v[i]*b2) + T(T(x*x)*c2)
			by[i] = m[i] / (T(math.Sqrt(float64(v[i]))) + eps)
		}
	}
}

// project is P[rank, other] of this step: independent normal numbers of variance 1/rank.
func (a *APOLLO) project(u *update, rank int, other string, n int) *core.Tensor {
	p := u.env.Scratch(u.p.DType(), one("rank").Append(one(other)), rank, n)
	draw := func(i int) float64 {
		return rng.Normal(uint64(a.Seed), uint64(u.index)<<32|uint64((u.n-1)/int64(a.UpdateProjGap)), uint64(i)) /
			math.Sqrt(float64(rank))
	}
	if a.projection != nil {
		list := a.projection(u.n)
		draw = func(i int) float64 {
			if other == "row" { // given as P[row, rank]
				return list[i%n][i/n]
			}
			return list[i/n][i%n]
		}
	}
	u.over(1, drawn[float32](draw), drawn[float64](draw), p)
	return p
}

func drawn[T float32 | float64](draw func(i int) float64) func(int, [][]T) {
	return func(at int, xs [][]T) {
		for i := range xs[0] {
			xs[0][i] = T(draw(at + i))
		}
	}
}
