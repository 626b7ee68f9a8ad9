package core

// LeakyReLU is x where it is above 0, else x · negative_slope, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: f16 and bf16 compute in f32 and round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").leaky_relu()
type LeakyReLU struct {
	Unary
	NegativeSlope float64 `arg:"negative_slope=0.01"`
}

var leakyReLU = Declare[LeakyReLU]("leaky_relu")

// LeakyReLU is x above 0, x times the slope below; see the LeakyReLU operation.
func (x *Tensor) LeakyReLU(slope float64) *Tensor {
	return leakyReLU.Call(LeakyReLU{Unary: Unary{x}, NegativeSlope: slope})
}

// F32 is the f32 kernel.
func (a *LeakyReLU) F32(y, x []float32) { leak(y, x, float32(a.NegativeSlope)) }

// F64 is the f64 kernel.
func (a *LeakyReLU) F64(y, x []float64) { leak(y, x, a.NegativeSlope) }

func leak[T float32 | float64](y, x []T, slope T) {
	x = x[:len(y)]
	for i, v := range x {
		if v <= 0 {
			v = T(v * slope)
		}
		y[i] = v
	}
}

// Saves x.
func (*LeakyReLU) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy, times the slope where x is not above 0.
func (a *LeakyReLU) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, a.X.above(0).Where(gy[0], gy[0].times(a.NegativeSlope)))
}
