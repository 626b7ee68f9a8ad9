package optim

import "math"

// Rprop looks at the sign of the gradient only. Every element has a step size of its own, at first lr, which is
// multiplied by etas[1] where the sign is that of the step before, and by etas[0] where it turned, within step_sizes;
// where it turned the element stays this time. It is for gradients of all data, not of batches.
//
// As torch.optim.Rprop; Riedmiller and Braun, A direct adaptive method for faster backpropagation learning (1993).
// Remembers twice as much as the parameters.
type Rprop struct {
	Etas      [2]float64 `arg:"etas=0.5 1.2"`
	StepSizes [2]float64 `arg:"step_sizes=1e-6 50"`
	Maximize  bool       `arg:"maximize=false"`
}

var _ = declareRule[Rprop]("rprop", 0.01)

func (a *Rprop) check(c *checks) {
	c.want(a.Etas[0] > 0 && a.Etas[0] < 1 && a.Etas[1] > 1, "etas", a.Etas, "a number between 0 and 1 and one above 1")
	c.want(a.StepSizes[0] >= 0 && a.StepSizes[1] >= a.StepSizes[0], "step_sizes", a.StepSizes,
		"the least and the greatest")
}

func (a *Rprop) slots(*Param) []slot { return like("prev", "step_size") }

func (a *Rprop) step(u *update) {
	begin := math.NaN()
	if u.n == 1 {
		begin = u.lr
	}
	u.sweep(3, rprop[float32](a, begin), rprop[float64](a, begin))
}

func rprop[T float32 | float64](a *Rprop, begin float64) func(int, [][]T) {
	s, less, more, least, most := T(sign(a.Maximize)), T(a.Etas[0]), T(a.Etas[1]), T(a.StepSizes[0]), T(a.StepSizes[1])
	return func(_ int, xs [][]T) {
		p, prev, size := xs[0], xs[1], xs[2]
		for i, x := range xs[3] {
			x *= s
			if begin == begin {
				size[i] = T(begin)
			}
			switch turn := T(x * prev[i]); {
			case turn > 0:
				size[i] = min(T(size[i]*more), most)
			case turn < 0:
				size[i] = max(T(size[i]*less), least)
				x = 0
			}
			switch {
			case x > 0:
				p[i] -= size[i]
			case x < 0:
				p[i] += size[i]
			}
			prev[i] = x
		}
	}
}
