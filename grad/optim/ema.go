package optim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/grad"
	kernel "github.com/fucina-go/fucina/kernels/update"
)

var _ grad.Stateful = (*EMA)(nil)

// EMA is an exponential moving average of parameters: average = decay · average + (1 - decay) · parameter at every
// Update, beginning with their values now. It can take the parameters' place for a while. The averages are f32, for f64
// parameters f64, and belong to no scope.
type EMA struct {
	env     *core.Env
	decay   float64
	params  []Param
	average []*core.Tensor
	backup  []*core.Tensor // of 16-bit parameters, while swapped
	updates int64
	swapped bool
}

// NewEMA begins an average. Misuse panics with a *core.Error.
func NewEMA(env *core.Env, params []Param, decay float64) *EMA {
	if !(decay >= 0 && decay <= 1) {
		panic(&core.Error{Op: "ema", Msg: fmt.Sprintf("decay is %v, want a number from 0 to 1", decay),
			Hint: "as in: optim.ema(params, decay=0.999)"})
	}
	if len(params) == 0 {
		panic(&core.Error{Op: "ema", Msg: "got no parameters", Hint: "variables are: w = variable(w)"})
	}
	a := &EMA{env: env, decay: decay, params: params}
	done := false
	defer func() {
		for _, t := range a.average {
			if !done {
				t.Free()
			}
		}
	}()
	for _, p := range params {
		mustBeVariable("ema", p, env)
		if !env.IsShapeOnly() {
			t := env.Tensor(computes(p), p.Value.Axes(), p.Value.Sizes()...)
			a.average = append(a.average, t)
			move(env, t, p.Value)
		}
	}
	done = true
	return a
}

func computes(p Param) dtype.Type { return (&held{Param: p}).computes() }

// Params are the parameters.
func (a *EMA) Params() []Param { return a.params }

// Swapped tells whether the parameters have the values of the averages now.
func (a *EMA) Swapped() bool { return a.swapped }

// Update takes in the parameters as they are.
func (a *EMA) Update() {
	if a.swapped {
		panic(&core.Error{Op: "update", Msg: "the parameters are the averages now",
			Hint: "put them back first: e.swap()"})
	}
	a.mustHave("update")
	if a.env.IsShapeOnly() {
		return
	}
	for i, p := range a.params {
		(&core.Sweep{Writes: 1, F32: blend[float32](a.decay), F64: blend[float64](a.decay)}).Run(a.env, a.average[i],
			p.Value)
	}
	a.updates++
}

func (a *EMA) mustHave(op string) {
	for _, p := range a.params {
		mustBeVariable(op, p, a.env)
	}
}

func blend[T float32 | float64](decay float64) func(int, [][]T) {
	return func(_ int, xs [][]T) { kernel.Combine(xs[0], xs[0], xs[1], T(decay), T(1-decay)) }
}

// Swap exchanges parameters and averages; again, and they are back, the same bits. All change or none.
func (a *EMA) Swap() {
	a.mustHave("swap")
	if a.env.IsShapeOnly() {
		return
	}
	if a.swapped {
		for i, p := range a.params {
			a.exchange(i, p)
		}
		for _, t := range a.backup {
			if t != nil {
				t.Free()
			}
		}
		a.backup, a.swapped = nil, false
		return
	}
	backup := make([]*core.Tensor, len(a.params))
	done := false
	defer func() {
		for _, t := range backup {
			if !done && t != nil {
				t.Free()
			}
		}
	}()
	for i, p := range a.params {
		if p.Value.DType() != computes(p) {
			backup[i] = copyOf(a.env, p.Value)
		}
	}
	done = true
	for i, p := range a.params {
		a.backup = backup
		a.exchange(i, p)
	}
	a.swapped = true
}

// exchange is Swap for one parameter.
func (a *EMA) exchange(i int, p Param) {
	switch {
	case a.backup[i] == nil:
		(&core.Sweep{Writes: 2, F32: exchanged[float32], F64: exchanged[float64]}).Run(a.env, p.Value, a.average[i])
	case a.swapped:
		move(a.env, p.Value, a.backup[i])
	default:
		move(a.env, p.Value, a.average[i])
	}
}

func exchanged[T any](_ int, xs [][]T) {
	for i, v := range xs[0] {
		xs[0][i], xs[1][i] = xs[1][i], v
	}
}

// State is the averages, parameter.average, while swapped of 16-bit parameters parameter.backup too, the number of
// updates, and whether they are swapped: then the parameters of the checkpoint are the averages.
func (a *EMA) State() grad.State {
	st := grad.State{Tensors: map[string]*core.Tensor{}, Values: map[string]any{"updates": a.updates, "decay": a.decay,
		"swapped": a.swapped}}
	for i, p := range a.params {
		if i >= len(a.average) { // made in shape-only mode
			break
		}
		st.Tensors[p.Name+".average"] = copyOf(a.env, a.average[i])
		if a.swapped && a.backup[i] != nil {
			st.Tensors[p.Name+".backup"] = copyOf(a.env, a.backup[i])
		}
	}
	return st
}

// SetState goes back to a snapshot. The parameters stay as they are.
func (a *EMA) SetState(st grad.State) (err error) {
	defer core.Recover(&err)
	updates, ok1 := st.Values["updates"].(int64)
	decay, ok2 := st.Values["decay"].(float64)
	swapped, ok3 := st.Values["swapped"].(bool)
	if !ok1 || !ok2 || !ok3 || len(st.Values) != 3 || !(decay >= 0 && decay <= 1) || updates < 0 {
		return fmt.Errorf("ema: the state has the values %v, want updates, decay and swapped", st.Values)
	}
	rest := maps.Clone(st.Tensors)
	for _, p := range a.params {
		list := []kept{{name: p.Name + ".average", dtype: computes(p)}}
		if swapped && p.Value.DType() != computes(p) {
			list = append(list, kept{name: p.Name + ".backup", dtype: p.Value.DType()})
		}
		for _, k := range list {
			k.axes, k.sizes = p.Value.Axes(), p.Value.Sizes()
			if rest[k.name] == nil {
				return fmt.Errorf("ema: the state lacks %s, %s", k.name, shape(&k))
			}
			if err := k.check(rest[k.name]); err != nil {
				return fmt.Errorf("ema: %w", err)
			}
			delete(rest, k.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		return fmt.Errorf("ema: the state has %s, for which there is no parameter", name)
	}
	var average, backup []*core.Tensor
	done := false
	defer func() {
		for _, t := range slices.Concat(average, backup) {
			if !done && t != nil {
				t.Free()
			}
		}
	}()
	for _, p := range a.params {
		average = append(average, copyOf(a.env, st.Tensors[p.Name+".average"]))
		backup = append(backup, nil)
		if t := st.Tensors[p.Name+".backup"]; t != nil {
			backup[len(backup)-1] = copyOf(a.env, t)
		}
	}
	done = true
	for _, t := range slices.Concat(a.average, a.backup) {
		if t != nil {
			t.Free()
		}
	}
	a.average, a.backup, a.updates, a.decay, a.swapped = average, backup, updates, decay, swapped
	return nil
}
