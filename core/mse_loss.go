package core

// MSELoss is the squared difference of x and target, element by element, and its mean, sum or neither.
//
// Shape: x[axes], target[a subset of them, or the other way round] → a scalar, or the wider operand's axes for
// reduction="none".
// Numerics: elements are added as in sum; f16 and bf16 compute in f32 and round once. The mean of nothing is NaN.
//
// Errors: integers.
//
// Example:
//
//	mse_loss(tensor([1.0, 2.0], "row"), tensor([0.0, 0.0], "row"))
type MSELoss struct{ Loss }

var mseLoss = Declare[MSELoss]("mse_loss")

// MSELoss is the mean squared difference; see the MSELoss operation.
func (x *Tensor) MSELoss(target *Tensor) *Tensor {
	return mseLoss.Call(MSELoss{Loss{X: x, Target: target, Reduction: "mean"}})
}

// F32 is the f32 kernel.
func (*MSELoss) F32(z, x, target []float32) { squaredError(z, x, target) }

// F64 is the f64 kernel.
func (*MSELoss) F64(z, x, target []float64) { squaredError(z, x, target) }

func squaredError[T float32 | float64](z, x, target []T) {
	x, target = x[:len(z)], target[:len(z)]
	for i := range z {
		d := x[i] - target[i]
		z[i] = T(d * d)
	}
}

func (*MSELoss) slopes(x, target *Tensor) (dx, dt *Tensor) {
	dx = x.Sub(target).times(2)
	return dx, dx.Neg()
}

// Samples is that of losses.
func (*MSELoss) Samples(m *Maker) []MSELoss {
	return lossSamples(m, func(l Loss) MSELoss { return MSELoss{l} })
}
