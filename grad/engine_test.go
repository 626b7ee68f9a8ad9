package grad_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/grad"
)

// block is the weights of a transformer block.
type block struct{ gain, q, k, v, o, up, down *core.Tensor }

func newBlock(m *core.Maker) block {
	weight := func(shape string) *core.Tensor {
		w := m.Tensor(dtype.F32, shape)
		defer w.Free()
		small := w.Mul(core.Number(m.Env, 0.1, 0, false))
		defer small.Free()
		return m.Env.Watch(small.Copy())
	}
	return block{weight("embed=32"), weight("head=4 head_dim=8 embed=32"), weight("kv_head=4 head_dim=8 embed=32"),
		weight("kv_head=4 head_dim=8 embed=32"), weight("head=4 head_dim=8 embed=32"), weight("ffn=128 embed=32"),
		weight("embed=32 ffn=128")}
}

func (b block) all() []*core.Tensor { return []*core.Tensor{b.gain, b.q, b.k, b.v, b.o, b.up, b.down} }

func (b block) run(x *core.Tensor) *core.Tensor {
	h := x.RMSNorm(b.gain, 1e-5)
	x = x.Add(h.Dot(b.q, "embed").Attention(h.Dot(b.k, "embed"), h.Dot(b.v, "embed"), -1).Dot(b.o, "head head_dim"))
	u := x.RMSNorm(b.gain, 1e-5).Dot(b.up, "embed").GELU()
	return x.Add(u.Dropout(0.1, true).Dot(b.down, "ffn"))
}

// model is eight blocks; with checkpoints, each is one.
type model struct {
	env    *core.Env
	blocks []block
	x      *core.Tensor
}

func newModel(env *core.Env) *model {
	m := &core.Maker{Env: env}
	n := &model{env: env, x: m.Tensor(dtype.F32, "seq=64 embed=32")}
	for range 8 {
		n.blocks = append(n.blocks, newBlock(m))
	}
	return n
}

// loss runs each block in a scope, as a model does.
func (n *model) loss(checkpoints bool) *core.Tensor {
	x := n.x
	for _, b := range n.blocks {
		if checkpoints {
			run := func(xs []*core.Tensor) []*core.Tensor { return []*core.Tensor{b.run(xs[0])} }
			x = grad.Checkpoint(n.env, run, x)[0]
			continue
		}
		s := n.env.Open()
		x = b.run(x)
		s.Close(x)
	}
	return x.Mul(x).Mean()
}

// gradients is the bits of the gradients of all weights, which it clears.
func (n *model) gradients() (bits []uint32) {
	for _, b := range n.blocks {
		for _, w := range b.all() {
			for _, g := range w.Variable().Grad.Float32s() {
				bits = append(bits, math.Float32bits(g))
			}
			n.env.SetGrad(w.Variable(), nil)
		}
	}
	return bits
}

// TestCheckpointModel holds a model of eight blocks with checkpoints, dropout in them, against the same without.
func TestCheckpointModel(t *testing.T) {
	env := core.NewEnv(0, 2)
	defer env.Close()
	n := newModel(env)
	run := func(checkpoints bool) (saved int64, bits []uint32, drawn []float64) {
		env.Seed(5)
		s := env.Open()
		defer s.Close()
		inner := env.Open()
		before := env.Memory().InUse
		loss := n.loss(checkpoints)
		inner.Close(loss)
		saved = env.Memory().InUse - before
		backward(loss)
		drawn = list(vector(env, "a", 1, 1, 1, 1, 1, 1).Dropout(0.5, true)) // the next random numbers
		return saved, n.gradients(), drawn
	}
	plain, want, next := run(false)
	lean, got, drawn := run(true)
	if diff := cmp.Diff(next, drawn); diff != "" {
		t.Errorf("checkpoints change the random numbers that come after: %s", diff)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checkpoints change the gradients: %.300s", diff)
	}
	t.Logf("the forward pass saves %d bytes, with checkpoints %d: %.1f %% less", plain, lean,
		100*(1-float64(lean)/float64(plain)))
	if lean > plain*4/10 {
		t.Errorf("checkpoints save %d bytes of %d, want 60 %% less", lean, plain)
	}
}

