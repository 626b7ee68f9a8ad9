package optim

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
	"github.com/fucina-go/fucina/grad"
)

// net is an optimizer with parameters of several shapes, of its own kind, and gradients that come from a formula.
type net struct {
	env    *core.Env
	opt    *Optimizer
	params []Param
	step   uint64
}

// shapes of the parameters: some take more than one chunk of a sweep, none is a multiple of a vector.
var shapes = []struct {
	axes  string
	sizes []int
}{{"out in", []int{67, 257}}, {"head head_dim embed", []int{3, 5, 33}}, {"a", []int{17}}, {"", nil},
	{"row col", []int{7, 200}}}

func newNet(t *testing.T, info *Info, dt dtype.Type, workers int) *net {
	t.Helper()
	n := &net{env: core.NewEnv(0, workers)}
	t.Cleanup(n.env.Close)
	groups := []Group{{Rule: info.NewRule(), Name: info.Name, Scale: 1},
		{Rule: &AdamW{Betas: [2]float64{0.9, 0.95}, Eps: 1e-8}, Name: "adamw", Scale: 0.5}}
	if a, ok := groups[0].Rule.(*APOLLO); ok {
		a.Rank, a.UpdateProjGap = 4, 3
	}
	for i, s := range shapes {
		count := 1
		for _, size := range s.sizes {
			count *= size
		}
		values := make([]float64, count)
		for k := range values {
			values[k] = rng.Normal(1, uint64(i), uint64(k))
		}
		p := Param{fmt.Sprintf("p%d", i), variableOf(n.env, dt, values, s.axes, s.sizes...)}
		n.params = append(n.params, p)
		to := 0
		if r, ok := groups[0].Rule.(picky); ok {
			if msg, _ := r.refuse(&p); msg != "" {
				to = 1
			}
		}
		groups[to].Params = append(groups[to].Params, p)
	}
	n.opt = New(n.env, info.Name, 0.01, groups)
	return n
}

// run takes steps. In every third one, a parameter has no gradient.
func (n *net) run(steps int) {
	for range steps {
		n.step++
		for i, p := range n.params {
			if (n.step+uint64(i))%3 == 0 && i == 1 {
				n.env.SetGrad(p.Value.Variable(), nil)
				continue
			}
			values := floats(p.Value)
			for k := range values {
				values[k] = 0.3*values[k] + 0.5*math.Sin(float64(n.step*7919+uint64(i*101+k)))
			}
			setGrad(n.env, p.Value, values)
		}
		n.opt.SetLR("step", 0.01/float64(n.step))
		n.opt.Step()
	}
}

// bits is every parameter and everything remembered, in a fixed order.
func (n *net) bits() (list []uint64) {
	add := func(t *core.Tensor) {
		for _, v := range floats(t) {
			list = append(list, math.Float64bits(v))
		}
	}
	for _, p := range n.opt.params {
		add(p.Value)
		for _, s := range p.slots {
			add(s)
		}
		for _, x := range p.numbers {
			list = append(list, math.Float64bits(x))
		}
		list = append(list, uint64(p.steps))
	}
	return list
}

// values copies the parameters, and setValues puts a copy back.
func (n *net) values() (list [][]float64) {
	for _, p := range n.params {
		list = append(list, floats(p.Value))
	}
	return list
}

func (n *net) setValues(list [][]float64) {
	for i, p := range n.params {
		move(n.env, p.Value, n.env.FromFloats(p.Value.DType(), list[i], p.Value.Axes(), p.Value.Sizes()...))
	}
}

// TestResume takes 10 steps, a snapshot and 10 more, goes back and takes those again, and once more in another
// process's stead: the same bits, for every optimizer.
func TestResume(t *testing.T) {
	dtypes := []dtype.Type{dtype.F32, dtype.F64, dtype.BF16}
	if testing.Short() {
		dtypes = dtypes[:1]
	}
	for _, info := range Rules() {
		for _, dt := range dtypes {
			t.Run(info.Name+" "+dt.String(), func(t *testing.T) {
				n := newNet(t, info, dt, 2)
				n.run(10)
				st, values := n.opt.State(), n.values()
				n.run(10)
				want := n.bits()
				if slices.ContainsFunc(floats(n.params[0].Value), math.IsNaN) {
					t.Fatal("NaN")
				}
				n.step = 10
				n.setValues(values)
				if err := n.opt.SetState(st); err != nil {
					t.Fatal(err)
				}
				n.run(10)
				if !slices.Equal(n.bits(), want) {
					t.Error("other bits after going back")
				}
				other := newNet(t, info, dt, 2)
				other.step = 10
				other.setValues(values)
				for name, x := range st.Tensors {
					st.Tensors[name] = x.Share() // as if it came from a file
				}
				if err := other.opt.SetState(st); err != nil {
					t.Fatal(err)
				}
				if other.opt.LR() != 0.01/10 {
					t.Errorf("the learning rate is %v", other.opt.LR())
				}
				other.run(10)
				if !slices.Equal(other.bits(), want) {
					t.Error("other bits after resuming")
				}
			})
		}
	}
}

