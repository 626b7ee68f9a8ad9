package optim

import "math"

// NAdam is Adam with Nesterov's momentum: with μₙ = β₁ · (1 - ½ · 0.96 ^ (n · momentum_decay)) and their product π, p
// -= lr · ((1 - μₙ) · g / (1 - π) + μₙ₊₁ · m / (1 - π · μₙ₊₁)) / (√v̂ + eps). weight_decay · p is added to the gradient
// first.
//
// As torch.optim.NAdam; Dozat, Incorporating Nesterov momentum into Adam (2016). Remembers twice as much as the
// parameters.
type NAdam struct {
	Betas         [2]float64 `arg:"betas=0.9 0.999"`
	Eps           float64    `arg:"eps=1e-8"`
	WeightDecay   float64    `arg:"weight_decay=0"`
	MomentumDecay float64    `arg:"momentum_decay=4e-3"`
	Maximize      bool       `arg:"maximize=false"`
}

var _ = declareRule[NAdam]("nadam", 2e-3)

func (a *NAdam) check(c *checks) {
	c.fraction("betas", a.Betas[:]...)
	c.atLeast0("eps", a.Eps)
	c.atLeast0("weight_decay", a.WeightDecay)
	c.atLeast0("momentum_decay", a.MomentumDecay)
}

func (a *NAdam) slots(*Param) []slot { return like("exp_avg", "exp_avg_sq") }

// numbers is 1 - π, so that it begins as 0.
func (a *NAdam) numbers() []string { return []string{"mu_rest"} }

func (a *NAdam) step(u *update) {
	mu := func(n int64) float64 { return a.Betas[0] * (1 - 0.5*math.Pow(0.96, float64(n)*a.MomentumDecay)) }
	now, next := mu(u.n), mu(u.n+1)
	product := (1 - u.numbers[0]) * now
	u.numbers[0] = 1 - product
	fresh, old := u.lr*(1-now)/(1-product), u.lr*next/(1-product*next)
	root := 1 / math.Sqrt(u.correction(a.Betas[1]))
	u.sweep(3, nadam[float32](a, fresh, old, root), nadam[float64](a, fresh, old, root))
}

func nadam[T float32 | float64](a *NAdam, ofNew, ofOld, correction float64) func(int, [][]T) {
	s, l2, b1, c1, b2, c2, eps := T(sign(a.Maximize)), T(a.WeightDecay), T(a.Betas[0]), T(1-a.Betas[0]), T(a.Betas[1]),
		T(1-a.Betas[1]), T(a.Eps)
	fresh, old, root := T(ofNew), T(ofOld), T(correction)
	return func(_ int, xs [][]T) {
		p, m, v := xs[0], xs[1], xs[2]
		for i, x := range xs[3] {
			x = T(x*s) + T(p[i]*l2)
			m[i] = T(m[i]*b1) + T(x*c1)
			v[i] = T(v[i]*b2) + T(T(x*x)*c2)
			d := T(T(math.Sqrt(float64(v[i])))*root) + eps
			p[i] -= (T(x*fresh) + T(m[i]*old)) / d
		}
	}
}
