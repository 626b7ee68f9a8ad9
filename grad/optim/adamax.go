package optim

import "math"

// Adamax is Adam by the greatest magnitude: m = β₁·m + (1 - β₁)·g, u = max(β₂·u, |g| + eps) and
// p -= lr / (1 - β₁ⁿ) · m / u. weight_decay · p is added to the gradient first.
//
// As torch.optim.Adamax; Kingma and Ba, Adam (2015), section 7. Remembers twice as much as the parameters.
type Adamax struct {
	Betas       [2]float64 `arg:"betas=0.9 0.999"`
	Eps         float64    `arg:"eps=1e-8"`
	WeightDecay float64    `arg:"weight_decay=0"`
	Maximize    bool       `arg:"maximize=false"`
}

var _ = declareRule[Adamax]("adamax", 2e-3)

func (a *Adamax) check(c *checks) {
	c.fraction("betas", a.Betas[:]...)
	c.atLeast0("eps", a.Eps)
	c.atLeast0("weight_decay", a.WeightDecay)
}

func (a *Adamax) slots(*Param) []slot { return like("exp_avg", "exp_inf") }

func (a *Adamax) step(u *update) {
	rate := u.lr / u.correction(a.Betas[0])
	u.sweep(3, adamax[float32](a, rate), adamax[float64](a, rate))
}

func adamax[T float32 | float64](a *Adamax, lr float64) func(int, [][]T) {
	s, l2, b1, c1 := T(sign(a.Maximize)), T(a.WeightDecay), T(a.Betas[0]), T(1-a.Betas[0])
	b2, eps, rate := T(a.Betas[1]), T(a.Eps), T(lr)
	return func(_ int, xs [][]T) {
		p, m, most := xs[0], xs[1], xs[2]
		for i, x := range xs[3] {
			x = T(x*s) + T(p[i]*l2)
			m[i] = T(m[i]*b1) + T(x*c1)
			most[i] = max(T(most[i]*b2), T(math.Abs(float64(x)))+eps)
			p[i] -= T(m[i] / most[i] * rate)
		}
	}
}
