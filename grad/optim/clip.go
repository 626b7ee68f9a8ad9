package optim

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core"
	kernel "github.com/fucina-go/fucina/kernels/update"
)

// ClipNorm multiplies the gradients of the parameters by min(1, limit / (norm + 1e-6)), where norm is that of all of
// them together, and returns the norm: of order 2, or any other above 0, +Inf for the greatest magnitude. Parameters
// without a gradient are left out. If the norm is no finite number and strict, it panics with a *core.Error before
// anything changed. As torch.nn.utils.clip_grad_norm_.
//
// The norm is added up in f64 in the order of the parameters: the same bits for any number of workers.
func ClipNorm(env *core.Env, params []Param, limit, order float64, strict bool) float64 {
	const op = "clip_grad_norm"
	if !(order > 0) || !(limit >= 0) {
		panic(&core.Error{Op: op,
			Msg:  fmt.Sprintf("got max_norm %v and norm_type %v, want numbers above 0", limit, order),
			Hint: "as in: clip_grad_norm(params, 1.0)"})
	}
	grads := gradients(op, env, params)
	if env.IsShapeOnly() {
		return 0
	}
	size := 0.0
	for _, p := range grads {
		switch {
		case p.g.Len() == 0:
		case math.IsInf(order, 1):
			size = math.Max(size, greatest(env, p.g)) // a NaN stays
		case order == 2:
			size += squares(env, p.g)
		default:
			size += total(env, p.g, powers[float32](order), powers[float64](order))
		}
	}
	if !math.IsInf(order, 1) {
		size = math.Pow(size, 1/order)
	}
	if strict && (math.IsNaN(size) || math.IsInf(size, 0)) {
		panic(&core.Error{Op: op, Msg: fmt.Sprintf("the norm of the gradients is %v%s", size, firstBad(env, grads)),
			Hint: "to let it pass: clip_grad_norm(params, max_norm, error_if_nonfinite=False)"})
	}
	if by := limit / (size + 1e-6); !(by >= 1) { // NaN included
		change(env, grads, scaled[float32](by), scaled[float64](by))
	}
	return size
}

// ClipValue bounds every element of the gradients to [-limit, limit]. As torch.nn.utils.clip_grad_value_.
func ClipValue(env *core.Env, params []Param, limit float64) {
	const op = "clip_grad_value"
	if !(limit >= 0) {
		panic(&core.Error{Op: op, Msg: fmt.Sprintf("got clip_value %v, want a number of at least 0", limit),
			Hint: "as in: clip_grad_value(params, 0.5)"})
	}
	if grads := gradients(op, env, params); !env.IsShapeOnly() {
		change(env, grads, bounded[float32](limit), bounded[float64](limit))
	}
}

// gradient is that of a parameter, dense.
type gradient struct {
	name string
	of   *core.Variable
	g    *core.Tensor
}

// gradients are those that there are.
func gradients(op string, env *core.Env, params []Param) (list []gradient) {
	seen := map[*core.Variable]bool{}
	for _, p := range params {
		mustBeVariable(op, p, env)
		v := p.Value.Variable()
		if v.Grad == nil || seen[v] {
			continue
		}
		seen[v] = true
		if !env.IsShapeOnly() && v.Grad.Packed(v.Grad.Axes()) != v.Grad {
			env.Record(false, func() {
				g := v.Grad.Copy()
				g.Keep()
				env.SetGrad(v, g)
			})
		}
		list = append(list, gradient{p.Name, v, v.Grad})
	}
	return list
}

// change puts what f makes of the gradients in their place: into the same memory, unless others see it too. All change
// or none.
func change(env *core.Env, grads []gradient, f32 func(int, [][]float32), f64 func(int, [][]float64)) {
	into := make([]*core.Tensor, len(grads))
	done := false
	defer func() {
		for i, t := range into {
			if !done && t != nil && t != grads[i].g {
				t.Free()
			}
		}
	}()
	for i, p := range grads {
		into[i] = p.g
		if p.g.Tracked() || !p.g.Sole() {
			into[i] = env.Tensor(p.g.DType(), p.g.Axes(), p.g.Sizes()...)
		}
	}
	done = true
	for i, p := range grads {
		(&core.Sweep{Writes: 1, F32: f32, F64: f64}).Run(env, into[i], p.g)
		if into[i] != p.g {
			env.SetGrad(p.of, into[i])
		}
	}
}

func scaled[T kernel.Float](by float64) func(int, [][]T) {
	return func(_ int, xs [][]T) { kernel.Combine(xs[0], xs[1], xs[1], T(by), 0) }
}

func bounded[T kernel.Float](limit float64) func(int, [][]T) {
	lo, hi := T(-limit), T(limit)
	return func(_ int, xs [][]T) {
		for i, v := range xs[1] {
			xs[0][i] = min(max(v, lo), hi)
		}
	}
}

func powers[T kernel.Float](order float64) func([]T) float64 {
	return func(x []T) float64 {
		sum := 0.0
		for _, v := range x {
			sum += math.Pow(math.Abs(float64(v)), order)
		}
		return sum
	}
}

// greatest is the greatest magnitude, NaN if an element is.
func greatest(env *core.Env, t *core.Tensor) float64 {
	m := 0.0
	for _, v := range t.Abs().Max().Values() {
		m = v.(float64)
	}
	return m
}

// firstBad names a parameter whose gradient is not finite.
func firstBad(env *core.Env, grads []gradient) string {
	for _, p := range grads {
		if s := squares(env, p.g); math.IsNaN(s) || math.IsInf(s, 0) {
			return fmt.Sprintf("; that of %q, %s, has a %v", p.name, p.g.Shape(), s)
		}
	}
	return ""
}