// TestWorkers wants the same bits of any number of workers.
func TestWorkers(t *testing.T) {
	for _, info := range Rules() {
		t.Run(info.Name, func(t *testing.T) {
			var want []uint64
			for _, workers := range []int{1, 2, 3, 8} {
				n := newNet(t, info, dtype.F32, workers)
				for range 6 {
					n.run(1)
					ClipNorm(n.env, n.params, 0.1, 2, true)
				}
				n.opt.Step()
				if got := n.bits(); want == nil {
					want = got
				} else if !slices.Equal(got, want) {
					t.Errorf("%d workers give other bits than one", workers)
				}
			}
		})
	}
}

// TestMemory wants what the documentation says about memory, and nothing left behind by a step.
func TestMemory(t *testing.T) {
	for _, info := range Rules() {
		n := newNet(t, info, dtype.F32, 1)
		n.run(3)
		before := n.env.Memory().InUse
		n.run(6)
		if after := n.env.Memory().InUse; after != before {
			t.Errorf("%s: %d bytes more after six steps", info.Name, after-before)
		}
	}
	info := Lookup(Rules(), "apollo")
	n := newNet(t, info, dtype.F32, 1)
	n.run(1)
	if got := n.opt.params[0].slots[0].Shape(); got != "f32[col=257, rank=4]" {
		t.Errorf("APOLLO remembers %s of f32[out=67, in=257]", got)
	}
	s := n.opt.State()
	if s.Tensors["p1.exp_avg"].Shape() != "f32[col=165, rank=3]" {
		t.Errorf("APOLLO remembers %s of f32[head=3, head_dim=5, embed=33]", s.Tensors["p1.exp_avg"].Shape())
	}
}

// TestRows compares a tensor with several axes with the matrix that it stands for, rows behind columns included.
func TestRows(t *testing.T) {
	for _, name := range []string{"muon", "apollo", "apollo_mini", "adafactor"} {
		info := Lookup(Rules(), name)
		env := core.NewEnv(0, 1)
		defer env.Close()
		step := func(axes, rows string, sizes ...int) []float64 {
			r := info.NewRule()
			info.Field("rows").Set(r, rows)
			w := variableOf(env, dtype.F64, make([]float64, 60), axes, sizes...)
			values := make([]float64, 60)
			for i := range values {
				values[i] = rng.Normal(3, 0, uint64(i))
			}
			if axes == "c b a" { // the transpose of a b c
				turned := make([]float64, 60)
				for a := range 3 {
					for b := range 4 {
						for c := range 5 {
							turned[(c*4+b)*3+a] = values[(a*4+b)*5+c]
						}
					}
				}
				values = turned
			}
			o := New(env, name, 0.01, []Group{{Params: []Param{{"w", w}}, Rule: r, Name: name, Scale: 1}})
			for range 3 {
				setGrad(env, w, values)
				o.Step()
			}
			return floats(w.Order(strings.Join(strings.Split("a b c", " ")[:len(sizes)], " ")))
		}
		near(t, name, step("a b c", "a b", 3, 4, 5), step("a b", "", 12, 5), 1e-14)
		near(t, name, step("a b c", "", 3, 4, 5), step("a b", "", 3, 20), 1e-14)
		if name != "apollo" && name != "apollo_mini" { // whose random numbers lie otherwise there
			near(t, name, step("c b a", "a", 5, 4, 3), step("a b c", "", 3, 4, 5), 1e-14)
		}
	}
}

