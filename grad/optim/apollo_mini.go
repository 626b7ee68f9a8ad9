package optim

// APOLLOMini is APOLLO of rank 1 that scales the gradient as a whole, by √scale more; the other settings are APOLLO's.
// Remembers, of an m × n matrix with m ≤ n, 2 · n numbers and one.
type APOLLOMini struct {
	UpdateProjGap int        `arg:"update_proj_gap=200"`
	Scale         float64    `arg:"scale=128"`
	Betas         [2]float64 `arg:"betas=0.9 0.999"`
	Eps           float64    `arg:"eps=1e-6"`
	WeightDecay   float64    `arg:"weight_decay=0"`
	Limiter       bool       `arg:"limiter=true"`
	ScaleFront    bool       `arg:"scale_front=false"`
	Seed          int        `arg:"seed=0"`
	Rows          string     `arg:"rows="`
}

var _ = declareRule[APOLLOMini]("apollo_mini", 0.01)

func (a *APOLLOMini) whole() *APOLLO {
	return &APOLLO{Rank: 1, UpdateProjGap: a.UpdateProjGap, Scale: a.Scale, ScaleType: "tensor", Betas: a.Betas,
		Eps: a.Eps, WeightDecay: a.WeightDecay, Limiter: a.Limiter, ScaleFront: a.ScaleFront, Seed: a.Seed,
		Rows: a.Rows}
}

func (a *APOLLOMini) check(c *checks)       { a.whole().check(c) }
func (a *APOLLOMini) slots(p *Param) []slot { return a.whole().slots(p) }
func (a *APOLLOMini) numbers() []string     { return a.whole().numbers() }
func (a *APOLLOMini) scratch(p *Param) int  { return a.whole().scratch(p) }
func (a *APOLLOMini) step(u *update)        { a.whole().step(u) }
