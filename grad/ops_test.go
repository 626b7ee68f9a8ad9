package grad_test

import (
	"cmp"
	"fmt"
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
			y = bounded(y.Cast(dtype.F64))
			part := y.Mul(ramp(y, k)).Sum()
			if total != nil {
				part = total.Add(part)
			}
			total = part
		}
		return total
	}, at
}

// bounded is y without its infinite elements, which a mask may cause.
func bounded(y *core.Tensor) *core.Tensor {
	values := list(y)
	if !slices.ContainsFunc(values, func(v float64) bool { return math.IsInf(v, 0) }) {
		return y
	}
	keep := make([]int64, len(values))
	for i, v := range values {
		if !math.IsInf(v, 0) {
			keep[i] = 1
		}
	}
	return y.MaskedSelect(y.Env().FromInts(dtype.Bool, keep, y.Axes(), y.Sizes()...), "bounded")
}

// ramp is a smooth weight like y, other for each k.
func ramp(y *core.Tensor, k int) *core.Tensor {
	values := make([]float64, y.Len())
	for i := range values {
		values[i] = math.Sin(float64(3*i + 7*k + 1))
	}
	return y.Env().FromFloats(dtype.F64, values, y.Axes(), y.Sizes()...)
}

// places is operands like those of a sample, whose elements have the same order, but differ from one another and
// from round numbers, where steps and kinks are; positive ones, if asked.
func places(at []*core.Tensor, positive bool) []*core.Tensor {
	all := make([]*core.Tensor, len(at))
	for k, t := range at {
		values := list(t)
		order := make([]int, len(values))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
		for rank, i := range order {
			values[i] = 4*(float64(rank)+0.37+0.21*float64(k))/float64(len(values)) - 2
			if positive {
				values[i] = math.Abs(values[i]) + 0.5
			}
		}
		all[k] = t.Env().FromFloats(dtype.F64, values, t.Axes(), t.Sizes()...)
	}
	return all
}

// variants is f as it stands, f with operands stored in another order and, where they are alike, with the first
// operand in place of all.
func variants(f func([]*core.Tensor) *core.Tensor, at []*core.Tensor) map[string]func([]*core.Tensor) *core.Tensor {
	all := map[string]func([]*core.Tensor) *core.Tensor{"as is": f}
	size, alike := 0, len(at) > 1
	for _, x := range at {
		alike = alike && x.Shape() == at[0].Shape()
		size += x.Len()
	}
	if size > 200 {
		return all
	}
	all["permuted"] = func(xs []*core.Tensor) *core.Tensor {
		stored := make([]*core.Tensor, len(xs))
		for i, x := range xs {
			names := slices.Clone(x.Axes().Names())
			slices.Reverse(names)
			stored[i] = x.Order(strings.Join(names, " ")).Copy().Order(x.Axes().String())
		}
		return f(stored)
	}
	if alike {
		all["repeated"] = func(xs []*core.Tensor) *core.Tensor { return f(slices.Repeat(xs[:1], len(xs))) }
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
			seen := map[string]bool{}
			for i, op := range info.Samples(&core.Maker{Env: env}) {
				if c, ok := op.(*core.Cast); ok && c.DType != dtype.F64 {
					continue // rounds: a step function
				}
				if slices.ContainsFunc(operands(info, op), quantized) {
					continue // computes in f32; see TestQuantized
				}
				f, at := function(info, op)
				key := sampleKey(info, op)
				if len(at) == 0 || seen[key] {
					continue // as one of another dtype
				}
				seen[key] = true
				for name, f := range variants(f, at) {
					if testing.Short() && name != "as is" {
						continue // half the time; minutes under the race detector
					}
					if err := check(f, at); err != nil {
						t.Errorf("sample %d, %s: %v", i, name, err)
					}
				}
			}
			if len(seen) == 0 {
				t.Error("no sample has a floating-point operand")
			}
		})
	}
}

func quantized(t *core.Tensor) bool { return t != nil && t.DType().Quantized() }

// check checks f at places where its value is a number. An operand that f says to have no gradient for must be the
// last; it becomes a constant.
func check(f func([]*core.Tensor) *core.Tensor, at []*core.Tensor) error {
	for _, positive := range []bool{false, true} {
		xs := places(at, positive)
		if math.IsNaN(f(xs).Item().(float64)) {
			continue // as the logarithm of negative numbers, or the variance of one
		}
		err := grad.Check(f, xs, 1e-6)
		if last := len(xs) - 1; constantLast(err) && last > 0 {
			head := func(head []*core.Tensor) *core.Tensor { return f(append(head, xs[last])) }
			return grad.Check(head, xs[:last], 1e-6)
		}
		return err
	}
	return nil
}

// sampleKey is what tells samples apart when all numbers are f64.
func sampleKey(info *core.Info, op core.Op) string {
	all := operands(info, op)
	defer setOperands(info, op, all)
	setOperands(info, op, make([]*core.Tensor, len(all)))
	key := fmt.Sprintf("%+v", op)
	for _, t := range all {
		if t == nil {
			key += " nil"
			continue
		}
		_, shape, _ := strings.Cut(t.Shape(), "[")
		key += fmt.Sprint(t.DType().IsFloat(), shape)
	}
	return key
}

// TestDTypes walks back through every sample in its own dtype: a gradient looks like its operand.
func TestDTypes(t *testing.T) {
	for _, info := range core.All() {
		if !core.Is[core.Differentiable](info) {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			env := core.NewEnv(0, 1)
			defer env.Close()
			for i, op := range info.Samples(&core.Maker{Env: env}) {
				for _, mode := range []grad.Mode{{AllowUnused: true}, {AllowUnused: true, CreateGraph: true}} {
					err := shapes(info, op, mode, true)
					if constantLast(err) {
						err = shapes(info, op, mode, false)
					}
					if err != nil {
						t.Errorf("sample %d: %v", i, err)
					}
				}
			}
		})
	}
}

// constantLast tells whether an operation said that it has no gradient for an operand; it is its last.
func constantLast(err error) bool {
	return err != nil && strings.Contains(err.Error(), "has no gradient for")
}

// shapes compares each gradient with its operand; without last, the last floating-point one is a constant.
func shapes(info *core.Info, op core.Op, mode grad.Mode, last bool) (err error) {
	defer core.Recover(&err)
	all := operands(info, op)
	defer setOperands(info, op, all)
	in := slices.Clone(all)
	end := len(all) - 1 // the last floating-point operand
	for end > 0 && (all[end] == nil || !all[end].DType().IsFloat()) {
		end--
	}
	var xs, ys []*core.Tensor
	for i, x := range all {
		if x == nil || !x.DType().IsFloat() || len(xs) > 0 && i == end && !last {
			continue
		}
		in[i] = x.Env().Watch(x)
		xs = append(xs, in[i])
		if core.Is[core.InPlace](info) && i == 0 {
			in[i] = in[i].Copy()
		}
	}
	setOperands(info, op, in)
	for _, y := range info.Run(nil, op, nil) {
		if y.Tracked() {
			ys = append(ys, y)
		}
	}
	if len(ys) == 0 {
		return nil
	}
	seeds := make([]*core.Tensor, len(ys))
	for i, y := range ys {
		seeds[i] = y.Env().Zeros(y.DType(), y.Axes(), y.Sizes()...)
	}
	for i, g := range grad.Gradients(ys, xs, seeds, mode) {
		if g != nil && g.Shape() != xs[i].Shape() {
			return fmt.Errorf("the gradient of %s is %s", xs[i].Shape(), g.Shape())
		}
	}
	return nil
}
