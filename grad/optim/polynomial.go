package optim

import "math"

// Polynomial is lr · (1 - step / steps) ^ power, and 0 from step steps on: torch.optim.lr_scheduler.PolynomialLR.
type Polynomial struct {
	LR    float64 `arg:"lr"`
	Steps int     `arg:"steps"`
	Power float64 `arg:"power=1"`
}

var _ = declareSchedule[Polynomial]("polynomial")

func (a *Polynomial) check(c *checks) {
	c.atLeast0("lr", a.LR)
	c.want(a.Steps > 0, "steps", a.Steps, "a number of steps above 0")
	c.want(a.Power > 0, "power", a.Power, "a number above 0")
}

// At is the learning rate.
func (a *Polynomial) At(step int) float64 {
	return a.LR * math.Pow(1-progress(step, 0, a.Steps), a.Power)
}
