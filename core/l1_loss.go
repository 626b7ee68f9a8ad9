package core

// L1Loss is the absolute difference of x and target, element by element, and its mean, sum or neither.
//
// Shape: x[axes], target[a subset of them, or the other way round] → a scalar, or the wider operand's axes for
// reduction="none".
// Numerics: as mse_loss. Where x equals target the gradient is 0.
//
// Errors: integers.
//
// Example:
//
//	l1_loss(tensor([1.0, 2.0], "row"), tensor([0.0, 0.0], "row"))
type L1Loss struct{ Loss }

var l1Loss = Declare[L1Loss]("l1_loss")

// L1Loss is the mean absolute difference; see the L1Loss operation.
func (x *Tensor) L1Loss(target *Tensor) *Tensor {
	return l1Loss.Call(L1Loss{Loss{X: x, Target: target, Reduction: "mean"}})
}

// F32 is the f32 kernel.
func (*L1Loss) F32(z, x, target []float32) { absoluteError(z, x, target) }

// F64 is the f64 kernel.
func (*L1Loss) F64(z, x, target []float64) { absoluteError(z, x, target) }

func absoluteError[T float32 | float64](z, x, target []T) {
	x, target = x[:len(z)], target[:len(z)]
	for i := range z {
		z[i] = absolute(x[i] - target[i])
	}
}

func absolute[T float32 | float64](v T) T { return max(v, -v) }

func (*L1Loss) slopes(x, target *Tensor) (dx, dt *Tensor) {
	dx = x.Sub(target).Sign()
	return dx, dx.Neg()
}

// Samples is that of losses.
func (*L1Loss) Samples(m *Maker) []L1Loss {
	return lossSamples(m, func(l Loss) L1Loss { return L1Loss{l} })
}
