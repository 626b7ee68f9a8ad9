package optim

import (
	"math"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/kernels/num"
)

// total is the sum of what f32 or f64 make of every run of elements, added up in f64 in the order of the elements: the
// same bits for any number of workers.
func total(env *core.Env, t *core.Tensor, f32 func([]float32) float64, f64 func([]float64) float64) float64 {
	parts := make([]float64, (t.Len()+core.SweepGrain-1)/core.SweepGrain)
	(&core.Sweep{
		F32: func(at int, xs [][]float32) { parts[at/core.SweepGrain] = f32(xs[0]) },
		F64: func(at int, xs [][]float64) { parts[at/core.SweepGrain] = f64(xs[0]) },
	}).Run(env, t)
	sum := 0.0
	for _, v := range parts {
		sum += v
	}
	return sum
}

// squares is the sum of the squares of the elements. Within 1024 elements it is computed in their own dtype.
func squares(env *core.Env, t *core.Tensor) float64 {
	return total(env, t, squaresOf[float32], squaresOf[float64])
}

func squaresOf[T num.Float](x []T) float64 {
	sum := 0.0
	for len(x) > 0 {
		n := min(len(x), 1024)
		sum += float64(num.Dot(x[:n], x[:n]))
		x = x[n:]
	}
	return sum
}

// norm is the Euclidean norm of the elements.
func norm(env *core.Env, t *core.Tensor) float64 { return math.Sqrt(squares(env, t)) }