// TestProjection wants P to change with the gap, the parameter and the seed, and to have variance 1/rank.
func TestProjection(t *testing.T) {
	env := core.NewEnv(0, 2)
	defer env.Close()
	a := &APOLLO{Rank: 8, UpdateProjGap: 5}
	p := env.FromFloats(dtype.F32, make([]float64, 1), nil)
	draw := func(seed, index int, n int64) []float64 {
		a.Seed = seed
		return floats(a.project(&update{env: env, p: p, index: index, n: n}, 8, "col", 3000))
	}
	first := draw(0, 0, 1)
	sum := 0.0
	for _, v := range first {
		sum += v * v
	}
	if v := sum / float64(len(first)); math.Abs(v-0.125) > 0.005 {
		t.Errorf("the variance is %v, want 1/8", v)
	}
	if !slices.Equal(draw(0, 0, 5), first) {
		t.Error("P changed within the gap")
	}
	for _, other := range [][]float64{draw(0, 0, 6), draw(0, 1, 1), draw(1, 0, 1)} {
		if slices.Equal(other, first) {
			t.Error("P is the same after the gap, of another parameter, or of another seed")
		}
	}
}

// TestSetStateErrors refuses states that do not fit, and changes nothing.
func TestSetStateErrors(t *testing.T) {
	info := Lookup(Rules(), "adamw")
	n := newNet(t, info, dtype.F32, 1)
	n.run(2)
	before := n.bits()
	inUse := n.env.Memory().InUse
	for _, c := range []struct {
		change func(st *grad.State)
		want   string
	}{
		{func(st *grad.State) { delete(st.Values, "lr") }, "lr is <nil>"},
		{func(st *grad.State) { st.Values["lr"] = "x" }, "lr is x"},
		{func(st *grad.State) { st.Values["rules"] = []any{"sgd"} },
			"the state is of [sgd], want one of [adamw adamw]"},
		{func(st *grad.State) { st.Values["p0.step"] = int64(-1) }, "p0.step is -1"},
		{func(st *grad.State) { st.Values["q.step"] = int64(1) },
			"the state has q.step, for which there is no parameter"},
		{func(st *grad.State) { delete(st.Values, "p0.step") }, "the state has p0.exp_avg, for which"},
		{func(st *grad.State) { delete(st.Tensors, "p0.exp_avg_sq") },
			"the state lacks p0.exp_avg_sq, f32[out=67, in=257]"},
		{func(st *grad.State) { st.Tensors["p0.exp_avg"] = st.Tensors["p2.exp_avg"] },
			"p0.exp_avg is f32[a=17], want f32[out=67, in=257]"},
		{func(st *grad.State) { st.Tensors["p9.exp_avg"] = st.Tensors["p2.exp_avg"] }, "p9.exp_avg, for which"},
	} {
		st := n.opt.State()
		c.change(&st)
		if err := n.opt.SetState(st); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
		if !slices.Equal(n.bits(), before) {
			t.Fatalf("%s: something changed", c.want)
		}
	}
	st := n.opt.State()
	n.env.Collect()
	n.env.Collect()
	n.env.SetMemoryLimit(n.env.Memory().InUse + 1000)
	if err := n.opt.SetState(st); err == nil || !slices.Equal(n.bits(), before) {
		t.Errorf("without memory: %v", err)
	}
	n.env.SetMemoryLimit(0)
	for _, x := range st.Tensors {
		x.Free()
	}
	n.env.Collect()
	if left := n.env.Memory().InUse - inUse; left > 1<<20 {
		t.Errorf("%d bytes are left", left)
	}
}

// TestSixteenBits wants a 16-bit parameter to be its master, rounded, and to move by less than its own precision.
func TestSixteenBits(t *testing.T) {
	for _, dt := range []dtype.Type{dtype.F16, dtype.BF16} {
		env := core.NewEnv(0, 1)
		w := variableOf(env, dt, []float64{1, 1}, "a", 2)
		o := New(env, "sgd", 1e-4, []Group{{Params: []Param{{"w", w}}, Rule: &SGD{}, Name: "sgd", Scale: 1}})
		for range 100 {
			setGrad(env, w, []float64{1, -1})
			o.Step()
		}
		near(t, "master", floats(o.State().Tensors["w.master"]), []float64{0.99, 1.01}, 1e-5)
		near(t, dt.String(), floats(w), []float64{0.99, 1.01}, 4e-3)
		if floats(w)[0] == 1 {
			t.Errorf("%s: small steps are lost", dt)
		}
		env.Close()
	}
}

