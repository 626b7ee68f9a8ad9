package grad_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
	"github.com/fucina-go/fucina/grad"
)

// TestProductsOfOps compares jvp and hvp of every operation that has a gradient or is made of others, at its samples,
// with differences of its results and of its gradients along a random direction. With -short it takes every third
// sample: the numbers come from one worker.
func TestProductsOfOps(t *testing.T) {
	for _, info := range core.All() {
		composed := core.Is[core.Composer](info) || core.Is[core.Composers](info)
		if !core.Is[core.Differentiable](info) && !composed || info.Name == "stop_gradient" {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			env := core.NewEnv(0, 1)
			defer env.Close()
			seen := map[string]bool{}
			var tally tally
			for i, op := range info.Samples(&core.Maker{Env: env}) {
				if testing.Short() && i%3 > 0 {
					continue
				}
				if c, ok := op.(*core.Cast); ok && c.DType != dtype.F64 {
					continue // rounds: a step function
				}
				if slices.ContainsFunc(operands(info, op), quantized) {
					continue // computes in f32; see TestQuantized
				}
				total, at := function(info, op)
				key := sampleKey(info, op)
				if len(at) == 0 || seen[key] {
					continue
				}
				seen[key] = true
				if err := tally.products(results(info, op), total, at); err != nil {
					t.Errorf("sample %d: %v", i, err)
				}
			}
			if tally.compared <= 3*tally.passedOver && !testing.Short() {
				t.Errorf("%d elements compared, %d passed over", tally.compared, tally.passedOver)
			}
		})
	}
}

// results is like function, but with the results as they are.
func results(info *core.Info, op core.Op) func(xs []*core.Tensor) []*core.Tensor {
	all := operands(info, op)
	return func(xs []*core.Tensor) []*core.Tensor {
		in := append([]*core.Tensor(nil), all...)
		k := 0
		for i, t := range all {
			if t != nil && t.DType().IsFloat() {
				in[i] = xs[k]
				k++
			}
		}
		if core.Is[core.InPlace](info) {
			in[0] = in[0].Copy()
		}
		setOperands(info, op, in)
		defer setOperands(info, op, all)
		var ys []*core.Tensor
		for _, y := range info.Run(in[0].Env(), op, nil) {
			if y.DType().IsFloat() {
				ys = append(ys, y.Cast(dtype.F64))
			}
		}
		return ys
	}
}

// tally counts elements that were compared with a difference, and those where there is a step or a kink.
type tally struct{ compared, passedOver int }

// products checks the products of a sample at places where its value is a number.
func (c *tally) products(f func([]*core.Tensor) []*core.Tensor, total func([]*core.Tensor) *core.Tensor,
	at []*core.Tensor) (err error) {
	env := at[0].Env()
	for _, positive := range []bool{false, true} {
		s := env.Open()
		defer s.Close()
		xs := places(at, positive)
		if math.IsNaN(total(xs).Item().(float64)) {
			continue
		}
		vs := make([]*core.Tensor, len(xs))
		for i, x := range xs {
			vs[i] = direction(x, i)
		}
		err := c.along(f, total, xs, vs)
		if last := len(xs) - 1; constantLast(err) && last > 0 { // it has no gradient for its last operand
			xs[last] = xs[last].Detach()
			head := func(in []*core.Tensor) []*core.Tensor { return f(append(in[:last:last], xs[last])) }
			headTotal := func(in []*core.Tensor) *core.Tensor { return total(append(in[:last:last], xs[last])) }
			err = c.along(head, headTotal, xs[:last], vs[:last])
		}
		return err
	}
	return nil
}

// direction is random numbers like x.
func direction(x *core.Tensor, i int) *core.Tensor {
	values := make([]float64, x.Len())
	for k := range values {
		values[k] = (2*rng.Float64(9, uint64(i), uint64(k)) - 1) / math.Sqrt(float64(len(values)))
	}
	return x.Env().FromFloats(dtype.F64, values, x.Axes(), x.Sizes()...)
}

