package optim

import "math"

// Adagrad divides the gradient by the root of the sum of all its squares: v += g² and p -= lr · g / (√v + eps), where
// step n takes lr / (1 + (n - 1) · lr_decay). v begins as initial_accumulator_value. weight_decay · p is added to the
// gradient first.
//
// As torch.optim.Adagrad; Duchi, Hazan and Singer, Adaptive subgradient methods (2011). Remembers as much as the
// parameters.
type Adagrad struct {
	LRDecay     float64 `arg:"lr_decay=0"`
	WeightDecay float64 `arg:"weight_decay=0"`
	Initial     float64 `arg:"initial_accumulator_value=0"`
	Eps         float64 `arg:"eps=1e-10"`
	Maximize    bool    `arg:"maximize=false"`
}

var _ = declareRule[Adagrad]("adagrad", 0.01)

func (a *Adagrad) check(c *checks) {
	c.atLeast0("lr_decay", a.LRDecay)
	c.atLeast0("weight_decay", a.WeightDecay)
	c.atLeast0("initial_accumulator_value", a.Initial)
	c.atLeast0("eps", a.Eps)
}

func (a *Adagrad) slots(*Param) []slot { return like("sum") }

func (a *Adagrad) step(u *update) {
	rate, begin := u.lr/(1+float64(u.n-1)*a.LRDecay), 0.0
	if u.n == 1 {
		begin = a.Initial
	}
	u.sweep(2, adagrad[float32](a, rate, begin), adagrad[float64](a, rate, begin))
}

func adagrad[T float32 | float64](a *Adagrad, lr, begin float64) func(int, [][]T) {
	s, l2, eps, rate, more := T(sign(a.Maximize)), T(a.WeightDecay), T(a.Eps), T(lr), T(begin)
	return func(_ int, xs [][]T) {
		p, v := xs[0], xs[1]
		for i, x := range xs[2] {
			x = T(x*s) + T(p[i]*l2)
			v[i] += more + T(x*x)
			p[i] -= T(x / (T(math.Sqrt(float64(v[i]))) + eps) * rate)
		}
	}
}