// TestEMA compares an average with its formula, and swaps it in and out, to the bit, in every dtype.
func TestEMA(t *testing.T) {
	for _, dt := range []dtype.Type{dtype.F32, dtype.F64, dtype.F16, dtype.BF16} {
		env := core.NewEnv(0, 2)
		values := make([]float64, 20001)
		for i := range values {
			values[i] = rng.Normal(5, 0, uint64(i))
		}
		w := variableOf(env, dt, values, "a", len(values))
		values = floats(w)
		a := NewEMA(env, []Param{{"w", w}}, 0.75)
		change := func() {
			move(env, w, w.Detach().Mul(core.Number(env, 0.5, 0, false)))
			a.Update()
		}
		change()
		half := floats(w)
		a.Swap()
		want := make([]float64, len(values))
		for i, v := range values {
			want[i] = 0.75*v + 0.25*half[i]
		}
		near(t, dt.String(), floats(w), want, map[dtype.Type]float64{dtype.F64: 1e-15, dtype.F32: 1e-6}[dt]+
			map[dtype.Type]float64{dtype.F16: 3e-3, dtype.BF16: 3e-2}[dt])
		swapped := a.State()
		averaged := floats(w)
		a.Swap()
		if !slices.Equal(floats(w), half) {
			t.Errorf("%s: other bits after swapping twice", dt)
		}
		st := a.State()
		change()
		later := floats(a.average[0])
		move(env, w, env.FromFloats(dt, half, w.Axes(), len(half)))
		if err := a.SetState(st); err != nil {
			t.Fatal(err)
		}
		change()
		if !slices.Equal(floats(a.average[0]), later) {
			t.Errorf("%s: other bits after going back", dt)
		}
		move(env, w, env.FromFloats(dt, averaged, w.Axes(), len(half)))
		if err := a.SetState(swapped); err != nil || !a.Swapped() {
			t.Fatal(err)
		}
		a.Swap()
		if !slices.Equal(floats(w), half) {
			t.Errorf("%s: other bits after going back to a swapped state", dt)
		}
		delete(st.Tensors, "w.average")
		if err := a.SetState(st); err == nil || !strings.Contains(err.Error(), "the state lacks w.average") {
			t.Errorf("got %v", err)
		}
		env.Close()
	}
}

