package grad_test

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/grad"
)

// operands is the tensor operands of an operation in field order, nil where one was left out.
func operands(info *core.Info, op core.Op) (ts []*core.Tensor) {
	for i := range info.Fields {
		switch f := &info.Fields[i]; f.Kind {
		case core.KindTensor:
			ts = append(ts, *(**core.Tensor)(f.At(op)))
		case core.KindTensors:
			ts = append(ts, *(*[]*core.Tensor)(f.At(op))...)
		}
	}
	return ts
}

func setOperands(info *core.Info, op core.Op, ts []*core.Tensor) {
	for i := range info.Fields {
		switch f := &info.Fields[i]; f.Kind {
		case core.KindTensor:
			*(**core.Tensor)(f.At(op)) = ts[0]
			ts = ts[1:]
		case core.KindTensors:
			list := (*[]*core.Tensor)(f.At(op))
			n := len(*list)
			*list, ts = ts[:n:n], ts[n:]
		}
	}
}

// function is an operation of a sample as a function of its floating-point operands, which it lists, in f64. The
// results are joined into one; in place, it works on a copy.
func function(info *core.Info, op core.Op) (f func(xs []*core.Tensor) *core.Tensor, at []*core.Tensor) {
	all := operands(info, op)
	var places []int
	for i, t := range all {
		if t != nil && t.DType().IsFloat() {
			places = append(places, i)
			at = append(at, t.Cast(dtype.F64))
		}
	}
	return func(xs []*core.Tensor) *core.Tensor {
		in := append([]*core.Tensor(nil), all...)
		for k, x := range xs {
			in[places[k]] = x
		}
		if core.Is[core.InPlace](info) {
			in[0] = in[0].Copy()
		}
		setOperands(info, op, in)
		var total *core.Tensor
		for k, y := range info.Run(in[0].Env(), op, nil) {
			if !y.DType().IsFloat() {
				continue
			}
			if part := y.Cast(dtype.F64).Mul(ramp(y, k)).Sum(); total == nil {
				total = part
			} else {
				total = total.Add(part)
			}
		}
		return total
	}, at
}

// ramp is a smooth weight like y, other for each k.
func ramp(y *core.Tensor, k int) *core.Tensor {
	values := make([]float64, y.Len())
	for i := range values {
		values[i] = math.Sin(float64(3*i + 7*k + 1))
	}
	return y.Env().FromFloats(dtype.F64, values, y.Axes(), y.Sizes()...)
}

// ranks is like t, with distinct elements in the same order.
func ranks(t *core.Tensor) *core.Tensor {
	values := t.Values()
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(values[i].(float64), values[j].(float64)) })
	list := make([]float64, len(values))
	for rank, i := range order {
		list[i] = 0.01 * float64(rank)
	}
	return t.Env().FromFloats(dtype.F64, list, t.Axes(), t.Sizes()...)
}

// variants is f as it stands, f with operands stored in another order and, where they are alike, with the first
// operand in place of all.
func variants(f func([]*core.Tensor) *core.Tensor, at []*core.Tensor) map[string]func([]*core.Tensor) *core.Tensor {
	all := map[string]func([]*core.Tensor) *core.Tensor{
		"as is": f,
		"permuted": func(xs []*core.Tensor) *core.Tensor {
			stored := make([]*core.Tensor, len(xs))
			for i, x := range xs {
				names := slices.Clone(x.Axes().Names())
				slices.Reverse(names)
				stored[i] = x.Order(strings.Join(names, " ")).Copy().Order(x.Axes().String())
			}
			return f(stored)
		},
	}
	alike := len(at) > 1
	for _, x := range at {
		alike = alike && x.Shape() == at[0].Shape()
	}
	if alike {
		all["repeated"] = func(xs []*core.Tensor) *core.Tensor {
			same := make([]*core.Tensor, len(xs))
			for i := range same {
				same[i] = xs[0]
			}
			return f(same)
		}
	}
	return all
}

// TestSamples checks the gradients of every operation that has them, of first and second order, at its samples.
func TestSamples(t *testing.T) {
	for _, info := range core.All() {
		if !core.Is[core.Differentiable](info) {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			env := core.NewEnv(0, 1)
			defer env.Close()
			n := 0
			for i, op := range info.Samples(&core.Maker{Env: env}) {
				if c, ok := op.(*core.Cast); ok && c.DType != dtype.F64 {
					continue // rounds: a step function
				}
				f, at := function(info, op)
				if len(at) == 0 {
					continue
				}
				switch op.(type) {
				case *core.Log, *core.Sqrt: // from negative numbers to where they are smooth
					at[0] = at[0].Mul(at[0]).Add(core.Number(env, 0.5, 0, false))
				case *core.Max, *core.TopK: // away from equals, where they are not
					at[0] = ranks(at[0])
				case *core.Rope: // its factors are constants
					at = at[:1]
				}
				n++
				for name, f := range variants(f, at) {
					if err := grad.Check(f, at, 1e-6); err != nil {
						t.Errorf("sample %d, %s: %v", i, name, err)
					}
				}
			}
			if n == 0 {
				t.Error("no sample has a floating-point operand")
			}
		})
	}
}
