package optim

// OneCycle rises from lr / div_factor to lr in the first pct_start of all steps and falls to
// lr / (div_factor · final_div_factor) in the last one: half cosine waves, or lines.
//
// As torch.optim.lr_scheduler.OneCycleLR; Smith and Topin, Super-convergence (2018).
type OneCycle struct {
	LR             float64 `arg:"lr"`
	Steps          int     `arg:"steps"`
	PctStart       float64 `arg:"pct_start=0.3"`
	DivFactor      float64 `arg:"div_factor=25"`
	FinalDivFactor float64 `arg:"final_div_factor=1e4"`
	Shape          string  `arg:"shape=cosine" enum:"linear cosine"`
}

var _ = declareSchedule[OneCycle]("one_cycle")

func (a *OneCycle) check(c *checks) {
	c.atLeast0("lr", a.LR)
	c.want(a.Steps > 0, "steps", a.Steps, "a number of steps above 0")
	c.want(a.PctStart >= 0 && a.PctStart <= 1, "pct_start", a.PctStart, "a number from 0 to 1")
	c.want(a.DivFactor > 0, "div_factor", a.DivFactor, "a number above 0")
	c.want(a.FinalDivFactor > 0, "final_div_factor", a.FinalDivFactor, "a number above 0")
	c.oneOf("shape", a.Shape, "linear cosine")
}

// At is the learning rate.
func (a *OneCycle) At(step int) float64 {
	first := a.LR / a.DivFactor
	top, last := a.PctStart*float64(a.Steps)-1, float64(a.Steps-1)
	from, to, x := first, a.LR, 1.0
	switch s := float64(step); {
	case s < top:
		x = s / top
	case s < last:
		from, to, x = a.LR, first/a.FinalDivFactor, (s-top)/(last-top)
	default:
		return first / a.FinalDivFactor
	}
	if a.Shape == "cosine" {
		return to + (from-to)*wave(x)
	}
	return from + (to-from)*x
}
