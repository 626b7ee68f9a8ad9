package optim

import "math"

// WSD warms up, stays and decays: it rises linearly, lr · (step + 1) / (warmup + 1) before step warmup, stays at lr,
// and falls to min_lr over the last decay of all steps, linearly, as half a cosine wave, or by 1 - √progress (shape
// "sqrt").
//
// Hu and others, MiniCPM (2024); Hägele and others, Scaling laws and compute-optimal training beyond fixed training
// durations (2024), for the shape "sqrt".
type WSD struct {
	LR     float64 `arg:"lr"`
	Steps  int     `arg:"steps"`
	Decay  int     `arg:"decay"`
	Warmup int     `arg:"warmup=0"`
	MinLR  float64 `arg:"min_lr=0"`
	Shape  string  `arg:"shape=linear" enum:"linear cosine sqrt"`
}

var _ = declareSchedule[WSD]("wsd")

func (a *WSD) check(c *checks) {
	c.atLeast0("lr", a.LR)
	c.atLeast0("min_lr", a.MinLR)
	c.span(a.Warmup, a.Steps)
	c.want(a.Decay >= 0 && a.Decay <= a.Steps-a.Warmup, "decay", a.Decay, "at most the steps after the warm-up")
	c.oneOf("shape", a.Shape, "linear cosine sqrt")
}

// At is the learning rate.
func (a *WSD) At(step int) float64 {
	if step < a.Warmup {
		return ramp(a.LR, step, a.Warmup)
	}
	x := progress(step, a.Steps-a.Decay, a.Steps)
	left := 1 - x
	switch a.Shape {
	case "cosine":
		left = wave(x)
	case "sqrt":
		left = 1 - math.Sqrt(x)
	}
	return a.MinLR + (a.LR-a.MinLR)*left
}
