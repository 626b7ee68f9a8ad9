package optim

import "math"

// Stairs multiplies the learning rate by gamma after every so many steps: torch.optim.lr_scheduler.StepLR, with
// every=1 ExponentialLR.
type Stairs struct {
	LR    float64 `arg:"lr"`
	Every int     `arg:"every"`
	Gamma float64 `arg:"gamma=0.1"`
}

var _ = declareSchedule[Stairs]("stairs")

func (a *Stairs) check(c *checks) {
	c.atLeast0("lr", a.LR)
	c.atLeast0("gamma", a.Gamma)
	c.want(a.Every > 0, "every", a.Every, "a number of steps above 0")
}

// At is the learning rate.
func (a *Stairs) At(step int) float64 { return a.LR * math.Pow(a.Gamma, float64(step/a.Every)) }
