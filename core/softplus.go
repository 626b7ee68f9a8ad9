package core

import (
	"fmt"
	"math"
)

// Softplus is log(1 + exp(beta · x)) / beta, a smooth ReLU, element by element; x itself where beta · x is above
// threshold.
//
// Shape: x[axes] → y[axes].
// Numerics: f32 is computed in f64 and rounded once; f16 and bf16 compute in f32 and round once.
//
// Errors: integers (cast them first); a beta of 0.
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").softplus()
type Softplus struct {
	Unary
	Beta      float64 `arg:"beta=1"`
	Threshold float64 `arg:"threshold=20"`
}

var softplus = Declare[Softplus]("softplus")

// Softplus is log(1 + exp(x)); see the Softplus operation.
func (x *Tensor) Softplus() *Tensor {
	return softplus.Call(Softplus{Unary: Unary{x}, Beta: 1, Threshold: 20})
}

// Sizes insists on a beta to divide by.
func (a *Softplus) Sizes(s *Sizes) {
	if a.Beta == 0 || a.Beta != a.Beta {
		s.Fail(fmt.Sprintf("beta=%v, want a number other than 0", a.Beta), refit(s.c, "1 is usual", "beta", 1.0))
	}
}

// F32 is the f32 kernel.
func (a *Softplus) F32(y, x []float32) { softplusOf(y, x, a) }

// F64 is the f64 kernel.
func (a *Softplus) F64(y, x []float64) { softplusOf(y, x, a) }

func softplusOf[T float32 | float64](y, x []T, a *Softplus) {
	x = x[:len(y)]
	for i, v := range x {
		if bx := float64(a.Beta * float64(v)); !(bx > a.Threshold) {
			v = T((log1pAt(expPair(-math.Abs(bx), 0)) + max(bx, 0)) / a.Beta)
		}
		y[i] = v
	}
}

// Weight is what an element costs beside that of a usual operation.
func (*Softplus) Weight() int { return 16 }

// Saves x.
func (*Softplus) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy · sigmoid(beta · x), gy above the threshold.
func (a *Softplus) VJP(_, gy []*Tensor, g *Grads) {
	bx := a.X.times(a.Beta)
	g.Set(0, bx.above(a.Threshold).Where(gy[0], gy[0].Mul(bx.Sigmoid())))
}
