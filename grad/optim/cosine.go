package optim

import "math"

// Cosine rises linearly, lr · (step + 1) / (warmup + 1) before step warmup, falls from there to step steps as half a
// cosine wave from lr to min_lr, and stays there: the schedule of nanoGPT.
type Cosine struct {
	LR     float64 `arg:"lr"`
	Steps  int     `arg:"steps"`
	Warmup int     `arg:"warmup=0"`
	MinLR  float64 `arg:"min_lr=0"`
}

var _ = declareSchedule[Cosine]("cosine")

func (a *Cosine) check(c *checks) {
	c.atLeast0("lr", a.LR)
	c.atLeast0("min_lr", a.MinLR)
	c.span(a.Warmup, a.Steps)
}

// At is the learning rate.
func (a *Cosine) At(step int) float64 {
	if step < a.Warmup {
		return ramp(a.LR, step, a.Warmup)
	}
	return a.MinLR + (a.LR-a.MinLR)*wave(progress(step, a.Warmup, a.Steps))
}

// wave falls from 1 to 0 as half a cosine wave.
func wave(progress float64) float64 { return 0.5 * (1 + math.Cos(math.Pi*progress)) }