func mustAxes(names ...string) core.Axes {
	l, err := axis.Of(names...)
	if err != nil {
		panic(err)
	}
	return l
}

// deep is sin(x · w)² nested in checkpoints as often as depth says, with dropout between.
func deep(env *core.Env, x, w *core.Tensor, depth int) *core.Tensor {
	f := func(xs []*core.Tensor) []*core.Tensor {
		y := xs[0].Mul(w).Sin()
		if depth > 1 {
			y = deep(env, y.Dropout(0.3, true), w, depth-1)
			y = deep(env, y, w, depth-2).Add(xs[0])
		}
		return []*core.Tensor{y.Mul(y)}
	}
	if depth <= 0 {
		return f([]*core.Tensor{x})[0]
	}
	return grad.Checkpoint(env, f, x)[0]
}

// TestCheckpointsNest holds nested checkpoints against none, for gradients of first and second order and for
// graphs that are used twice.
func TestCheckpointsNest(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	run := func(on bool, mode grad.Mode) (all [][]float64) {
		env.Seed(3)
		x, w := env.Watch(vector(env, "a", 0.3, 0.7, 1.1)), env.Watch(vector(env, "a", 0.9, 0.8, 0.7))
		s := env.Open()
		defer s.Close()
		f := deep
		if !on {
			f = deepPlain
		}
		y := f(env, x, w, 4).Sum()
		inputs := []*core.Tensor{x, w}
		gs := grad.Gradients([]*core.Tensor{y}, inputs, nil, mode)
		all = append(all, list(y), list(gs[0]), list(gs[1]))
		if mode.RetainGraph {
			gs = grad.Gradients([]*core.Tensor{y}, inputs, nil, grad.Mode{})
			all = append(all, list(gs[0]), list(gs[1]))
		}
		if mode.CreateGraph {
			gs = grad.Gradients([]*core.Tensor{gs[0].Mul(gs[1]).Sum()}, inputs, nil, grad.Mode{})
			all = append(all, list(gs[0]), list(gs[1]))
		}
		return all
	}
	for _, mode := range []grad.Mode{{}, {RetainGraph: true}, {CreateGraph: true}} {
		if diff := cmp.Diff(run(false, mode), run(true, mode)); diff != "" {
			t.Errorf("%+v: %s", mode, diff)
		}
	}
}

// deepPlain is deep without checkpoints.
func deepPlain(env *core.Env, x, w *core.Tensor, depth int) *core.Tensor {
	y := x.Mul(w).Sin()
	if depth > 1 {
		y = deepPlain(env, y.Dropout(0.3, true), w, depth-1)
		y = deepPlain(env, y, w, depth-2).Add(x)
	}
	return y.Mul(y)
}

