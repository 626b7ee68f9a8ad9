package core

import (
	"math"
	"slices"
	"testing"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// reduce is the operation of that name over the axes; nil is all of them.
func reduce(name string, x *Tensor, axes Axes) *Tensor {
	info := Lookup(name)
	op := info.New()
	a := (*Reduce)(pointerOf(op))
	a.X, a.Axes = x, axes
	return info.Run(nil, op, nil)[0]
}

// runs is the elements of x along the axes, in their order, for every place of the others.
func (n naive) runs(axes []string) (kept []string, run func(i index) []float64) {
	for _, name := range n.names {
		if !slices.Contains(axes, name) {
			kept = append(kept, name)
		}
	}
	return kept, func(i index) (values []float64) {
		for _, j := range eachOf(axes, n.sizes) {
			values = append(values, n.at(i.place(j)))
		}
		return values
	}
}

// tree is the sum in 16 lanes that the documentation of sum promises, in f32 or f64.
func tree(dt dtype.Type, run []float64) float64 {
	round := func(v float64) float64 {
		if dt == dtype.F64 {
			return v
		}
		return float64(float32(v))
	}
	var lanes [16]float64
	for i, v := range run {
		lanes[i%16] = round(lanes[i%16] + v)
	}
	for h := 8; h > 0; h /= 2 {
		for j := range h {
			lanes[j] = round(lanes[j] + lanes[j+h])
		}
	}
	return lanes[0]
}

var reductions = map[string]func(dt dtype.Type, run []float64) float64{
	"sum": tree,
	"mean": func(dt dtype.Type, run []float64) float64 {
		if dt == dtype.F64 {
			return tree(dt, run) / float64(len(run))
		}
		return float64(float32(tree(dt, run)) / float32(len(run)))
	},
	"max": func(_ dtype.Type, run []float64) float64 { return slices.Max(run) },
}

func TestReduce(t *testing.T) {
	check(t, func(w *world) {
		name := drawn(w, "sum", "mean", "max")
		dt := drawn(w, append(numberDTypes, dtype.Bool)...)
		if name == "mean" {
			dt = drawn(w, floats...)
		}
		names := w.names(worldNames[:4], 0)
		x := w.tensor(dt, names...)
		over, axes := names, Axes(nil)
		if w.bool() && len(names) > 0 {
			over = w.names(names, 1)
			axes = axisList(over...)
		}
		a := naiveOf(x)
		kept, run := a.runs(over)
		if name == "max" && slices.Contains(w.sized(over), 0) {
			return // refused, see TestMisuse
		}
		out := dt
		if name == "sum" && !dt.IsFloat() {
			out = dtype.I64
		}
		y := reduce(name, x, axes)
		if y.dtype != out {
			w.Fatalf("%s of %s gives %s", name, dt, y.dtype)
		}
		w.same(y, a.with(kept, nil, func(i index) float64 { return rounded(out, reductions[name](dt, run(i))) }), 0)
	})
}

// TestSumOrder insists on the order of the call, not of memory, with numbers whose sums round.
func TestSumOrder(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 1)}
	for _, dt := range []dtype.Type{dtype.F32, dtype.F64} {
		x := m.Tensor(dt, "a=7 b=5 c=11")
		for _, order := range []string{"a b c", "c b a", "b a c", "c a", "b"} {
			axes, err := axis.Parse(order)
			if err != nil {
				t.Fatal(err)
			}
			a := naiveOf(x)
			kept, run := a.runs(axes.Names())
			want := a.with(kept, nil, func(i index) float64 { return tree(dt, run(i)) })
			for _, stored := range []*Tensor{x, x.Order("c a b").Copy().Order("a b c")} {
				if err := want.compare(reduce("sum", stored, axes), 0); err != nil {
					t.Errorf("sum over %q of %s: %v", order, dt, err)
				}
			}
		}
	}
}

