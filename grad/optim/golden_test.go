package optim

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/grad"
)

// matrix64 is rows of numbers.
type matrix64 [][]float64

func (m matrix64) flat() (list []float64) {
	for _, row := range m {
		list = append(list, row...)
	}
	return list
}

// golden is a file of testdata.
type golden struct {
	Name, Algorithm string
	Problem         struct{ W0, X, Y matrix64 }
	Hyper           map[string]any
	Projections     []matrix64
	Steps           []struct {
		Step          int
		LossBefore    float64 `json:"loss_before"`
		Param         matrix64
		ExpAvg        matrix64  `json:"exp_avg"`
		ExpAvgSq      matrix64  `json:"exp_avg_sq"`
		MaxExpAvgSq   matrix64  `json:"max_exp_avg_sq"`
		Momentum      matrix64  `json:"momentum_buffer"`
		PrevNorm      float64   `json:"prev_norm"`
		ScalingFactor any       `json:"scaling_factor"`
		_             []float64 // what is left of a step is on the way to these
	}
	Grads []matrix64
	Cases []struct {
		MaxNorm   float64 `json:"max_norm"`
		TotalNorm float64 `json:"total_norm"`
		Grads     []matrix64
		Shape     string
		Input     matrix64
		Iterates  []matrix64
	}
	Points []struct {
		Iter int
		LR   float64
	}
}

func readGolden(t *testing.T, file string) *golden {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{}
	if err := json.Unmarshal(data, g); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return g
}

// bound is how far from the reference a number may be.
func bound(dt dtype.Type) float64 {
	if dt == dtype.F64 {
		return 1e-12
	}
	return 2e-6
}

func floats(t *core.Tensor) (list []float64) {
	if t.DType() == dtype.F32 {
		for _, v := range t.Float32s() {
			list = append(list, float64(v))
		}
		return list
	}
	for _, v := range t.Values() {
		list = append(list, v.(float64))
	}
	return list
}

// near compares numbers with the reference's.
func near(t *testing.T, what string, got []float64, want []float64, within float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d numbers, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= within) {
			t.Errorf("%s: element %d is %.17g, want %.17g, off by %.2g, at most %.0g", what, i, got[i], want[i],
				math.Abs(got[i]-want[i]), within)
			return
		}
	}
}

// hyperNames are the settings that the goldens call otherwise.
var hyperNames = map[string]string{"gap": "update_proj_gap", "disable_nl": "limiter", "eps_mode": "clamp_norm"}

// rule is the optimizer of a golden, and its learning rate.
func (g *golden) rule(t *testing.T) (string, Rule, float64) {
	t.Helper()
	name := strings.ToLower(strings.ReplaceAll(g.Algorithm, "-", "_"))
	info := Lookup(Rules(), name)
	if info == nil {
		t.Fatalf("no optimizer %q", name)
	}
	r, lr := info.NewRule(), info.LR
	for key, value := range g.Hyper {
		switch key {
		case "lr":
			lr = value.(float64)
			continue
		case "beta1", "beta2":
			f := info.Field("betas")
			f.Set(r, [2]float64{g.Hyper["beta1"].(float64), g.Hyper["beta2"].(float64)})
			continue
		case "disable_nl":
			value = false
		case "eps_mode":
			value = true
		case "rank", "scale_type":
			if name == "apollo_mini" {
				continue
			}
		}
		if other := hyperNames[key]; other != "" {
			key = other
		}
		f := info.Field(key)
		if f == nil {
			t.Fatalf("%s has no %q", name, key)
		}
		if _, whole := f.Default.(int); whole {
			value = int(value.(float64))
		}
		f.Set(r, value)
	}
	switch a := r.(type) {
	case *APOLLO:
		a.projection = g.project(a.UpdateProjGap)
	case *APOLLOMini:
		whole := a.whole()
		whole.projection = g.project(a.UpdateProjGap)
		r = whole
	}
	return name, r, lr
}

func (g *golden) project(gap int) func(n int64) [][]float64 {
	return func(n int64) [][]float64 { return g.Projections[(int(n)-1)/gap] }
}