func TestCheckpointMisuse(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	w := env.Watch(vector(env, "a", 1, 2, 3))
	calls := 0
	odd := func(change func(x *core.Tensor) *core.Tensor) *core.Tensor {
		calls = 0
		return grad.Checkpoint(env, func(xs []*core.Tensor) []*core.Tensor {
			if calls++; calls > 1 {
				return []*core.Tensor{change(xs[0]).Exp()}
			}
			return []*core.Tensor{xs[0].Mul(w).Exp()}
		}, vector(env, "a", 4, 5, 6))[0].Sum()
	}
	y := odd(func(x *core.Tensor) *core.Tensor { return x.Slice("a", 0, 2, 1).Mul(w.Slice("a", 0, 2, 1)) })
	mustFail(t, "checkpoint: the function called at outside of a script did slice f64[a=3] where it had done "+
		"mul f64[a=3] f64[a=3] before", func() { backward(y) })
	y = odd(func(x *core.Tensor) *core.Tensor { return x })
	mustFail(t, "did nothing where it had done mul f64[a=3] f64[a=3]", func() { backward(y) })
	y = odd(func(x *core.Tensor) *core.Tensor { return x.Mul(w).Mul(w) })
	mustFail(t, "did mul f64[a=3] f64[a=3] where it had done exp f64[a=3]", func() { backward(y) })

	// What it reads was changed in place.
	x := vector(env, "a", 4, 5, 6)
	square := func(xs []*core.Tensor) []*core.Tensor { return []*core.Tensor{xs[0].Mul(w).Exp()} }
	y = grad.Checkpoint(env, square, x)[0].Sum()
	x.SetSlice(vector(env, "a", 0), "a", 0, 1)
	mustFail(t, "backward: args[0], f64[a=3], of checkpoint at outside of a script was changed in place since",
		func() { backward(y) })
	y = grad.Checkpoint(env, square, vector(env, "a", 4, 5, 6))[0].Sum()
	env.Record(false, func() { w.SetSlice(vector(env, "a", 0), "a", 0, 1) })
	mustFail(t, "f64[a=3], which mul at outside of a script reads, was changed in place", func() { backward(y) })

	y = grad.Checkpoint(env, square, vector(env, "a", 4, 5, 6))[0].Sum()
	backward(y)
	mustFail(t, "used by an earlier backward and let go", func() { backward(y) })
	mustFail(t, "asks for a gradient of what it computes itself", func() {
		grad.Checkpoint(env, func(xs []*core.Tensor) []*core.Tensor {
			return grad.Gradients([]*core.Tensor{xs[0].Mul(w).Exp().Sum()}, []*core.Tensor{w}, nil, grad.Mode{})
		}, vector(env, "a", 4, 5, 6))
	})
	if y := w.Mul(w).Sum(); !y.Tracked() {
		t.Error("nothing is recorded after a failure")
	}
}

// TestCheckpointInPlace changes, in a checkpoint, what it made itself.
func TestCheckpointInPlace(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	w := env.Watch(vector(env, "a", 1, 2, 3))
	f := func(xs []*core.Tensor) []*core.Tensor {
		y := vector(env, "a", 0, 0, 0)
		y.SetSlice(xs[0].Mul(w), "a", 0, 3)
		z := y.Exp()
		y.SetSlice(y.Slice("a", 0, 1, 1).Copy().Mul(w.Slice("a", 1, 2, 1)), "a", 2, 3)
		return []*core.Tensor{y.Exp().Mul(z)}
	}
	run := func(on bool) []float64 {
		s := env.Open()
		defer s.Close()
		x := vector(env, "a", 0.1, 0.2, 0.3)
		var y *core.Tensor
		if on {
			y = grad.Checkpoint(env, f, x)[0]
		} else {
			y = f([]*core.Tensor{x})[0]
		}
		return list(grad.Gradients([]*core.Tensor{y.Sum()}, []*core.Tensor{w}, nil, grad.Mode{})[0])
	}
	if diff := cmp.Diff(run(false), run(true)); diff != "" {
		t.Error(diff)
	}
}

// TestCheckpointLetsGo counts buffers: after a backward, after a graph that nobody walked, and of inference.
func TestCheckpointLetsGo(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	n := newModel(env)
	before := env.Memory()
	for _, how := range []string{"backward", "dropped", "inference"} {
		s := env.Open()
		if how == "inference" {
			env.Record(false, func() { n.loss(true) })
		} else if loss := n.loss(true); how == "backward" {
			backward(loss)
			n.gradients()
		}
		s.Close()
		if got := env.Memory(); got.Buffers != before.Buffers {
			t.Errorf("%s: %d buffers, before %d", how, got.Buffers, before.Buffers)
		}
	}
}

// twice is 2x by a custom gradient that says 3.
func twice(env *core.Env, x *core.Tensor) *core.Tensor {
	return env.Custom("twice", []*core.Tensor{x}, func(xs []*core.Tensor) []*core.Tensor {
		return []*core.Tensor{xs[0].Add(xs[0])}
	}, func(xs, ys, gys []*core.Tensor) []*core.Tensor {
		return []*core.Tensor{gys[0].Mul(core.Number(env, 3, 0, false))}
	})[0]
}

