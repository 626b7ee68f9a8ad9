package optim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/grad"
)

var _ grad.Stateful = (*Optimizer)(nil)

// State is what the optimizer remembers: tensors called parameter.slot, such as blocks.0.w_q.exp_avg, and of a 16-bit
// parameter parameter.master; the values parameter.step and other numbers; lr, the learning rate, and rules, the
// name of every group's rule. The tensors are copies that belong to no scope.
func (o *Optimizer) State() grad.State {
	st := grad.State{Tensors: map[string]*core.Tensor{}, Values: map[string]any{"lr": o.lr, "rules": o.rules()}}
	for _, p := range o.params {
		if p.slots == nil {
			continue
		}
		st.Values[p.Name+".step"] = p.steps
		for i, name := range p.numberNames() {
			st.Values[p.Name+"."+name] = p.numbers[i]
		}
		for _, s := range p.tensors() {
			st.Tensors[s.name] = copyOf(o.env, s.tensor)
		}
	}
	return st
}

func (o *Optimizer) rules() []any {
	var names []any
	for i := range o.groups {
		names = append(names, o.groups[i].Name)
	}
	return names
}

// kept is a tensor of a state.
type kept struct {
	name   string
	dtype  dtype.Type
	axes   *axis.List
	sizes  []int
	tensor *core.Tensor // nil if it is only wanted
}

// tensors is what the state has of a parameter, in a fixed order.
func (p *held) tensors() []kept {
	var list []kept
	for i, s := range p.group.Rule.slots(&p.Param) {
		k := kept{name: p.Name + "." + s.name, dtype: p.computes(), axes: s.axes, sizes: s.sizes}
		if s.axes == nil {
			k.axes, k.sizes = p.Value.Axes(), p.Value.Sizes()
		}
		if p.slots != nil {
			k.tensor = p.slots[i]
		}
		list = append(list, k)
	}
	if p.Value.DType() != p.computes() {
		list = append(list, kept{p.Name + ".master", p.computes(), p.Value.Axes(), p.Value.Sizes(), p.master})
	}
	return list
}

func (p *held) numberNames() []string {
	if r, ok := p.group.Rule.(counter); ok {
		return r.numbers()
	}
	return nil
}

// copyOf is a copy of t in env that belongs to no scope.
func copyOf(env *core.Env, t *core.Tensor) *core.Tensor {
	c := env.Tensor(t.DType(), t.Axes(), t.Sizes()...)
	move(env, c, t)
	return c
}

// check says what is wrong with t as the tensor k of a state.
func (k *kept) check(t *core.Tensor) error {
	same := t.DType() == k.dtype && t.Axes() == k.axes && slices.Equal(t.Sizes(), k.sizes)
	if !same {
		return fmt.Errorf("%s is %s, want %s", k.name, t.Shape(), shape(k))
	}
	return nil
}

// shape is a wanted tensor as text.
func shape(k *kept) string {
	s := k.dtype.String() + "["
	for i, name := range k.axes.Names() {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%s=%d", name, k.sizes[i])
	}
	return s + "]"
}

// SetState goes back to a snapshot.
func (o *Optimizer) SetState(st grad.State) (err error) {
	defer core.Recover(&err) // the memory may not suffice
	lr, ok := st.Values["lr"].(float64)
	if !ok || !(lr >= 0) {
		return fmt.Errorf("%s: the state's lr is %v, want a number of at least 0", o.name, st.Values["lr"])
	}
	if rules, _ := st.Values["rules"].([]any); !slices.Equal(rules, o.rules()) {
		return fmt.Errorf("%s: the state is of %v, want one of %v", o.name, st.Values["rules"], o.rules())
	}
	tensors, values := maps.Clone(st.Tensors), maps.Clone(st.Values)
	delete(values, "lr")
	delete(values, "rules")
	fresh := make([]*held, len(o.params))
	for i, p := range o.params {
		if fresh[i], err = p.checkState(tensors, values); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(tensors)), slices.Sorted(maps.Keys(values))) {
		return fmt.Errorf("%s: the state has %s, for which there is no parameter", o.name, name)
	}
	done := false
	defer func() {
		for _, f := range fresh {
			if !done {
				f.free()
			}
		}
	}()
	for i, p := range o.params {
		if fresh[i].slots == nil {
			continue
		}
		for _, k := range p.tensors() {
			c := copyOf(o.env, st.Tensors[k.name])
			if len(fresh[i].slots) < cap(fresh[i].slots) {
				fresh[i].slots = append(fresh[i].slots, c)
			} else {
				fresh[i].master = c
			}
		}
	}
	done = true
	o.lr = lr
	for i, p := range o.params {
		p.free()
		p.steps, p.slots, p.numbers, p.master = fresh[i].steps, fresh[i].slots, fresh[i].numbers, fresh[i].master
	}
	return nil
}

// checkState takes from the tensors and values what belongs to the parameter. The result has the numbers, and room for
// the tensors.
func (p *held) checkState(tensors map[string]*core.Tensor, values map[string]any) (*held, error) {
	f := &held{}
	v, ok := values[p.Name+".step"]
	if !ok {
		return f, nil // it has not changed yet
	}
	if f.steps, ok = v.(int64); !ok || f.steps < 0 {
		return nil, fmt.Errorf("%s.step is %v, want a number of steps", p.Name, v)
	}
	delete(values, p.Name+".step")
	for _, name := range p.numberNames() {
		x, ok := values[p.Name+"."+name].(float64)
		if !ok {
			return nil, fmt.Errorf("the state lacks the number %s.%s", p.Name, name)
		}
		f.numbers = append(f.numbers, x)
		delete(values, p.Name+"."+name)
	}
	list := p.tensors()
	for _, k := range list {
		t := tensors[k.name]
		if t == nil {
			return nil, fmt.Errorf("the state lacks %s, %s", k.name, shape(&k))
		}
		if err := k.check(t); err != nil {
			return nil, err
		}
		delete(tensors, k.name)
	}
	f.slots = make([]*core.Tensor, 0, len(p.group.Rule.slots(&p.Param)))
	return f, nil
}