// TestONNXMomentum runs the cases that ONNX's suite has of an optimizer: one step from a given velocity.
func TestONNXMomentum(t *testing.T) {
	text, err := os.ReadFile("testdata/onnx-momentum.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string
		Attrs  map[string]any
		Values map[string]any
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 2 {
		t.Errorf("%d cases", len(cases))
	}
	for _, c := range cases {
		list := func(name string) (values []float64) {
			for _, v := range c.Values[name].([]any) {
				values = append(values, v.(float64))
			}
			return values
		}
		r := &SGD{Momentum: c.Attrs["alpha"].(float64), WeightDecay: c.Attrs["norm_coefficient"].(float64),
			Nesterov: c.Attrs["mode"] == "nesterov"} // beta counts from the second step on, and T is 0
		count := 0
		for _, k := range []string{"", "1", "2"} {
			v := "V" + k
			if c.Values["H"+k] != nil {
				v = "H" + k
			}
			if c.Values["X"+k] == nil {
				continue
			}
			count++
			env := core.NewEnv(0, 1)
			x := list("X" + k)
			w := variableOf(env, dtype.F32, x, "a", len(x))
			o := New(env, "sgd", list("R")[0], []Group{{Params: []Param{{"w", w}}, Rule: r, Name: "sgd", Scale: 1}})
			setGrad(env, w, list("G"+k))
			st := o.State()
			st.Values["w.step"] = int64(1)
			st.Tensors["w.momentum_buffer"] = env.FromFloats(dtype.F32, list(v), w.Axes(), len(x))
			if err := o.SetState(st); err != nil {
				t.Fatal(err)
			}
			o.Step()
			near(t, c.Name, floats(w), list("X"+k+"_new"), 1e-6)
			near(t, c.Name, floats(o.State().Tensors["w.momentum_buffer"]), list("V"+k+"_new"), 1e-6)
			env.Close()
		}
		if count == 0 {
			t.Errorf("%s: no tensors", c.Name)
		}
	}
}

// TestDeclared insists that every optimizer and schedule is documented and that its defaults are in order.
func TestDeclared(t *testing.T) {
	if len(Rules()) < 14 || len(Schedules()) < 8 {
		t.Errorf("%d optimizers, %d schedules", len(Rules()), len(Schedules()))
	}
	for _, list := range [][]*Info{Rules(), Schedules()} {
		for _, info := range list {
			if doc, err := info.Doc(); err != nil || len(doc) < 80 {
				t.Errorf("%s: %q, %v", info.Name, doc, err)
			}
		}
	}
	for _, info := range Rules() {
		var c checks
		info.NewRule().check(&c)
		c.panics(info.Name)
	}
	// A schedule is 0 or more and never NaN, at its ends too.
	for _, s := range []Schedule{&Cosine{LR: 1, Steps: 1}, &Cosine{LR: 1, Steps: 3, Warmup: 3},
		&Linear{LR: 1, Steps: 1},
		&WSD{LR: 1, Steps: 1, Shape: "linear"}, &WSD{LR: 1, Steps: 4, Warmup: 2, Decay: 2, Shape: "sqrt"},
		&OneCycle{LR: 1, Steps: 1, PctStart: 0.3, DivFactor: 25, FinalDivFactor: 1e4, Shape: "cosine"},
		&OneCycle{LR: 1, Steps: 2, PctStart: 1, DivFactor: 25, FinalDivFactor: 1e4, Shape: "linear"},
		&Constant{LR: 1, Warmup: 1}, &Stairs{LR: 1, Every: 1, Gamma: 0.5},
		&CosineRestarts{LR: 1, Period: 1, Factor: 1}, &CosineRestarts{LR: 1, Period: 1, Factor: 1000},
		&Polynomial{LR: 1, Steps: 1, Power: 1}} {
		CheckSchedule("s", s)
		for _, step := range []int{0, 1, 2, 3, 4, 5, 1 << 53} {
			if v := s.At(step); !(v >= 0 && v <= 1) {
				t.Errorf("%T%+v of %d is %v", s, s, step, v)
			}
		}
	}
}

// TestAllOrNone tries a step within ever larger budgets: until one suffices, nothing may change.
func TestAllOrNone(t *testing.T) {
	for _, info := range Rules() {
		for _, dt := range []dtype.Type{dtype.F32, dtype.BF16} {
			t.Run(info.Name+" "+dt.String(), func(t *testing.T) {
				env := core.NewEnv(0, 1)
				defer env.Close()
				g := Group{Rule: info.NewRule(), Name: info.Name, Scale: 1}
				if a, ok := g.Rule.(*APOLLO); ok {
					a.Rank = 32
				}
				for i, s := range [][2]int{{64, 48}, {30, 200}, {90, 90}} {
					values := make([]float64, s[0]*s[1])
					for k := range values {
						values[k] = rng.Normal(1, uint64(i), uint64(k))
					}
					w := variableOf(env, dt, values, "b a", s[0], s[1])
					setGrad(env, w, values)
					// A gradient in another order takes memory too.
					turned := w.Variable().Grad.Order("a b").Copy()
					turned.Keep()
					env.SetGrad(w.Variable(), turned)
					g.Params = append(g.Params, Param{fmt.Sprint(i), w})
				}
				info.setRows(g.Rule)
				o := New(env, info.Name, 0.01, []Group{g})
				before := o.env.Memory().InUse
				want := floats(g.Params[0].Value)
				for limit := before; ; limit += 16384 {
					env.SetMemoryLimit(limit)
					err := func() (err error) {
						defer core.Recover(&err)
						o.Step()
						return nil
					}()
					if err == nil {
						if limit < before+16384 && len(o.params[0].slots) > 0 {
							t.Error("a step takes no memory: the test misses its object")
						}
						return
					}
					for _, p := range o.params {
						if p.steps != 0 || p.slots != nil {
							t.Fatalf("with %d bytes more %s has taken a step", limit-before, p.Name)
						}
					}
					if !slices.Equal(floats(g.Params[0].Value), want) {
						t.Fatalf("with %d bytes more the first parameter has changed", limit-before)
					}
					if limit > before+64<<20 {
						t.Fatal("it never suffices")
					}
				}
			})
		}
	}
}

// setRows makes the second axis of the test the rows, where a rule knows rows.
func (i *Info) setRows(r Rule) {
	if f := i.Field("rows"); f != nil {
		f.Set(r, "a")
	}
}
