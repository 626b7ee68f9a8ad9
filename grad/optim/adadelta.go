package optim

import "math"

// Adadelta keeps v = rho · v + (1 - rho) · g² and w = rho · w + (1 - rho) · d², where d = g · √(w + eps) / √(v + eps)
// is what it subtracts, times lr. weight_decay · p is added to the gradient first.
//
// As torch.optim.Adadelta; Zeiler, ADADELTA: an adaptive learning rate method (2012). Remembers twice as much as the
// parameters.
type Adadelta struct {
	Rho         float64 `arg:"rho=0.9"`
	Eps         float64 `arg:"eps=1e-6"`
	WeightDecay float64 `arg:"weight_decay=0"`
	Maximize    bool    `arg:"maximize=false"`
}

var _ = declareRule[Adadelta]("adadelta", 1)

func (a *Adadelta) check(c *checks) {
	c.fraction("rho", a.Rho)
	c.atLeast0("eps", a.Eps)
	c.atLeast0("weight_decay", a.WeightDecay)
}

func (a *Adadelta) slots(*Param) []slot { return like("square_avg", "acc_delta") }

func (a *Adadelta) step(u *update) {
	u.sweep(3, adadelta[float32](a, u.lr), adadelta[float64](a, u.lr))
}

func adadelta[T float32 | float64](a *Adadelta, lr float64) func(int, [][]T) {
	s, l2, rho, fresh, eps, rate := T(sign(a.Maximize)), T(a.WeightDecay), T(a.Rho), T(1-a.Rho), T(a.Eps), T(lr)
	root := func(x T) T { return T(math.Sqrt(float64(x))) }
	return func(_ int, xs [][]T) {
		p, v, w := xs[0], xs[1], xs[2]
		for i, x := range xs[3] {
			x = T(x*s) + T(p[i]*l2)
			v[i] = T(v[i]*rho) + T(T(x*x)*fresh)
			d := T(root(w[i]+eps) / root(v[i]+eps) * x)
			w[i] = T(w[i]*rho) + T(T(d*d)*fresh)
			p[i] -= T(d * rate)
		}
	}
}
