package optim

// AdamW is Adam whose weight decay is no part of the gradient: a parameter is first multiplied by
// 1 - lr · weight_decay.
//
// As torch.optim.AdamW; Loshchilov and Hutter, Decoupled weight decay regularization (2019). Memory as Adam.
type AdamW struct {
	Betas       [2]float64 `arg:"betas=0.9 0.999"`
	Eps         float64    `arg:"eps=1e-8"`
	WeightDecay float64    `arg:"weight_decay=0.01"`
	AMSGrad     bool       `arg:"amsgrad=false"`
	Maximize    bool       `arg:"maximize=false"`
}

var _ = declareRule[AdamW]("adamw", 1e-3)

func (a *AdamW) check(c *checks)       { (*Adam)(a).check(c) }
func (a *AdamW) slots(p *Param) []slot { return (*Adam)(a).slots(p) }
func (a *AdamW) step(u *update)        { (*Adam)(a).run(u, 0, 1-u.lr*a.WeightDecay) }