// along compares both products in one direction.
func (c *tally) along(f func([]*core.Tensor) []*core.Tensor, total func([]*core.Tensor) *core.Tensor,
	xs, vs []*core.Tensor) (err error) {
	defer core.Recover(&err)
	ys, dys := grad.JVP(f, xs, vs, false)
	plain := f(xs)
	for i, y := range ys {
		if diff := cmp.Diff(list(plain[i]), list(y), cmp.Comparer(sameNumber)); diff != "" {
			return fmt.Errorf("jvp changes result %d: %s", i, diff)
		}
		if dys[i].Shape() != y.Shape() {
			return fmt.Errorf("the derivative of %s is %s", y.Shape(), dys[i].Shape())
		}
	}
	err = c.compare("jvp", joined(dys), func(step float64) []float64 { return joined(f(moved(xs, vs, step))) })
	if err != nil {
		return err
	}
	gradients := func(step float64) []float64 {
		in := moved(xs, vs, step)
		for i, x := range in {
			in[i] = x.Env().Watch(x)
			defer in[i].Free()
		}
		y := total(in)
		gs := make([]*core.Tensor, len(in))
		if y.Tracked() {
			gs = grad.Gradients([]*core.Tensor{y}, in, nil, grad.Mode{AllowUnused: true})
		}
		for i, g := range gs {
			if g == nil {
				gs[i] = in[i].Env().Zeros(dtype.F64, in[i].Axes(), in[i].Sizes()...)
			}
		}
		return joined(gs)
	}
	_, products := grad.HVP(total, xs, vs, false)
	for i, p := range products {
		if p.Shape() != xs[i].Shape() {
			return fmt.Errorf("the product for %s is %s", xs[i].Shape(), p.Shape())
		}
	}
	return c.compare("hvp", joined(products), gradients)
}

