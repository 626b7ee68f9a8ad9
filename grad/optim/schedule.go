package optim

// Schedule is a learning rate as a function of the step, which counts from 0. It has no state: resuming a run at a step
// resumes the schedule.
type Schedule interface {
	At(step int) float64
	check(c *checks)
}

// CheckSchedule panics with a *core.Error if the settings of a schedule, called name, make no sense.
func CheckSchedule(name string, s Schedule) {
	var c checks
	s.check(&c)
	c.panics(name)
}

// ramp is the linear warm-up of nanoGPT: lr · (step + 1) / (warmup + 1) before step warmup.
func ramp(lr float64, step, warmup int) float64 { return lr * float64(step+1) / float64(warmup+1) }

// progress is how far step is on its way from one step to another, from 0 to 1.
func progress(step, from, to int) float64 {
	switch {
	case step >= to:
		return 1
	case step <= from:
		return 0
	}
	return float64(step-from) / float64(to-from)
}

// span refuses a warm-up and a number of steps that do not go together.
func (c *checks) span(warmup, steps int) {
	c.want(warmup >= 0, "warmup", warmup, "a number of steps")
	c.want(steps > 0, "steps", steps, "a number of steps above 0")
	c.want(warmup <= steps, "warmup", warmup, "at most as many steps as there are")
}