func TestCustom(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 1, 2))
	y := twice(env, x)
	if diff := cmp.Diff([]float64{2, 4}, list(y)); diff != "" {
		t.Error(diff)
	}
	backward(y.Mul(y).Sum()) // 2y · 3
	if diff := cmp.Diff([]float64{12, 24}, list(x.Variable().Grad)); diff != "" {
		t.Error(diff)
	}
	if env.Record(false, func() { y = twice(env, x) }); y.Tracked() {
		t.Error("recorded where recording is off")
	}

	// x³ and its square, the gradient differentiable by x, y and gy.
	cube := func(xs []*core.Tensor) *core.Tensor {
		ys := env.Custom("cube", xs, func(xs []*core.Tensor) []*core.Tensor {
			c := xs[0].Mul(xs[0]).Mul(xs[0])
			return []*core.Tensor{c, c.Mul(c)}
		}, func(xs, ys, gys []*core.Tensor) []*core.Tensor {
			three := core.Number(env, 3, 0, false)
			g := gys[0].Add(gys[1].Mul(ys[0]).Mul(core.Number(env, 2, 0, false)))
			return []*core.Tensor{g.Mul(xs[0]).Mul(xs[0]).Mul(three)}
		})
		return ys[0].Mul(ys[0]).Add(ys[1].Sin())
	}
	if err := grad.Check(cube, []*core.Tensor{vector(env, "a", 0.5, 1.25)}, 1e-7); err != nil {
		t.Error(err)
	}
	one := func(xs []*core.Tensor) *core.Tensor { // of one of the results nothing is made
		return env.Custom("pair", xs, func(xs []*core.Tensor) []*core.Tensor {
			return []*core.Tensor{xs[0].Exp(), xs[0], xs[0].Cast(dtype.I64)}
		}, func(xs, ys, gys []*core.Tensor) []*core.Tensor {
			return []*core.Tensor{gys[0].Mul(ys[0]).Add(gys[1])}
		})[0]
	}
	if err := grad.Check(one, []*core.Tensor{vector(env, "a", 0.5, 1.25)}, 1e-7); err != nil {
		t.Error(err)
	}

	bad := func(g func() []*core.Tensor) *core.Tensor {
		total := func(xs []*core.Tensor) []*core.Tensor { return []*core.Tensor{xs[0].Sum()} }
		return env.Custom("bad", []*core.Tensor{x}, total,
			func(_, _, _ []*core.Tensor) []*core.Tensor { return g() })[0]
	}
	mustFail(t, "backward: the vjp of bad, called at outside of a script, gave 0 gradients for 1 arguments", func() {
		backward(bad(func() []*core.Tensor { return nil }))
	})
	mustFail(t, "gave f64[a=1] for its tensor 0, f64[a=2]", func() {
		backward(bad(func() []*core.Tensor { return []*core.Tensor{vector(env, "a", 1)} }))
	})
	before := list(x.Variable().Grad)
	backward(bad(func() []*core.Tensor { return []*core.Tensor{nil} }))
	if diff := cmp.Diff(before, list(x.Variable().Grad)); diff != "" {
		t.Error(diff)
	}
}

// TestCustomHandles frees and keeps what a vjp was given.
func TestCustomHandles(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	m := &core.Maker{Env: env}
	x := env.Watch(m.Tensor(dtype.F32, "a=1000"))
	before := env.Memory().Buffers
	var kept *core.Tensor
	s := env.Open()
	for _, mode := range []grad.Mode{{}, {CreateGraph: true}} {
		exp := func(xs []*core.Tensor) []*core.Tensor { return []*core.Tensor{xs[0].Exp()} }
		y := env.Custom("f", []*core.Tensor{x}, exp,
			func(xs, ys, gys []*core.Tensor) []*core.Tensor {
				g := gys[0].Mul(ys[0])
				xs[0].Free()
				gys[0].Free()
				kept = ys[0]
				return []*core.Tensor{g}
			})[0]
		grad.Gradients([]*core.Tensor{y.Sum()}, []*core.Tensor{x}, nil, mode)
		mustFail(t, "was ended by the end of its scope", func() { kept.Add(kept) })
	}
	s.Close()
	if got := env.Memory().Buffers; got != before {
		t.Errorf("%d buffers, before %d", got, before)
	}
}

