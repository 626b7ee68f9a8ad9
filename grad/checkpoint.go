package grad

import "github.com/fucina-go/fucina/core"

// Checkpoint is f(xs), of which only xs is kept for the gradient: what lies between is computed again when the
// gradient passes through. f is run in a scope that its results survive. See Env.Checkpoint in core for what f
// may do.
func Checkpoint(env *core.Env, f func(xs []*core.Tensor) []*core.Tensor, xs ...*core.Tensor) (ys []*core.Tensor) {
	env.Checkpoint(xs, func(xs []*core.Tensor) {
		s := env.Open()
		var results []*core.Tensor
		defer func() { s.Close(results...) }()
		results = f(xs)
		ys = results
	})
	return ys
}
