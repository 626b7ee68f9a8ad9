package core

import (
	"math"
	"slices"
	"testing"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// binary is the operation of that name on x and y.
func binary(name string, x, y *Tensor, outer bool) *Tensor {
	info := Lookup(name)
	op := info.New()
	a := (*Binary)(pointerOf(op))
	a.X, a.Y, a.Outer = x, y, outer
	return info.Run(nil, op, nil)[0]
}

func unary(name string, x *Tensor) *Tensor {
	info := Lookup(name)
	op := info.New()
	(*Unary)(pointerOf(op)).X = x
	return info.Run(nil, op, nil)[0]
}

// rounded is v as the dtype holds it after a computation in f32 or f64; integers wrap.
func rounded(dt dtype.Type, v float64) float64 {
	switch dt {
	case dtype.F32:
		return float64(float32(v))
	case dtype.F16:
		return float64(dtype.F16ToF32(dtype.F32ToF16(float32(v))))
	case dtype.BF16:
		return float64(dtype.BF16ToF32(dtype.F32ToBF16(float32(v))))
	case dtype.I8:
		return float64(int8(int64(v)))
	case dtype.U8:
		return float64(uint8(int64(v)))
	case dtype.I16:
		return float64(int16(int64(v)))
	case dtype.I32:
		return float64(int32(int64(v)))
	case dtype.Bool:
		return toFloat(v != 0)
	}
	return v
}

var arithmetic = map[string]func(x, y float64) float64{
	"add": func(x, y float64) float64 { return x + y },
	"sub": func(x, y float64) float64 { return x - y },
	"mul": func(x, y float64) float64 { return x * y },
	"div": func(x, y float64) float64 { return x / y },
	"eq":  func(x, y float64) float64 { return toFloat(x == y) },
	"ne":  func(x, y float64) float64 { return toFloat(x != y) },
	"lt":  func(x, y float64) float64 { return toFloat(x < y) },
	"le":  func(x, y float64) float64 { return toFloat(x <= y) },
	"gt":  func(x, y float64) float64 { return toFloat(x > y) },
	"ge":  func(x, y float64) float64 { return toFloat(x >= y) },
}

// resultDType is the dtype of an arithmetic operation on numbers of dt.
func resultDType(name string, dt dtype.Type) dtype.Type {
	switch {
	case name == "div" && !dt.IsFloat():
		return dtype.F32
	case len(name) == 2: // a comparison
		return dtype.Bool
	}
	return dt
}

// broadcastNames is the axes of a pointwise result by the rule as it is told to people: those of the
// operand that has most, the left one of equals, then the rest.
func broadcastNames(x, y []string) []string {
	if len(y) > len(x) {
		x, y = y, x
	}
	names := slices.Clone(x)
	for _, n := range y {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

func TestBinary(t *testing.T) {
	check(t, func(w *world) {
		name := drawn(w, "add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge")
		dt := drawn(w, numberDTypes...)
		xs := w.names(worldNames[:4], 0)
		ys := w.names(append(slices.Clone(xs), "e"), 0)
		x, y := w.tensor(dt, xs...), w.tensor(dt, ys...)
		if w.bool() {
			x, y = y, x
		}
		names := broadcastNames(x.axes.Names(), y.axes.Names())
		outer := len(names) > max(x.Rank(), y.Rank())
		a, b := naiveOf(x), naiveOf(y)
		want := naive{names: names, sizes: w.sizes, at: func(i index) float64 {
			return rounded(resultDType(name, dt), arithmetic[name](a.at(i), b.at(i)))
		}}
		z := binary(name, x, y, outer)
		if z.dtype != resultDType(name, dt) {
			w.Fatalf("%s of %s gives %s", name, dt, z.dtype)
		}
		w.same(z, want, 0)
	})
}

// TestNumbers mixes tensors and plain numbers, which take the tensor's dtype.
func TestNumbers(t *testing.T) {
	e := NewEnv(0, 1)
	for _, dt := range numberDTypes {
		x := e.FromInts(dt, []int64{1, 2, 3}, axisList("a"), 3)
		for _, number := range []*Tensor{Number(e, 0, 2, true), Number(e, 2, 0, false)} {
			if number.dtype == dtype.F64 && dt.IsInt() {
				continue
			}
			want := naive{names: []string{"a"}, sizes: index{"a": 3}, at: func(i index) float64 {
				return rounded(dt, 2-float64(i["a"]+1))
			}}
			z := binary("sub", number, x, false)
			if err := want.compare(z, 0); err != nil || z.dtype != dt {
				t.Errorf("2 - %s: %s, %v", x.Shape(), z.Shape(), err)
			}
		}
	}
	half := binary("mul", e.FromInts(dtype.F16, []int64{3}, axisList("a"), 1), Number(e, 0.1, 0, false), false)
	want := rounded(dtype.F16, 3*float64(dtype.F16ToF32(dtype.F32ToF16(0.1))))
	if got := half.Values()[0]; half.dtype != dtype.F16 || got != want {
		t.Errorf("f16 3 * 0.1 = %v of %s, want %v", got, half.dtype, want)
	}
	for _, c := range []struct {
		x, y *Tensor
		want dtype.Type
	}{
		{Number(e, 1.5, 0, false), Number(e, 2.5, 0, false), dtype.F32},
		{Number(e, 0, 1, true), Number(e, 0, 2, true), dtype.I64},
	} {
		if z := binary("add", c.x, c.y, false); z.dtype != c.want || z.Rank() != 0 {
			t.Errorf("two numbers give %s, want a scalar of %s", z.Shape(), c.want)
		}
	}
}

func TestIntegersWrap(t *testing.T) {
	e := NewEnv(0, 1)
	for _, dt := range integers {
		lo, hi := intRange(dt)
		top, one := e.FromInts(dt, []int64{hi}, axis.Empty), e.FromInts(dt, []int64{1}, axis.Empty)
		if got := top.Add(one).Item(); got != lo {
			t.Errorf("%s: %d + 1 = %v, want %d", dt, hi, got, lo)
		}
		if got := e.FromInts(dt, []int64{lo}, axis.Empty).Sub(one).Item(); got != hi {
			t.Errorf("%s: %d - 1 = %v, want %d", dt, lo, got, hi)
		}
		if got := top.Mul(top).Item(); got != int64(1) {
			t.Errorf("%s: %d² = %v, want 1", dt, hi, got)
		}
	}
}

func TestUnary(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, c := range map[string]struct {
		f   func(float64) float64
		ulp float64 // of f32
	}{
		"neg":     {func(x float64) float64 { return -x }, 0},
		"exp":     {math.Exp, 2},
		"log":     {math.Log, 2},
		"sqrt":    {math.Sqrt, 0},
		"tanh":    {math.Tanh, 2},
		"sigmoid": {func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 3},
		"silu":    {func(x float64) float64 { return x / (1 + math.Exp(-x)) }, 4},
	} {
		e := NewEnv(0, 1)
		values := []float64{0, math.Copysign(0, -1), 1, -1, inf, nan, 0.5, -0.25, 3, 20, -20, 80, 1e-30, 1e-3}
		if name != "silu" { // -Inf · 0
			values = append(values, -inf)
		}
		for _, dt := range floats {
			x := e.FromFloats(dt, values, axisList("a"), len(values))
			y, xs := unary(name, x).Values(), x.Values()
			for i := range y {
				got, exact := y[i].(float64), c.f(xs[i].(float64))
				want := rounded(dt, exact)
				unit := math.Abs(want) * 0x1p-23
				switch dt {
				case dtype.F64:
					unit = math.Abs(want) * 0x1p-52
				case dtype.F16: // one rounding of a result that is off by some ulp of f32
					unit = max(math.Abs(want)*0x1p-10, 0x1p-24) / 4
				case dtype.BF16:
					unit = math.Abs(want) * 0x1p-7 / 4
				}
				if !(got == want || math.IsNaN(got) && math.IsNaN(want) || math.Abs(got-want) <= c.ulp*unit) {
					t.Errorf("%s(%v) of %s = %v, want %v", name, xs[i], dt, got, want)
				}
			}
		}
	}
}

func TestSwiGLU(t *testing.T) {
	check(t, func(w *world) {
		dt := drawn(w, floats...)
		xs := w.names(worldNames[:4], 0)
		ys := w.names(xs2(xs), 0)
		x, y := w.tensor(dt, xs...), w.tensor(dt, ys...)
		a, b := naiveOf(x), naiveOf(y)
		want := naive{names: broadcastNames(xs, ys), sizes: w.sizes, at: func(i index) float64 {
			return rounded(dt, a.at(i)/(1+math.Exp(-a.at(i)))*b.at(i))
		}}
		w.same(x.SwiGLU(y), want, loose[dt])
	})
}

// xs2 is the names, or one if there is none.
func xs2(names []string) []string {
	if len(names) == 0 {
		return []string{"e"}
	}
	return names
}
