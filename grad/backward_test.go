package grad_test

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/grad"
)

// vector is f64 numbers along one axis.
func vector(env *core.Env, name string, values ...float64) *core.Tensor {
	axes, err := axis.Of(name)
	if err != nil {
		panic(err)
	}
	return env.FromFloats(dtype.F64, values, axes, len(values))
}

// list is a tensor's elements; nil for no tensor.
func list(t *core.Tensor) []float64 {
	if t == nil {
		return nil
	}
	var l []float64
	for _, v := range t.Values() {
		l = append(l, v.(float64))
	}
	return l
}

// heap is the bytes in use on the Go heap after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// mustFail runs f and insists on a *core.Error whose text contains want.
func mustFail(t *testing.T, want string, f func()) {
	t.Helper()
	var err error
	func() {
		defer core.Recover(&err)
		f()
	}()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
}

func backward(y *core.Tensor) { grad.Backward([]*core.Tensor{y}, nil, grad.Mode{}) }

func TestLongChain(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 1, 2, 3))
	c := vector(env, "a", 1, 1, 1)
	for how, n := range map[string]int64{"backward": 1_000_000, "free": 200_000} {
		if testing.Short() {
			n /= 4
		}
		before := heap()
		y := x.Add(c)
		for range n - 1 {
			next := y.Add(c)
			y.Free()
			y = next
		}
		if per := (heap() - before) / n; per > 1024 {
			t.Errorf("%s: %d bytes a node, want at most 1024", how, per)
		} else {
			t.Logf("%s: %d bytes a node", how, per)
		}
		if how == "backward" {
			loss := y.Sum()
			y.Free()
			backward(loss)
			loss.Free()
			if diff := cmp.Diff([]float64{1, 1, 1}, list(x.Variable().Grad)); diff != "" {
				t.Error(diff)
			}
		} else {
			y.Free()
		}
		if left := heap() - before; left > n {
			t.Errorf("%s: %d bytes are left", how, left)
		}
	}
}

func TestResidualAddsPinNothing(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	axes, _ := axis.Of("a")
	x := env.Watch(env.Zeros(dtype.F32, axes, 1000))
	f := env.Zeros(dtype.F32, axes, 1000)
	before := env.Memory().Buffers
	y := x.Add(f)
	for range 10 {
		next := y.Add(f)
		y.Free()
		y = next
	}
	if got := env.Memory().Buffers - before; got != 1 {
		t.Errorf("11 residual adds hold %d buffers, want that of the result", got)
	}
	y.Free()
	if got := env.Memory().Buffers - before; got != 0 {
		t.Errorf("%d buffers are left", got)
	}
}

// TestMemoryReturns builds a graph of all kinds of operations, walks it and closes everything.
func TestMemoryReturns(t *testing.T) {
	env := core.NewEnv(0, 2)
	defer env.Close()
	m := &core.Maker{Env: env}
	s := env.Open()
	w := env.Watch(m.Tensor(dtype.F32, "ffn=50 embed=40"))
	x := m.Tensor(dtype.F32, "row=60 embed=40")
	gain := env.Watch(m.Tensor(dtype.F32, "embed=40"))
	for _, mode := range []grad.Mode{{}, {RetainGraph: true}, {CreateGraph: true}} {
		h := x.RMSNorm(gain, 1e-5).Dot(w, "embed").SiLU().Softmax("ffn")
		h, _ = h.TopK(20, "ffn", "choice")
		loss := h.Mul(h).Mean()
		grad.Backward([]*core.Tensor{loss}, nil, mode)
		env.SetGrad(w.Variable(), nil) // with create_graph, gradient and variable hold each other
		env.SetGrad(gain.Variable(), nil)
	}
	s.Close()
	w.Free()
	gain.Free()
	if got := env.Memory(); got.InUse != 0 || got.Buffers != 0 {
		t.Errorf("%+v, want nothing in use", got)
	}
}

// TestFreeBeforeBackward frees every operand and intermediate result as soon as it has been used.
func TestFreeBeforeBackward(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	m := &core.Maker{Env: env}
	start := m.Tensor(dtype.F64, "a=100")
	run := func(free bool) []float64 {
		x := env.Watch(start)
		var used []*core.Tensor
		use := func(t *core.Tensor) *core.Tensor { used = append(used, t); return t }
		y := use(use(x.Mul(x)).Exp())
		z := use(use(y.Sigmoid()).Mul(y))
		loss := use(z.Softmax("a")).Mul(x).Sum()
		kept := x.Alias()
		if free {
			for _, t := range append(used, x) {
				t.Free()
			}
		}
		backward(loss)
		return list(kept.Variable().Grad)
	}
	if diff := cmp.Diff(run(false), run(true)); diff != "" {
		t.Error(diff)
	}
}

