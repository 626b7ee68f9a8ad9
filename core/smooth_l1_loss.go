package core

// SmoothL1Loss is d²/(2·beta) where the difference d of x and target is within beta, and |d| - beta/2 elsewhere,
// and its mean, sum or neither: huber_loss divided by its delta (Girshick 2015). A beta of 0 makes it l1_loss.
//
// Shape: x[axes], target[a subset of them, or the other way round] → a scalar, or the wider operand's axes for
// reduction="none".
// Numerics: as mse_loss.
//
// Errors: integers; a beta below 0.
//
// Example:
//
//	smooth_l1_loss(tensor([1.0, 2.0], "row"), tensor([0.5, 0.0], "row"))
type SmoothL1Loss struct {
	Loss
	Beta float64 `arg:"beta=1"`
}

var smoothL1Loss = Declare[SmoothL1Loss]("smooth_l1_loss")

// SmoothL1Loss is the mean of the smooth absolute difference; see the SmoothL1Loss operation.
func (x *Tensor) SmoothL1Loss(target *Tensor, beta float64) *Tensor {
	return smoothL1Loss.Call(SmoothL1Loss{Loss{X: x, Target: target, Reduction: "mean"}, beta})
}

// Sizes insists on a beta.
func (a *SmoothL1Loss) Sizes(s *Sizes) {
	s.Match(nil)
	if !(a.Beta >= 0) {
		s.Fail("beta is below 0", refit(s.c, "it is where the square ends", "beta", 1.0))
	}
}

// F32 is the f32 kernel.
func (a *SmoothL1Loss) F32(z, x, target []float32) { smoothError(z, x, target, float32(a.Beta)) }

// F64 is the f64 kernel.
func (a *SmoothL1Loss) F64(z, x, target []float64) { smoothError(z, x, target, a.Beta) }

func smoothError[T float32 | float64](z, x, target []T, beta T) {
	x, target = x[:len(z)], target[:len(z)]
	for i := range z {
		d := absolute(x[i] - target[i])
		if d < beta {
			z[i] = T(T(d*d)*0.5) / beta
		} else {
			z[i] = d - T(beta*0.5)
		}
	}
}

func (a *SmoothL1Loss) slopes(x, target *Tensor) (dx, dt *Tensor) {
	if a.Beta == 0 {
		return (*L1Loss)(nil).slopes(x, target)
	}
	dx = x.Sub(target).clampTo(a.Beta).times(1 / a.Beta)
	return dx, dx.Neg()
}

// Weight is what an element costs beside that of a usual operation.
func (*SmoothL1Loss) Weight() int { return 4 }

// Samples is that of losses, with a beta of 0 too.
func (*SmoothL1Loss) Samples(m *Maker) []SmoothL1Loss {
	list := lossSamples(m, func(l Loss) SmoothL1Loss { return SmoothL1Loss{l, 0.75} })
	return append(list, SmoothL1Loss{Loss: list[len(list)-1].Loss})
}
