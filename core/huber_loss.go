package core

// HuberLoss is half the squared difference d of x and target where |d| < delta, and delta · (|d| - delta/2)
// elsewhere, and its mean, sum or neither (Huber 1964).
//
// Shape: x[axes], target[a subset of them, or the other way round] → a scalar, or the wider operand's axes for
// reduction="none".
// Numerics: as mse_loss.
//
// Errors: integers; a delta that is not above 0.
//
// Example:
//
//	huber_loss(tensor([1.0, 2.0], "row"), tensor([0.5, 0.0], "row"), delta=0.7)
type HuberLoss struct {
	Loss
	Delta float64 `arg:"delta=1"`
}

var huberLoss = Declare[HuberLoss]("huber_loss")

// HuberLoss is the mean of Huber's loss; see the HuberLoss operation.
func (x *Tensor) HuberLoss(target *Tensor, delta float64) *Tensor {
	return huberLoss.Call(HuberLoss{Loss{X: x, Target: target, Reduction: "mean"}, delta})
}

// Sizes insists on a delta.
func (a *HuberLoss) Sizes(s *Sizes) {
	s.Match(nil)
	if !(a.Delta > 0) {
		s.Fail("delta is not above 0", refit(s.c, "it tends to l1_loss", "delta", 1.0))
	}
}

// F32 is the f32 kernel.
func (a *HuberLoss) F32(z, x, target []float32) { huberError(z, x, target, float32(a.Delta)) }

// F64 is the f64 kernel.
func (a *HuberLoss) F64(z, x, target []float64) { huberError(z, x, target, a.Delta) }

func huberError[T float32 | float64](z, x, target []T, delta T) {
	x, target = x[:len(z)], target[:len(z)]
	for i := range z {
		d := absolute(x[i] - target[i])
		if d < delta {
			z[i] = T(T(d*d) * 0.5)
		} else {
			z[i] = T(delta * (d - T(delta*0.5)))
		}
	}
}

func (a *HuberLoss) slopes(x, target *Tensor) (dx, dt *Tensor) {
	dx = x.Sub(target).clampTo(a.Delta)
	return dx, dx.Neg()
}

// clampTo is t brought to at least -v and at most v.
func (t *Tensor) clampTo(v float64) *Tensor {
	return t.Clamp(Number(t.env, -v, 0, false), Number(t.env, v, 0, false))
}

// Samples is that of losses.
func (*HuberLoss) Samples(m *Maker) []HuberLoss {
	return lossSamples(m, func(l Loss) HuberLoss { return HuberLoss{l, 0.75} })
}