func TestMisuse(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 1, 2, 3))
	other := env.Watch(vector(env, "a", 1, 2, 3))

	y := x.Mul(x).Sum()
	backward(y)
	mustFail(t, "the graph through sum at outside of a script was used by an earlier backward and let go; ",
		func() { backward(y) })
	mustFail(t, "backward: loss must be a scalar, got f64[a=3]; use loss.mean(\"a\")", func() { backward(x.Mul(x)) })
	mustFail(t, "backward: loss, f64, depends on no variable", func() { backward(vector(env, "a", 1).Sum()) })
	mustFail(t, "seeds[0] is f64[a=2] for an output f64[a=3]", func() {
		grad.Backward([]*core.Tensor{x.Mul(x)}, []*core.Tensor{vector(env, "a", 1, 2)}, grad.Mode{})
	})
	mustFail(t, "got 2 seeds for 1 outputs", func() {
		grad.Backward([]*core.Tensor{x.Mul(x)}, make([]*core.Tensor, 2), grad.Mode{})
	})
	mustFail(t, "grad: the outputs do not depend on inputs[1], f64[a=3]", func() {
		grad.Gradients([]*core.Tensor{x.Sum()}, []*core.Tensor{x, other}, nil, grad.Mode{})
	})
	mustFail(t, "grad: inputs[0], f64[a=1], depends on no variable", func() {
		grad.Gradients([]*core.Tensor{x.Sum()}, []*core.Tensor{vector(env, "a", 1)}, nil, grad.Mode{})
	})

	// An operand changed after mul saved it.
	saved := vector(env, "a", 4, 5, 6)
	loss := x.Mul(saved).Sum()
	saved.SetSlice(vector(env, "a", 0), "a", 0, 1)
	mustFail(t, "f64[a=3], which mul at outside of a script saved for its gradient, was changed in place since",
		func() { backward(loss) })

	// A result changed after exp saved it.
	e := x.Exp()
	e.SetSlice(vector(env, "a", 0), "a", 0, 1)
	mustFail(t, "which exp at outside of a script saved", func() { backward(e.Sum()) })

	// Views of memory that changed under them.
	base := x.Add(x)
	view := base.Slice("a", 1, 3, 1)
	base.SetSlice(vector(env, "a", 0), "a", 0, 1)
	mustFail(t, "add: x[a=2], made at outside of a script, was changed in place since", func() { view.Add(view) })
	base = vector(env, "a", 0, 0, 0)
	view = base.Slice("a", 0, 1, 1)
	base.SetSlice(x.Slice("a", 0, 1, 1), "a", 0, 1)
	mustFail(t, "was changed in place since", func() { view.Add(view) })
	mustFail(t, "set: x[a=1] is a view", func() {
		vector(env, "a", 0, 0).Slice("a", 0, 1, 1).SetSlice(x.At("a", 0), "a", 0, 1)
	})
	mustFail(t, "set: x[a=3] is a variable", func() { x.SetSlice(vector(env, "a", 0), "a", 0, 1) })

	if got := list(x.Variable().Grad); cmp.Diff([]float64{2, 4, 6}, got) != "" {
		t.Errorf("the failures changed the gradient to %v", got)
	}
}

// TestInPlace writes tracked values into a constant and constants into tracked values.
func TestInPlace(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 1, 2, 3))
	s := env.Open()
	y := vector(env, "a", 0, 0, 0, 0, 10)
	y.SetSlice(x, "a", 1, 4)
	y.SetSlice(vector(env, "a", 7), "a", 2, 3)
	y.SetSlice(y.Slice("a", 1, 2, 1), "a", 4, 5)
	loss := y.Mul(y).Sum() // 0, x0, 7, x2, x0
	backward(loss)
	if diff := cmp.Diff([]float64{4, 0, 6}, list(x.Variable().Grad)); diff != "" {
		t.Error(diff)
	}
	s.Close()
}

// TestUpdate changes a variable in place without recording, as an optimizer does.
func TestUpdate(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 1, 2))
	for range 3 {
		loss := x.Mul(x).Sum()
		backward(loss)
		env.Record(false, func() {
			if x.Mul(x).Tracked() {
				t.Error("recorded where recording is off")
			}
			x.SetSlice(x.Sub(x.Variable().Grad.Mul(core.Number(env, 0.25, 0, false))), "a", 0, 2)
		})
		x.Variable().Grad = nil
	}
	if diff := cmp.Diff([]float64{0.125, 0.25}, list(x)); diff != "" {
		t.Error(diff)
	}
}

