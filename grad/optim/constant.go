package optim

// Constant is lr, from step warmup on; before, it rises linearly, from lr · start in step 0.
type Constant struct {
	LR     float64 `arg:"lr"`
	Warmup int     `arg:"warmup=0"`
	Start  float64 `arg:"start=0"`
}

var _ = declareSchedule[Constant]("constant")

func (a *Constant) check(c *checks) {
	c.atLeast0("lr", a.LR)
	c.atLeast0("start", a.Start)
	c.want(a.Warmup >= 0, "warmup", a.Warmup, "a number of steps")
}

// At is the learning rate.
func (a *Constant) At(step int) float64 {
	if step >= a.Warmup {
		return a.LR
	}
	return a.LR * (a.Start + (1-a.Start)*float64(step)/float64(a.Warmup))
}
