package optim

import (
	"math"

	kernel "github.com/fucina-go/fucina/kernels/update"
)

// Adam keeps averages of the gradient and of its square,
//
//	m = β₁·m + (1 - β₁)·g        v = β₂·v + (1 - β₂)·g²
//
// and changes a parameter by lr · m̂ / (√v̂ + eps), where m̂ = m / (1 - β₁ⁿ) and v̂ = v / (1 - β₂ⁿ) in step n.
// weight_decay · p is added to the gradient first. With amsgrad, the greatest v so far takes its place; maximize
// climbs instead.
//
// As torch.optim.Adam; Kingma and Ba, Adam: a method for stochastic optimization (2015). Remembers twice as much as
// the parameters, with amsgrad three times. One pass over memory.
type Adam struct {
	Betas       [2]float64 `arg:"betas=0.9 0.999"`
	Eps         float64    `arg:"eps=1e-8"`
	WeightDecay float64    `arg:"weight_decay=0"`
	AMSGrad     bool       `arg:"amsgrad=false"`
	Maximize    bool       `arg:"maximize=false"`
}

var _ = declareRule[Adam]("adam", 1e-3)

func (a *Adam) check(c *checks) {
	c.fraction("betas", a.Betas[:]...)
	c.atLeast0("eps", a.Eps)
	c.atLeast0("weight_decay", a.WeightDecay)
}

func (a *Adam) slots(*Param) []slot {
	if a.AMSGrad {
		return like("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
	}
	return like("exp_avg", "exp_avg_sq")
}

func (a *Adam) step(u *update) { a.run(u, a.WeightDecay, 1) }

// run is the step with so much of the parameter added to the gradient, and the parameter times decay.
func (a *Adam) run(u *update, l2, decay float64) {
	k := kernel.Adam[float64]{Sign: sign(a.Maximize), L2: l2, Decay: decay, B1: a.Betas[0], C1: 1 - a.Betas[0],
		B2: a.Betas[1], C2: 1 - a.Betas[1], Root: 1 / math.Sqrt(u.correction(a.Betas[1])), Eps: a.Eps,
		Rate: u.lr / u.correction(a.Betas[0])}
	u.sweep(1+len(u.slots), moments[float32](k), moments[float64](k))
}

func moments[T kernel.Float](k kernel.Adam[float64]) func(int, [][]T) {
	c := kernel.Adam[T]{Sign: T(k.Sign), L2: T(k.L2), Decay: T(k.Decay), B1: T(k.B1), C1: T(k.C1), B2: T(k.B2),
		C2: T(k.C2), Root: T(k.Root), Eps: T(k.Eps), Rate: T(k.Rate)}
	return func(_ int, xs [][]T) {
		if len(xs) == 4 {
			c.Step(xs[0], xs[3], xs[1], xs[2])
		} else {
			c.StepMax(xs[0], xs[4], xs[1], xs[2], xs[3])
		}
	}
}
