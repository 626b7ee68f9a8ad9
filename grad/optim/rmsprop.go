package optim

import "math"

// RMSprop divides the gradient by the root of the average of its square: v = alpha · v + (1 - alpha) · g² and
// p -= lr · g / (√v + eps). centered takes √(v - a²), where a is the average of g. With momentum,
// b = momentum · b + g / (√v + eps) and p -= lr · b. weight_decay · p is added to the gradient first.
//
// As torch.optim.RMSprop. Remembers as much as the parameters; with momentum or centered as much again for each.
type RMSprop struct {
	Alpha       float64 `arg:"alpha=0.99"`
	Eps         float64 `arg:"eps=1e-8"`
	WeightDecay float64 `arg:"weight_decay=0"`
	Momentum    float64 `arg:"momentum=0"`
	Centered    bool    `arg:"centered=false"`
	Maximize    bool    `arg:"maximize=false"`
}

var _ = declareRule[RMSprop]("rmsprop", 0.01)

func (a *RMSprop) check(c *checks) {
	c.fraction("alpha", a.Alpha)
	c.atLeast0("eps", a.Eps)
	c.atLeast0("weight_decay", a.WeightDecay)
	c.atLeast0("momentum", a.Momentum)
}

func (a *RMSprop) slots(*Param) []slot {
	list := like("square_avg")
	if a.Momentum > 0 {
		list = append(list, slot{name: "momentum_buffer"})
	}
	if a.Centered {
		list = append(list, slot{name: "grad_avg"})
	}
	return list
}

func (a *RMSprop) step(u *update) {
	u.sweep(1+len(u.slots), rmsprop[float32](a, u.lr), rmsprop[float64](a, u.lr))
}

func rmsprop[T float32 | float64](a *RMSprop, lr float64) func(int, [][]T) {
	s, l2, alpha, fresh, eps := T(sign(a.Maximize)), T(a.WeightDecay), T(a.Alpha), T(1-a.Alpha), T(a.Eps)
	momentum, rate := T(a.Momentum), T(lr)
	return func(_ int, xs [][]T) {
		p, v, last := xs[0], xs[1], len(xs)-1
		for i, x := range xs[last] {
			x = T(x*s) + T(p[i]*l2)
			v[i] = T(v[i]*alpha) + T(T(x*x)*fresh)
			square := v[i]
			if a.Centered {
				avg := xs[last-1]
				avg[i] = T(avg[i]*alpha) + T(x*fresh)
				square -= T(avg[i] * avg[i])
			}
			x /= T(math.Sqrt(float64(square))) + eps
			if momentum > 0 {
				x += T(xs[2][i] * momentum)
				xs[2][i] = x
			}
			p[i] -= T(x * rate)
		}
	}
}
