package optim

import kernel "github.com/fucina-go/fucina/kernels/update"

// Lion changes every element by lr, in the direction of sign(β₁·m + (1 - β₁)·g), after the parameter was multiplied by
// 1 - lr · weight_decay; then m = β₂·m + (1 - β₂)·g. Its learning rate is 3 to 10 times smaller than AdamW's, its
// weight decay as much larger. maximize climbs instead.
//
// Chen and others, Symbolic discovery of optimization algorithms (2023). Remembers as much as the parameters.
type Lion struct {
	Betas       [2]float64 `arg:"betas=0.9 0.99"`
	WeightDecay float64    `arg:"weight_decay=0"`
	Maximize    bool       `arg:"maximize=false"`
}

var _ = declareRule[Lion]("lion", 1e-4)

func (a *Lion) check(c *checks) {
	c.fraction("betas", a.Betas[:]...)
	c.atLeast0("weight_decay", a.WeightDecay)
}

func (a *Lion) slots(*Param) []slot { return like("exp_avg") }

func (a *Lion) step(u *update) {
	k := kernel.Lion[float64]{Sign: sign(a.Maximize), Decay: 1 - u.lr*a.WeightDecay, B1: a.Betas[0], C1: 1 - a.Betas[0],
		B2: a.Betas[1], C2: 1 - a.Betas[1], Rate: u.lr}
	u.sweep(2, directions[float32](k), directions[float64](k))
}

func directions[T kernel.Float](k kernel.Lion[float64]) func(int, [][]T) {
	c := kernel.Lion[T]{Sign: T(k.Sign), Decay: T(k.Decay), B1: T(k.B1), C1: T(k.C1), B2: T(k.B2), C2: T(k.C2),
		Rate: T(k.Rate)}
	return func(_ int, xs [][]T) { c.Step(xs[0], xs[2], xs[1]) }
}