func TestHooks(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 1, 2))
	v := x.Variable()
	var log []string
	v.Hooks = append(v.Hooks,
		&core.Hook{Before: func(g *core.Tensor) *core.Tensor {
			log = append(log, fmt.Sprint("first ", list(g)))
			return g.Mul(core.Number(env, 10, 0, false))
		}},
		&core.Hook{Before: func(g *core.Tensor) *core.Tensor {
			log = append(log, fmt.Sprint("second ", list(g)))
			v.Hooks = v.Hooks[:1] // from the next backward on
			return nil
		}},
		&core.Hook{After: func() { log = append(log, fmt.Sprint("after ", list(v.Grad))) }})
	backward(x.Mul(x).Add(x).Sum()) // 2x + 1, once, though three gradients come
	gs := grad.Gradients([]*core.Tensor{x.Mul(x).Sum()}, []*core.Tensor{x}, nil, grad.Mode{})
	if diff := cmp.Diff([]float64{20, 40}, list(gs[0])); diff != "" {
		t.Error(diff)
	}
	want := []string{"first [3 5]", "second [30 50]", "after [30 50]", "first [2 4]"}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Error(diff)
	}
	v.Hooks = []*core.Hook{{Before: func(*core.Tensor) *core.Tensor { return vector(env, "a", 1) }}}
	mustFail(t, "backward: a variable's hook gave f64[a=1] for a gradient f64[a=2]", func() { backward(x.Sum()) })
}

// TestOptimizerInBackward updates each weight as soon as its gradient is whole and lets that go: never two at once.
func TestOptimizerInBackward(t *testing.T) {
	steps := func(inBackward bool) (bits []uint32, most int) {
		env := core.NewEnv(0, 1)
		defer env.Close()
		n := newModel(env)
		rate := core.Number(env, 0.5, 0, false)
		var weights []*core.Tensor
		for _, b := range n.blocks {
			weights = append(weights, b.all()...)
		}
		update := func(w *core.Tensor) {
			held := 0
			for _, w := range weights {
				if w.Variable().Grad != nil {
					held++
				}
			}
			most = max(most, held)
			s := env.Open()
			name := w.Axes().At(0)
			w.SetSlice(w.Sub(w.Variable().Grad.Mul(rate)), name, 0, w.Size(name))
			s.Close()
			env.SetGrad(w.Variable(), nil)
		}
		if inBackward {
			for _, w := range weights {
				w.Variable().Hooks = []*core.Hook{{After: func() { update(w) }}}
			}
		}
		for range 3 {
			s := env.Open()
			backward(n.loss(true))
			if !inBackward {
				env.Record(false, func() {
					for _, w := range weights {
						update(w)
					}
				})
			}
			s.Close()
		}
		for _, w := range weights {
			for _, v := range w.Float32s() {
				bits = append(bits, math.Float32bits(v))
			}
		}
		return bits, most
	}
	want, all := steps(false)
	got, most := steps(true)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the weights differ: %.300s", diff)
	}
	if all != 56 || most != 1 {
		t.Errorf("%d gradients at once after backward, %d within it; want 56 and 1", all, most)
	}
}

// TestHookChangesWhatOthersNeed changes in place, from a hook, what a node that has not fired yet saved.
func TestHookChangesWhatOthersNeed(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x, w := env.Watch(vector(env, "a", 1, 2)), env.Watch(vector(env, "a", 3, 4))
	y := x.Mul(w.Detach()).Mul(w).Sum()
	w.Variable().Hooks = []*core.Hook{{After: func() { w.SetSlice(vector(env, "a", 0), "a", 0, 1) }}}
	mustFail(t, "which mul at outside of a script saved for its gradient, was changed in place", func() { backward(y) })
}