// gradient is (W X - Y) Xᵀ, computed in float64, and the loss ½|W X - Y|².
func (g *golden) gradient(w []float64) (list []float64, loss float64) {
	x, y := g.Problem.X, g.Problem.Y
	inner, cols := len(x), len(x[0])
	list = make([]float64, len(w))
	for i := range y {
		for j := range cols {
			r := -y[i][j]
			for k := range inner {
				r += w[i*inner+k] * x[k][j]
			}
			loss += r * r / 2
			for k := range inner {
				list[i*inner+k] += r * x[k][j]
			}
		}
	}
	return list, loss
}

// variableOf is a variable of these numbers.
func variableOf(env *core.Env, dt dtype.Type, values []float64, axes string, sizes ...int) *core.Tensor {
	l, err := axis.Parse(axes)
	if err != nil {
		panic(err)
	}
	return env.Watch(env.FromFloats(dt, values, l, sizes...))
}

// setGrad gives a variable this gradient.
func setGrad(env *core.Env, p *core.Tensor, values []float64) {
	g := env.FromFloats(p.DType(), values, p.Axes(), p.Sizes()...)
	g.Keep()
	env.SetGrad(p.Variable(), g)
}

// TestGoldens follows the trajectories of SGD, Adam, AdamW, Muon and APOLLO, and what they remember.
func TestGoldens(t *testing.T) {
	files, err := filepath.Glob("testdata/*_*.json")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range files {
		g := readGolden(t, file)
		if len(g.Steps) == 0 {
			continue
		}
		count++
		for _, dt := range []dtype.Type{dtype.F64, dtype.F32} {
			t.Run(g.Name+" "+dt.String(), func(t *testing.T) { g.follow(t, dt) })
		}
	}
	if count != 21 {
		t.Errorf("%d trajectories, want 21", count)
	}
}

func (g *golden) follow(t *testing.T, dt dtype.Type) {
	env := core.NewEnv(0, 2)
	defer env.Close()
	name, r, lr := g.rule(t)
	w := variableOf(env, dt, g.Problem.W0.flat(), "out in", len(g.Problem.W0), len(g.Problem.W0[0]))
	o := New(env, name, lr, []Group{{Params: []Param{{"w", w}}, Rule: r, Name: name, Scale: 1}})
	for _, s := range g.Steps {
		slope, loss := g.gradient(floats(w))
		near(t, "loss", []float64{loss}, []float64{s.LossBefore}, 10*bound(dt))
		setGrad(env, w, slope)
		o.Step()
		near(t, "w", floats(w), s.Param.flat(), bound(dt))
		st := o.State()
		for key, want := range map[string]matrix64{"exp_avg": s.ExpAvg, "exp_avg_sq": s.ExpAvgSq,
			"max_exp_avg_sq": s.MaxExpAvgSq, "momentum_buffer": s.Momentum} {
			slot := st.Tensors["w."+key]
			if want == nil {
				continue
			}
			if slot == nil {
				t.Fatalf("nothing remembered called %s", key)
			}
			if slot.Axes().At(0) == "col" { // of a wide matrix, which the golden has as rank × col
				slot = slot.Order("rank col")
			}
			near(t, key, floats(slot), want.flat(), bound(dt))
		}
		if norm, ok := st.Values["w.norm"].(float64); ok && r.(*APOLLO).Limiter {
			near(t, "norm", []float64{norm}, []float64{s.PrevNorm}, 100*bound(dt))
		}
		if t.Failed() {
			t.Fatalf("in step %d", s.Step)
		}
	}
}

// TestNewtonSchulz compares the iterates of Muon one by one.
func TestNewtonSchulz(t *testing.T) {
	g := readGolden(t, "testdata/newton_schulz5.json")
	if len(g.Cases) != 3 {
		t.Fatalf("%d cases", len(g.Cases))
	}
	for _, c := range g.Cases {
		for _, dt := range []dtype.Type{dtype.F64, dtype.F32} {
			env := core.NewEnv(0, 1)
			m, n := len(c.Input), len(c.Input[0])
			x := env.FromFloats(dt, c.Input.flat(), rowCol, m, n)
			u := &update{env: env, p: x, g: x}
			for k, want := range c.Iterates {
				a := &Muon{NSSteps: k + 1}
				got := a.orthogonal(u, x, m > n).Packed(rowCol)
				near(t, c.Shape+" "+dt.String(), floats(got), want.flat(), bound(dt))
			}
			env.Close()
		}
	}
}

