package optim

import "math"

// RAdam is Adam whose division by √v̂ begins when the variance of that is bounded, and then grows: with
// ρ = ρ∞ - 2n·β₂ⁿ / (1 - β₂ⁿ) and ρ∞ = 2 / (1 - β₂) - 1, steps of ρ ≤ 5 are p -= lr · m̂, later ones times
// √((ρ-4)(ρ-2)ρ∞ / ((ρ∞-4)(ρ∞-2)ρ)) · √(1 - β₂ⁿ) / (√v + eps). weight_decay · p is added to the gradient first.
//
// As torch.optim.RAdam; Liu and others, On the variance of the adaptive learning rate and beyond (2020). Remembers
// twice as much as the parameters.
type RAdam struct {
	Betas       [2]float64 `arg:"betas=0.9 0.999"`
	Eps         float64    `arg:"eps=1e-8"`
	WeightDecay float64    `arg:"weight_decay=0"`
	Maximize    bool       `arg:"maximize=false"`
}

var _ = declareRule[RAdam]("radam", 1e-3)

func (a *RAdam) check(c *checks) {
	c.fraction("betas", a.Betas[:]...)
	c.atLeast0("eps", a.Eps)
	c.atLeast0("weight_decay", a.WeightDecay)
}

func (a *RAdam) slots(*Param) []slot { return like("exp_avg", "exp_avg_sq") }

func (a *RAdam) step(u *update) {
	b2 := a.Betas[1]
	limit := 2/(1-b2) - 1
	rho := limit - 2*float64(u.n)*math.Pow(b2, float64(u.n))/u.correction(b2)
	rate, divide := u.lr/u.correction(a.Betas[0]), rho > 5
	if divide {
		rate *= math.Sqrt((rho-4)*(rho-2)*limit/((limit-4)*(limit-2)*rho)) * math.Sqrt(u.correction(b2))
	}
	u.sweep(3, radam[float32](a, rate, divide), radam[float64](a, rate, divide))
}

func radam[T float32 | float64](a *RAdam, lr float64, divide bool) func(int, [][]T) {
	s, l2, b1, c1, b2, c2, eps := T(sign(a.Maximize)), T(a.WeightDecay), T(a.Betas[0]), T(1-a.Betas[0]), T(a.Betas[1]),
		T(1-a.Betas[1]), T(a.Eps)
	rate := T(lr)
	return func(_ int, xs [][]T) {
		p, m, v := xs[0], xs[1], xs[2]
		for i, x := range xs[3] {
			x = T(x*s) + T(p[i]*l2)
			m[i] = T(m[i]*b1) + T(x*c1)
			v[i] = T(v[i]*b2) + T(T(x*x)*c2)
			d := m[i]
			if divide {
				d /= T(math.Sqrt(float64(v[i]))) + eps
			}
			p[i] -= T(d * rate)
		}
	}
}