func TestMaxAndArgMax(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	e := NewEnv(0, 1)
	for _, c := range []struct {
		values []float64
		max    float64
		place  int64
	}{
		{[]float64{1, 3, 2}, 3, 1},
		{[]float64{2, 3, 3, 1, 3}, 3, 1},
		{[]float64{-inf, -inf}, -inf, 0},
		{[]float64{1, nan, 3, nan}, nan, 1},
		{[]float64{nan}, nan, 0},
		{[]float64{inf, nan}, nan, 1},
		{[]float64{-2, -1}, -1, 1},
		{[]float64{0, 0}, 0, 0},
	} {
		for _, dt := range floats {
			x := e.FromFloats(dt, c.values, axisList("a"), len(c.values))
			if got := x.Max().Item().(float64); got != c.max && !(math.IsNaN(got) && math.IsNaN(c.max)) {
				t.Errorf("max of %s %v = %v, want %v", dt, c.values, got, c.max)
			}
			if got := x.ArgMax("a").Item(); got != c.place {
				t.Errorf("argmax of %s %v = %v, want %v", dt, c.values, got, c.place)
			}
		}
	}
	if got := e.FromInts(dtype.Bool, []int64{0, 1, 1}, axisList("a"), 3).ArgMax("a").Item(); got != int64(1) {
		t.Errorf("argmax of [False, True, True] = %v, want 1", got)
	}
}

func TestArgMax(t *testing.T) {
	check(t, func(w *world) {
		names := w.names(worldNames[:4], 1)
		x := w.tensor(drawn(w, append(numberDTypes, dtype.Bool)...), names...)
		along := drawn(w, names...)
		if w.sizes[along] == 0 {
			return
		}
		a := naiveOf(x)
		kept, run := a.runs([]string{along})
		w.same(x.ArgMax(along), a.with(kept, nil, func(i index) float64 {
			values := run(i)
			return float64(slices.Index(values, slices.Max(values)))
		}), 0)
	})
}

func TestSoftmax(t *testing.T) {
	check(t, func(w *world) {
		names := w.names(worldNames[:4], 1)
		dt := drawn(w, floats...)
		x := w.tensor(dt, names...)
		along := drawn(w, names...)
		a := naiveOf(x)
		_, run := a.runs([]string{along})
		want := a.with(names, nil, func(i index) float64 {
			total := 0.0
			for _, v := range run(i) {
				total += math.Exp(v)
			}
			return rounded(dt, math.Exp(a.at(i))/total)
		})
		w.same(x.Softmax(along), want, loose[dt])
	})
}

func TestSoftmaxOfLargeNumbers(t *testing.T) {
	e, inf, nan := NewEnv(0, 1), math.Inf(1), math.NaN()
	for _, c := range []struct{ x, want []float64 }{
		{[]float64{1000, 1000}, []float64{0.5, 0.5}},
		{[]float64{-1000, 1000, -inf}, []float64{0, 1, 0}},
		{[]float64{-inf, -inf}, []float64{nan, nan}},
		{[]float64{0, nan}, []float64{nan, nan}},
	} {
		y := e.FromFloats(dtype.F32, c.x, axisList("a"), len(c.x)).Softmax("a")
		want := e.FromFloats(dtype.F32, c.want, axisList("a"), len(c.want))
		if err := near(y, want, 0); err != nil {
			t.Errorf("softmax of %v: %v", c.x, err)
		}
	}
}

func TestRMSNorm(t *testing.T) {
	check(t, func(w *world) {
		names := w.names(worldNames[:4], 1)
		dt := drawn(w, floats...)
		along := drawn(w, names...)
		x, weight := w.tensor(dt, names...), w.tensor(dt, along)
		eps := drawn(w, 1e-6, 1e-5, 0.5)
		a, b := naiveOf(x), naiveOf(weight)
		_, run := a.runs([]string{along})
		want := a.with(names, nil, func(i index) float64 {
			squares, values := 0.0, run(i)
			for _, v := range values {
				squares += v * v
			}
			return rounded(dt, a.at(i)/math.Sqrt(squares/float64(len(values))+eps)*b.at(i))
		})
		w.same(x.RMSNorm(weight, eps), want, loose[dt])
	})
}