func TestClipGolden(t *testing.T) {
	g := readGolden(t, "testdata/clip_grad_norm.json")
	for _, c := range g.Cases {
		for _, dt := range []dtype.Type{dtype.F64, dtype.F32} {
			env := core.NewEnv(0, 1)
			var params []Param
			for i, m := range g.Grads {
				w := variableOf(env, dt, make([]float64, len(m.flat())), "a b", len(m), len(m[0]))
				setGrad(env, w, m.flat())
				params = append(params, Param{string(rune('a' + i)), w})
			}
			norm := ClipNorm(env, params, c.MaxNorm, 2, true)
			near(t, "norm", []float64{norm}, []float64{c.TotalNorm}, bound(dt))
			for i, want := range c.Grads {
				near(t, "gradient", floats(params[i].Value.Variable().Grad), want.flat(), bound(dt))
			}
			env.Close()
		}
	}
	if len(g.Cases) != 2 {
		t.Errorf("%d cases", len(g.Cases))
	}
}

func TestScheduleGolden(t *testing.T) {
	g := readGolden(t, "testdata/lr_cosine_warmup.json")
	s := &Cosine{LR: g.Hyper["lr"].(float64), MinLR: g.Hyper["min_lr"].(float64),
		Warmup: int(g.Hyper["warmup_iters"].(float64)), Steps: int(g.Hyper["lr_decay_iters"].(float64))}
	if len(g.Points) != 13 {
		t.Errorf("%d points", len(g.Points))
	}
	for _, p := range g.Points {
		near(t, "lr", []float64{s.At(p.Iter)}, []float64{p.LR}, 1e-15)
	}
}

// trace is a run of a PyTorch optimizer.
type trace struct {
	Optimizer string
	Attrs     map[string]any
	Trace     []struct {
		Loss, LR float64
		W, C     []float64
		Norm     float64 `json:"grad_norm_before_clip"`
	}
}

type tracedProblem struct {
	A, B, W0 matrix64
	C0       []float64
}

// loss is mean((A·W + c - b)²) + 0.01·sum(sin 3W), by operations.
func (p *tracedProblem) loss(env *core.Env, w, c *core.Tensor) *core.Tensor {
	table := func(m matrix64, axes string) *core.Tensor {
		l, _ := axis.Parse(axes)
		return env.FromFloats(w.DType(), m.flat(), l, len(m), len(m[0]))
	}
	d := table(p.A, "row in").Dot(w, "in").Add(c).Sub(table(p.B, "row out"))
	wave := w.Mul(core.Number(env, 3, 0, false)).Sin().Sum().Mul(core.Number(env, 0.01, 0, false))
	return d.Square().Mean().Add(wave)
}

// tracedSchedules are PyTorch's schedules of the traces.
var tracedSchedules = map[string]Schedule{
	"cosine":      &Cosine{LR: 0.1, Steps: 10, MinLR: 0.001},
	"step":        &Stairs{LR: 0.1, Every: 3, Gamma: 0.5},
	"exponential": &Stairs{LR: 0.1, Every: 1, Gamma: 0.9},
	"onecycle": &OneCycle{LR: 0.1, Steps: 15, PctStart: 0.3, DivFactor: 25, FinalDivFactor: 1e4,
		Shape: "cosine"},
	"linear":          &Constant{LR: 0.1, Warmup: 5, Start: 0.1},
	"cosine_restarts": &CosineRestarts{LR: 0.1, Period: 4, Factor: 2},
	"polynomial":      &Polynomial{LR: 0.1, Steps: 10, Power: 2},
}

// untraced says why a trace of PyTorch is not followed, or not to its end.
var untraced = map[string]string{
	"lbfgs": "evaluates the loss several times in a step, which no optimizer here does",
	"nadam": "PyTorch 1.13 multiplies a factor too much in, its later versions do not; traces.json has a good one",
}

