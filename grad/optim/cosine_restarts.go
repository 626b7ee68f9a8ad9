package optim

// CosineRestarts falls as half a cosine wave from lr to min_lr within period steps, and begins again at lr, each time
// with a period of factor times as many steps.
//
// As torch.optim.lr_scheduler.CosineAnnealingWarmRestarts; Loshchilov and Hutter, SGDR (2017).
type CosineRestarts struct {
	LR     float64 `arg:"lr"`
	Period int     `arg:"period"`
	Factor int     `arg:"factor=1"`
	MinLR  float64 `arg:"min_lr=0"`
}

var _ = declareSchedule[CosineRestarts]("cosine_restarts")

func (a *CosineRestarts) check(c *checks) {
	c.atLeast0("lr", a.LR)
	c.atLeast0("min_lr", a.MinLR)
	c.want(a.Period > 0, "period", a.Period, "a number of steps above 0")
	c.want(a.Factor > 0 && a.Factor <= 1000, "factor", a.Factor, "a whole number from 1 to 1000")
}

// At is the learning rate.
func (a *CosineRestarts) At(step int) float64 {
	period := a.Period
	if a.Factor == 1 {
		step %= period
	}
	for step >= period {
		step -= period
		period *= a.Factor
	}
	return a.MinLR + (a.LR-a.MinLR)*wave(float64(step)/float64(period))
}