func TestAnomaly(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 4, -1))
	search := func(f func()) func() { return func() { env.Anomaly(true, f) } }
	mustFail(t, "sqrt: made a NaN at a=1 of x[a=2], which has none; look at what it was given: print(x)",
		search(func() { x.Mul(x).Sub(x.Mul(x)).Add(x.Sqrt()) }))
	inf, w := vector(env, "in", math.Inf(1), math.Inf(-1)), vector(env, "in", 1, 1)
	bias := vector(env, "b", 1).Sum()
	mustFail(t, "linear: made a NaN of x[in=2] and w[in=2]", search(func() { inf.Linear(w, bias) }))
	nan := vector(env, "a", math.NaN(), 1)
	search(func() { nan.Add(x).Exp() })() // it was there before
	// The gradient of sqrt at 0 is infinite, and 0 times that is none.
	zero := env.Watch(vector(env, "a", 1, 0))
	root := zero.Sqrt()
	loss := root.Mul(vector(env, "a", 1, 0)).Sum()
	mustFail(t, "backward: sqrt at outside of a script made a NaN at a=1 in the gradient of its first operand, "+
		"f64[a=2]; what came to it has none", search(func() { backward(loss) }))
	backward(zero.Sqrt().Mul(vector(env, "a", 1, 0)).Sum()) // unless it is searched for
	if g := list(zero.Variable().Grad); !math.IsNaN(g[1]) {
		t.Errorf("the gradient is %v", g)
	}
	if env.SeeksNaN() {
		t.Error("the search goes on")
	}
}

// TestAccumulatesInPlace insists that a gradient keeps its place while nobody else can see it.
func TestAccumulatesInPlace(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	m := &core.Maker{Env: env}
	x := env.Watch(m.Tensor(dtype.F32, "row=3 col=1000"))
	step := func() { s := env.Open(); backward(x.Mul(x).Sum()); s.Close() }
	step()
	first, one := x.Variable().Grad, x.Variable().Grad.Float32s()
	step()
	if x.Variable().Grad != first {
		t.Error("the second gradient took another place")
	}
	seen := x.Variable().Grad.Alias()
	two := seen.Float32s()
	step()
	if x.Variable().Grad == first {
		t.Error("a gradient that somebody looks at was changed in place")
	}
	for i, v := range one {
		if two[i] != v+v || seen.Float32s()[i] != v+v || x.Variable().Grad.Float32s()[i] != v+v+v {
			t.Fatalf("element %d is %v after one, %v after two", i, v, two[i])
		}
	}
	seen.Free()
	s := env.Open()
	grad.Backward([]*core.Tensor{x.Mul(x).Mul(x).Sum()}, nil, grad.Mode{CreateGraph: true})
	if !x.Variable().Grad.Tracked() {
		t.Error("create_graph gives no differentiable gradient")
	}
	env.SetGrad(x.Variable(), nil)
	s.Close()
}

// TestFillIsAChange fills a tensor that was saved for a gradient.
func TestFillIsAChange(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x, c := env.Watch(vector(env, "a", 1, 2)), env.Tensor(dtype.F64, mustAxes("a"), 2)
	for _, fill := range []func(){func() { c.Fill([]float32{1, 2}) }, func() { c.FillInts([]int64{1, 2}) }} {
		y := x.Mul(c).Sum()
		fill()
		mustFail(t, "f64[a=2], which mul at outside of a script saved for its gradient, was changed in place since",
			func() { backward(y) })
	}
}