// readTraces is the problem and the runs.
func readTraces(t *testing.T) (*tracedProblem, []trace) {
	t.Helper()
	f, err := os.Open("testdata/optimizers.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Problem tracedProblem
		Runs    []trace
	}
	if err := json.NewDecoder(z).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return &all.Problem, all.Runs
}

// TestTorchTraces follows PyTorch's optimizers and schedules, gradients and all, in float32.
func TestTorchTraces(t *testing.T) {
	problem, runs := readTraces(t)
	if len(runs) != 25 {
		t.Errorf("%d runs, want 25", len(runs))
	}
	for _, run := range runs {
		name, after, _ := strings.Cut(run.Optimizer, "+")
		if untraced[name] != "" {
			continue
		}
		t.Run(run.Optimizer, func(t *testing.T) { run.follow(t, problem, name, after, dtype.F32) })
	}
}

// TestTraces follows the same optimizers with other settings, and more of them, in float64.
func TestTraces(t *testing.T) {
	problem, _ := readTraces(t)
	data, err := os.ReadFile("testdata/traces.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Runs []trace }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Runs) != 16 {
		t.Errorf("%d runs, want 16", len(all.Runs))
	}
	for _, run := range all.Runs {
		for _, dt := range []dtype.Type{dtype.F64, dtype.F32} {
			t.Run(run.Optimizer+" "+dt.String(), func(t *testing.T) { run.follow(t, problem, run.Optimizer, "", dt) })
		}
	}
}

func (run *trace) follow(t *testing.T, problem *tracedProblem, name, after string, dt dtype.Type) {
	env := core.NewEnv(0, 2)
	defer env.Close()
	info := Lookup(Rules(), name)
	if info == nil {
		t.Fatalf("no optimizer %q", name)
	}
	r := info.NewRule()
	for key, value := range run.Attrs {
		if key == "lr" || key == "clip" {
			continue
		}
		f := info.Field(key)
		if f == nil {
			t.Fatalf("no %q", key)
		}
		if pair, ok := value.([]any); ok {
			value = [2]float64{pair[0].(float64), pair[1].(float64)}
		}
		f.Set(r, value)
	}
	if after == "sched:onecycle" { // PyTorch's moves the momentum too, the other way
		r.(*SGD).Momentum = 0.95
	}
	w := variableOf(env, dt, problem.W0.flat(), "in out", len(problem.W0), len(problem.W0[0]))
	c := variableOf(env, dt, problem.C0, "out", len(problem.C0))
	params := []Param{{"w", w}, {"c", c}}
	o := New(env, name, run.Attrs["lr"].(float64), []Group{{Params: params, Rule: r, Name: name, Scale: 1}})
	schedule := tracedSchedules[strings.TrimPrefix(after, "sched:")]
	for i, want := range run.Trace {
		if after == "sched:cosine" && i > 10 {
			break // PyTorch's rises again, ours stays at min_lr
		}
		if schedule != nil {
			o.SetLR("step", schedule.At(i))
			near(t, "lr", []float64{o.LR()}, []float64{want.LR}, 1e-15)
		}
		if after == "sched:onecycle" {
			x := &OneCycle{LR: 0.1, Steps: 15, PctStart: 0.3, DivFactor: math.Inf(1), FinalDivFactor: 1,
				Shape: "cosine"}
			r.(*SGD).Momentum = 0.95 - x.At(i)
		}
		o.ZeroGrad()
		loss := problem.loss(env, w, c)
		near(t, "loss", floats(loss), []float64{want.Loss}, 2*bound(dt))
		grad.Backward([]*core.Tensor{loss}, nil, grad.Mode{})
		if after == "clip_global_norm" {
			near(t, "norm", []float64{ClipNorm(env, params, 0.5, 2, true)}, []float64{want.Norm}, 2e-6)
		}
		o.Step()
		near(t, "w", floats(w), want.W, bound(dt))
		near(t, "c", floats(c), want.C, bound(dt))
		if t.Failed() {
			t.Fatalf("in step %d", i)
		}
	}
}
