package optim

// Linear rises linearly, lr · (step + 1) / (warmup + 1) before step warmup, falls linearly from lr to min_lr at step
// steps, and stays there.
type Linear struct {
	LR     float64 `arg:"lr"`
	Steps  int     `arg:"steps"`
	Warmup int     `arg:"warmup=0"`
	MinLR  float64 `arg:"min_lr=0"`
}

var _ = declareSchedule[Linear]("linear")

func (a *Linear) check(c *checks) {
	c.atLeast0("lr", a.LR)
	c.atLeast0("min_lr", a.MinLR)
	c.span(a.Warmup, a.Steps)
}

// At is the learning rate.
func (a *Linear) At(step int) float64 {
	if step < a.Warmup {
		return ramp(a.LR, step, a.Warmup)
	}
	return a.MinLR + (a.LR-a.MinLR)*(1-progress(step, a.Warmup, a.Steps))
}