// TestBackwardFrees walks a chain of 40 operations that save their results: the walk may not need more memory than
// the graph held when it began, but for a few buffers.
func TestBackwardFrees(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	m := &core.Maker{Env: env}
	x := env.Watch(m.Tensor(dtype.F32, "row=64 col=1024"))
	const each = 64 * 1024 * 4
	y := x.Sigmoid()
	for range 39 {
		next := y.Sigmoid()
		y.Free()
		y = next
	}
	loss := y.Sum()
	y.Free()
	before := env.Memory()
	if held := before.InUse / each; held != 41 {
		t.Errorf("the graph holds %d buffers, want 41", held)
	}
	backward(loss)
	after := env.Memory()
	if more := (after.Peak - before.InUse) / each; more > 4 {
		t.Errorf("backward needs %d buffers more than the graph held", more)
	}
	if held := after.InUse / each; held != 2 {
		t.Errorf("%d buffers are left, want the variable and its gradient", held)
	}
}

// TestNoGrowth runs 1,000 training steps: from the tenth on, none needs more memory than the one before.
func TestNoGrowth(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	m := &core.Maker{Env: env}
	b := newBlock(m)
	x := m.Tensor(dtype.F32, "seq=16 embed=32")
	rate := core.Number(env, 0.01, 0, false)
	var early, peak, goHeap int64
	for step := range 1000 {
		s := env.Open()
		y := b.run(x)
		backward(y.Mul(y).Mean())
		env.Record(false, func() {
			for _, w := range b.all() {
				name := w.Axes().At(0)
				w.SetSlice(w.Sub(w.Variable().Grad.Mul(rate)), name, 0, w.Size(name))
				env.SetGrad(w.Variable(), nil)
			}
		})
		s.Close()
		if got := env.Memory(); step == 10 {
			early, peak, goHeap = got.InUse+got.Cached, got.Peak, heap()
		} else if step > 10 && (got.InUse+got.Cached > early || got.Peak > peak) {
			t.Fatalf("step %d: %+v, at step 10 %d bytes and a peak of %d", step, got, early, peak)
		}
	}
	if more := heap() - goHeap; more > 64<<10 {
		t.Errorf("the Go heap grew by %d bytes", more)
	}
}

// TestSameForward insists that a forward pass gives the same bits whether it is recorded, checkpointed or neither.
func TestSameForward(t *testing.T) {
	env := core.NewEnv(0, 2)
	defer env.Close()
	n := newModel(env)
	var want []float32
	for _, how := range []string{"inference", "training", "checkpoints"} {
		env.Seed(1)
		s := env.Open()
		env.Record(how != "inference", func() {
			got := n.loss(how == "checkpoints").Float32s()
			if want == nil {
				want = got
			}
			if math.Float32bits(got[0]) != math.Float32bits(want[0]) {
				t.Errorf("%s gives %v, want %v", how, got[0], want[0])
			}
		})
		s.Close()
	}
}

// TestConstantsRecordNothing compares the allocations of a call on constants, where variables are about, with those
// where recording is off.
func TestConstantsRecordNothing(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	m := &core.Maker{Env: env}
	x, w := m.Tensor(dtype.F32, "row=4 embed=32"), m.Tensor(dtype.F32, "ffn=16 embed=32")
	v := env.Watch(w)
	call := func(w *core.Tensor) func() {
		return func() { s := env.Open(); x.Dot(w, "embed").Softmax("ffn").Sum(); s.Close() }
	}
	var off float64
	env.Record(false, func() { off = testing.AllocsPerRun(100, call(v)) })
	on, tracked := testing.AllocsPerRun(100, call(w)), testing.AllocsPerRun(100, call(v))
	if on != off || tracked <= on {
		t.Errorf("%v allocations on constants, %v where nothing is recorded, %v on a variable", on, off, tracked)
	}
}

// TestGone asks for gradients of what is not there any more, or never was.
func TestGone(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(vector(env, "a", 1, 2))
	loss := x.Mul(x).Sum()
	loss.Free()
	mustFail(t, "free it after its last use: loss.free()", func() { backward(loss) })
	mustFail(t, "backward: loss, i64, holds integers, through which no gradient flows", func() {
		backward(x.Mul(x).Sum().Cast(dtype.I64))
	})
}