func TestAccumulates(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 1, 2))
	y := env.Watch(vector(env, "a", 5, 6))
	z := x.Add(y) // both get the same gradient
	backward(z.Mul(z).Sum())
	first := x.Variable().Grad.Alias()
	backward(x.Mul(x).Mul(x).Sum())
	if diff := cmp.Diff([]float64{15, 28}, list(x.Variable().Grad)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{12, 16}, list(y.Variable().Grad)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{12, 16}, list(first)); diff != "" {
		t.Errorf("a handle on the first gradient changed: %s", diff)
	}
	x.Variable().Grad.SetSlice(vector(env, "a", 0, 0), "a", 0, 2)
	if diff := cmp.Diff([]float64{12, 16}, list(y.Variable().Grad)); diff != "" {
		t.Errorf("another gradient changed: %s", diff)
	}
}

// TestHandles closes handles one by one: what others need stays, and a variable's gradient goes with it.
func TestHandles(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 1, 2))
	y := x.Mul(x)
	alias := y.Alias()
	y.Free()
	x2 := x.Alias()
	x.Free()
	loss := alias.Sum()
	backward(loss)
	g := x2.Variable().Grad
	if diff := cmp.Diff([]float64{2, 4}, list(g)); diff != "" {
		t.Error(diff)
	}
	x2.Free()
	if g.Closed() {
		t.Error("the gradient went while a result still leads to the variable")
	}
	alias.Free()
	loss.Free()
	if !g.Closed() {
		t.Error("the gradient outlives the variable")
	}
	z := env.Watch(vector(env, "a", 1))
	if shared := z.Mul(z).Share(); shared.Tracked() || shared.Add(shared).Tracked() {
		t.Error("a gradient flows through a shared tensor")
	}
}

// TestDiamonds sums the ways through graphs that part and meet again.
func TestDiamonds(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 2))
	y := x
	for range 60 { // 2^60 ways
		y = y.Add(y)
	}
	backward(y.Sum())
	if diff := cmp.Diff([]float64{1 << 60}, list(x.Variable().Grad)); diff != "" {
		t.Error(diff)
	}
}

// TestShapeOnly walks without data: complaints come, gradients do not.
func TestShapeOnly(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 1, 2))
	before := x.Mul(x).Sum()
	backward(x.Mul(x).Sum())
	env.ShapeOnly(true)
	y := vector(env, "a", 3, 4).Mul(x)
	y.SetSlice(x.Slice("a", 0, 1, 1), "a", 1, 2)
	mustFail(t, "loss must be a scalar", func() { backward(y) })
	backward(y.Sum())
	if g := x.Variable().Grad; g.Shape() != "f64[a=2]" || g.String() != "f64[a=2] without data" {
		t.Errorf("the gradient is %s", g)
	}
	backward(before)
	env.ShapeOnly(false)
	if diff := cmp.Diff([]float64{2, 4}, list(x.Variable().Grad)); diff != "" {
		t.Error(diff)
	}
	backward(before)
	if diff := cmp.Diff([]float64{4, 8}, list(x.Variable().Grad)); diff != "" {
		t.Error(diff)
	}
}

func TestGradients(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 1, 2))
	unused := env.Watch(vector(env, "a", 1, 2))
	y := x.Mul(x)
	z := y.Mul(x) // x³; y is an input too, and x lies behind it
	got := grad.Gradients([]*core.Tensor{z.Sum(), y.Sum()}, []*core.Tensor{x, y, unused, x, z}, nil,
		grad.Mode{RetainGraph: true, AllowUnused: true})
	want := [][]float64{{5, 16}, {2, 3}, nil, {5, 16}, {1, 1}}
	for i, g := range got {
		if diff := cmp.Diff(want[i], list(g)); diff != "" {
			t.Errorf("input %d: %s", i, diff)
		}
	}
	seed := vector(env, "a", 10, 100)
	got = grad.Gradients([]*core.Tensor{z}, []*core.Tensor{x, z}, []*core.Tensor{seed}, grad.Mode{})
	if diff := cmp.Diff([]float64{30, 1200}, list(got[0])); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{10, 100}, list(got[1])); diff != "" {
		t.Error(diff)
	}
	if x.Variable().Grad != nil {
		t.Error("Gradients changed a Grad")
	}
}

// TestPruned walks only towards the wanted input: the rest of the graph stays usable.
func TestPruned(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	a, b := env.Watch(vector(env, "a", 2)), env.Watch(vector(env, "a", 3))
	left, right := a.Mul(a), b.Mul(b)
	y := left.Add(right).Sum()
	got := grad.Gradients([]*core.Tensor{y}, []*core.Tensor{a}, nil, grad.Mode{})
	if diff := cmp.Diff([]float64{4}, list(got[0])); diff != "" {
		t.Error(diff)
	}
	backward(right.Sum())
	if diff := cmp.Diff([]float64{6}, list(b.Variable().Grad)); diff != "" {
		t.Error(diff)
	}
	mustFail(t, "through mul", func() { backward(left.Sum()) })
}

