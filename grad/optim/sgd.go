package optim

import kernel "github.com/fucina-go/fucina/kernels/update"

// SGD is stochastic gradient descent: p -= lr · g. weight_decay · p is added to the gradient first. With momentum, the
// first step keeps b = g, the later ones b = momentum · b + (1 - dampening) · g, and b takes the place of g; with
// nesterov, g + momentum · b does. maximize climbs instead.
//
// As torch.optim.SGD. Remembers, with momentum, as much as the parameters.
type SGD struct {
	Momentum    float64 `arg:"momentum=0"`
	Dampening   float64 `arg:"dampening=0"`
	WeightDecay float64 `arg:"weight_decay=0"`
	Nesterov    bool    `arg:"nesterov=false"`
	Maximize    bool    `arg:"maximize=false"`
}

var _ = declareRule[SGD]("sgd", 1e-3)

func (a *SGD) check(c *checks) {
	c.atLeast0("momentum", a.Momentum)
	c.atLeast0("weight_decay", a.WeightDecay)
	c.want(!a.Nesterov || a.Momentum > 0 && a.Dampening == 0, "nesterov", a.Nesterov,
		"it only with a momentum and without dampening")
}

func (a *SGD) slots(*Param) []slot {
	if a.Momentum == 0 {
		return nil
	}
	return like("momentum_buffer")
}

func (a *SGD) step(u *update) {
	k := kernel.SGD[float64]{Sign: sign(a.Maximize), L2: a.WeightDecay, Keep: a.Momentum, Add: 1 - a.Dampening, Old: 1,
		Rate: u.lr}
	if u.n == 1 {
		k.Keep, k.Add = 0, 1
	}
	if a.Nesterov {
		k.Fresh, k.Old = 1, a.Momentum
	}
	u.sweep(1+len(u.slots), descend[float32](k), descend[float64](k))
}

func descend[T kernel.Float](k kernel.SGD[float64]) func(int, [][]T) {
	c := kernel.SGD[T]{Sign: T(k.Sign), L2: T(k.L2), Keep: T(k.Keep), Add: T(k.Add), Fresh: T(k.Fresh), Old: T(k.Old),
		Rate: T(k.Rate)}
	return func(_ int, xs [][]T) {
		if len(xs) == 2 {
			c.Step(xs[0], xs[1])
		} else {
			c.Momentum(xs[0], xs[2], xs[1])
		}
	}
}