func sameNumber(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func joined(ts []*core.Tensor) (all []float64) {
	for _, t := range ts {
		all = append(all, list(t)...)
	}
	return all
}

// moved is xs + step · vs.
func moved(xs, vs []*core.Tensor, step float64) []*core.Tensor {
	to := make([]*core.Tensor, len(xs))
	for i, x := range xs {
		values, along := list(x), list(vs[i])
		for k := range values {
			values[k] += float64(step * along[k])
		}
		to[i] = x.Env().FromFloats(dtype.F64, values, x.Axes(), x.Sizes()...)
	}
	return to
}

// compare holds got against difference quotients of f at 0, by the five-point formula.
func (c *tally) compare(what string, got []float64, f func(step float64) []float64) error {
	const step, tol = 1e-3, 1e-6
	// A jump shows in each of these by another factor.
	want, half, third := slope(f, step), slope(f, step/2), slope(f, step/7)
	for k, g := range got {
		if len(want) != len(got) || len(half) != len(got) || len(third) != len(got) {
			c.passedOver++ // how many there are hangs on the values
			continue
		}
		w, h := want[k], half[k]
		limit := tol * max(1, math.Abs(h))
		switch {
		case math.IsInf(w, 0) || math.IsNaN(w):
		case math.Abs(g-h) <= limit:
			c.compared++
		case !(max(math.Abs(w-h), math.Abs(third[k]-h)) <= max(limit, math.Abs(g-h)/64)):
			c.passedOver++
		default:
			return fmt.Errorf("%s: element %d is %v, the difference quotient %v", what, k, g, h)
		}
	}
	return nil
}

func slope(f func(step float64) []float64, step float64) []float64 {
	a, b, c, d := f(-2*step), f(-step), f(step), f(2*step)
	if len(a) != len(b) || len(b) != len(c) || len(c) != len(d) {
		return nil
	}
	for k := range a {
		a[k] = (8*(c[k]-b[k]) - (d[k] - a[k])) / (12 * step)
	}
	return a
}

func TestProducts(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x, v := vector(env, "a", 2, 3), vector(env, "a", 1, -1)
	cube := func(xs []*core.Tensor) *core.Tensor { return xs[0].Mul(xs[0]).Mul(xs[0]) }
	ys, dys := grad.JVP(func(xs []*core.Tensor) []*core.Tensor {
		return []*core.Tensor{cube(xs), xs[0].Sum(), vector(xs[0].Env(), "b", 5)}
	}, []*core.Tensor{x}, []*core.Tensor{v}, false)
	for i, want := range [][]float64{{12, -27}, {0}, {0}} {
		if diff := cmp.Diff(want, list(dys[i])); diff != "" || dys[i].Tracked() || ys[i].Tracked() {
			t.Errorf("derivative %d, tracked %v: %s", i, dys[i].Tracked(), diff)
		}
	}
	sum := func(xs []*core.Tensor) *core.Tensor { return cube(xs).Sum() }
	y, hv := grad.HVP(sum, []*core.Tensor{x}, []*core.Tensor{v}, false)
	if diff := cmp.Diff([]float64{12, -18}, list(hv[0])); diff != "" || y.Item() != 35.0 {
		t.Errorf("%v: %s", y.Item(), diff)
	}

	// A loss that is there already, whose graph stays; and a product to differentiate: of 6x · v, along v.
	w := env.Watch(x)
	loss := sum([]*core.Tensor{w})
	hv = grad.HessianTimes(loss, []*core.Tensor{w}, []*core.Tensor{v}, false)
	if diff := cmp.Diff([]float64{12, -18}, list(hv[0])); diff != "" {
		t.Error(diff)
	}
	backward(loss)
	hv = grad.HessianTimes(sum([]*core.Tensor{w}), []*core.Tensor{w}, []*core.Tensor{v}, true)
	third := grad.Gradients([]*core.Tensor{hv[0].Sum()}, []*core.Tensor{w}, nil, grad.Mode{})
	if diff := cmp.Diff([]float64{6, -6}, list(third[0])); diff != "" {
		t.Error(diff)
	}
	_, dys = grad.JVP(func(xs []*core.Tensor) []*core.Tensor { return []*core.Tensor{cube(xs)} },
		[]*core.Tensor{w}, []*core.Tensor{v}, true)
	second := grad.Gradients([]*core.Tensor{dys[0].Sum()}, []*core.Tensor{w}, nil, grad.Mode{})
	if diff := cmp.Diff([]float64{12, -18}, list(second[0])); diff != "" {
		t.Error(diff)
	}

	both := []*core.Tensor{x, x}
	mustFail(t, "jvp: got 1 tangents for 2 inputs", func() { grad.JVP(nil, both, both[:1], false) })
	mustFail(t, "jvp: tangents[0] is f64[a=1]", func() {
		grad.JVP(nil, both[:1], []*core.Tensor{vector(env, "a", 1)}, false)
	})
	mustFail(t, "hvp: got None for all vectors", func() { grad.HVP(nil, both, make([]*core.Tensor, 2), false) })
	mustFail(t, "hvp: the loss must be a floating-point scalar, got f64[a=2]; use loss.mean(\"a\")", func() {
		grad.HVP(cube, both[:1], both[:1], false)
	})
	mustFail(t, "jvp: the function gave i64, which has no derivative", func() {
		grad.JVP(func(xs []*core.Tensor) []*core.Tensor { return []*core.Tensor{xs[0].Cast(dtype.I64).Sum()} },
			both[:1], both[:1], false)
	})
}

// TestProductsLeaveNothing counts buffers.
func TestProductsLeaveNothing(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	m := &core.Maker{Env: env}
	x, v := m.Tensor(dtype.F64, "row=30 embed=40"), m.Tensor(dtype.F64, "row=30 embed=40")
	w := m.Tensor(dtype.F64, "embed=40")
	before := env.Memory()
	f := func(xs []*core.Tensor) *core.Tensor { return xs[0].RMSNorm(w, 1e-5).Softmax("embed").Mul(xs[0]) }
	s := env.Open()
	grad.JVP(func(xs []*core.Tensor) []*core.Tensor { return []*core.Tensor{f(xs)} },
		[]*core.Tensor{x}, []*core.Tensor{v}, false)
	grad.HVP(func(xs []*core.Tensor) *core.Tensor { return f(xs).Sum() }, []*core.Tensor{x}, []*core.Tensor{v}, false)
	s.Close()
	if got := env.Memory(); got.Buffers != before.Buffers || got.InUse != before.InUse {
		t.Errorf("%+v, before %+v", got, before)
	}
}