// TestHigherOrder differentiates x⁵ five times.
func TestHigherOrder(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 2, 3))
	y := x.Mul(x).Mul(x).Mul(x).Mul(x)
	want := [][]float64{{80, 405}, {160, 540}, {240, 540}, {240, 360}, {120, 120}}
	for i, w := range want {
		y = grad.Gradients([]*core.Tensor{y.Sum()}, []*core.Tensor{x}, nil, grad.Mode{CreateGraph: true})[0]
		if diff := cmp.Diff(w, list(y)); diff != "" {
			t.Errorf("derivative %d: %s", i+1, diff)
		}
	}
	if y.Tracked() {
		mustFail(t, "do not depend", func() {
			grad.Gradients([]*core.Tensor{y.Sum()}, []*core.Tensor{x}, nil, grad.Mode{})
		})
	}
}

// TestOnceTwice takes second derivatives through operations that are Once, where an operand occurs twice and one
// depends on another.
func TestOnceTwice(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	m := &core.Maker{Env: env}
	x := m.Tensor(dtype.F64, "row=3 embed=4")
	w := m.Tensor(dtype.F64, "embed=4")
	err := grad.Check(func(xs []*core.Tensor) *core.Tensor {
		gain := xs[0].Mean("row")
		y := xs[0].RMSNorm(gain, 1e-5).RMSNorm(xs[1], 1e-5)
		return y.RMSNorm(y.At("row", 0), 1e-5)
	}, []*core.Tensor{x, w}, 1e-7)
	if err != nil {
		t.Error(err)
	}
	h := m.Tensor(dtype.F64, "seq=3 head=2 head_dim=2")
	err = grad.Check(func(xs []*core.Tensor) *core.Tensor {
		return xs[0].Attention(xs[0], xs[0].Mul(xs[0]), -1)
	}, []*core.Tensor{h}, 1e-7)
	if err != nil {
		t.Error(err)
	}
}

// TestCheckFails gives Check wrong gradients: those of a detached factor.
func TestCheckFails(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := vector(env, "a", 1, 2)
	half := func(xs []*core.Tensor) *core.Tensor { return xs[0].Mul(xs[0].Detach()) }
	err := grad.Check(half, []*core.Tensor{x}, 1e-6)
	if err == nil || !strings.Contains(err.Error(), "check: gradient of xs[0] at element 0: got ") {
		t.Errorf("got %v", err)
	}
	// The first order is right here, the second is not: the slope 2x is taken for a constant.
	err = grad.Check(func(xs []*core.Tensor) *core.Tensor {
		d := xs[0].Detach()
		return d.Mul(d).Add(xs[0].Sub(d).Mul(d.Add(d)))
	}, []*core.Tensor{x}, 1e-6)
	if err == nil || !strings.Contains(err.Error(), "second-order") {
		t.Errorf("got %v", err)
	}
}

// TestSameBits runs a network on different numbers of workers.
func TestSameBits(t *testing.T) {
	var want []float64
	for _, workers := range []int{1, 2, 3, 8} {
		env := core.NewEnv(0, workers)
		got := network(env)
		env.Close()
		if want == nil {
			want = got
		}
		for i := range want {
			if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
				t.Fatalf("%d workers: element %d is %v, with 1 worker %v", workers, i, got[i], want[i])
			}
		}
	}
}

// network is the gradients of a small transformer.
func network(env *core.Env) []float64 {
	m := &core.Maker{Env: env}
	x := m.Tensor(dtype.F32, "seq=130 embed=64")
	weight := func(shape string) *core.Tensor { return env.Watch(m.Tensor(dtype.F32, shape)) }
	wq, wk := weight("head=4 head_dim=16 embed=64"), weight("kv_head=2 head_dim=16 embed=64")
	wv := weight("kv_head=2 head_dim=16 embed=64")
	gain, up, down := weight("embed=64"), weight("ffn=200 embed=64"), weight("embed=64 ffn=200")
	for range 2 {
		qkv := x.RMSNorm(gain, 1e-5).Dots("embed", wq, wk, wv)
		x = x.Add(qkv[0].Attention(qkv[1], qkv[2], -1).Dot(wq, "head head_dim"))
		u := x.RMSNorm(gain, 1e-5).Dot(up, "embed")
		x = x.Add(u.SwiGLU(u).Dot(down, "ffn"))
	}
	backward(x.Mul(x).Mean().Add(x.LinearCrossEntropy(up, m.Indices(dtype.I64, 200, "seq=130"), "ffn")))
	var all []float64
	for _, w := range []*core.Tensor{gain, wq, wk, wv, up, down} {
		all = append(all, list(w.Variable().Grad)...)
	}
	return all
}
