package optim

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// Param is a variable and its name, which is unique within an optimizer and says in a saved state what belongs to it.
type Param struct {
	Name  string
	Value *core.Tensor
}

// Rule says how one parameter changes in a step, and by which hyperparameters.
type Rule interface {
	check(c *checks)
	// slots are the tensors that the rule remembers about a parameter; they begin as zeros.
	slots(p *Param) []slot
	step(u *update)
}

// A rule may have these powers too.
type (
	// counter remembers numbers about a parameter, by these names; they begin as 0.
	counter interface{ numbers() []string }

	// scratcher needs so many elements for a while. They are asked for before anything changes, so that a step that
	// memory does not allow changes nothing.
	scratcher interface{ scratch(p *Param) int }

	// picky refuses some parameters.
	picky interface {
		refuse(p *Param) (msg, hint string)
	}
)

// slot is a tensor to remember. Without axes it is like the parameter.
type slot struct {
	name  string
	axes  *axis.List
	sizes []int
}

// like are slots of the parameter's own axes and sizes.
func like(names ...string) []slot {
	list := make([]slot, len(names))
	for i, name := range names {
		list[i].name = name
	}
	return list
}

// Group is parameters that change by one rule.
type Group struct {
	Params []Param
	Rule   Rule
	Name   string // of the rule

	// Own is the group's own learning rate; without one it follows the optimizer's, times Scale.
	Own   *float64
	Scale float64
}

// Optimizer changes parameters by their gradients. Parameters and what is remembered about them belong to no scope.
//
// f16 and bf16 parameters are kept in f32 as well, by the name of master: that is what changes, and rounded it is the
// parameter. What is remembered is f32, for f64 parameters f64.
type Optimizer struct {
	name   string
	env    *core.Env
	lr     float64
	groups []Group
	params []*held
}

// held is a parameter and what is remembered about it.
type held struct {
	Param
	index   int
	group   *Group
	steps   int64
	slots   []*core.Tensor // nil before the first step
	numbers []float64
	master  *core.Tensor // of a 16-bit parameter
}

// New is an optimizer of the parameters in the groups. It is called name in messages.
//
// Misuse panics with a *core.Error: hyperparameters out of range, a parameter twice, one that is no variable or belongs
// to another Env.
func New(env *core.Env, name string, lr float64, groups []Group) *Optimizer {
	o := &Optimizer{name: name, env: env, groups: groups}
	o.SetLR(name, lr)
	seen := map[*core.Variable]string{}
	names := map[string]bool{}
	for k := range groups {
		g := &groups[k]
		var c checks
		g.Rule.check(&c)
		c.atLeast0("lr_scale", g.Scale)
		if g.Own != nil {
			c.atLeast0("lr", *g.Own)
		}
		c.panics(name)
		for _, p := range g.Params {
			mustBeVariable(name, p, env)
			v := p.Value.Variable()
			if other, twice := seen[v]; twice || names[p.Name] {
				panic(&core.Error{Op: name,
					Msg:  fmt.Sprintf("%q, %s, is given twice, first as %q", p.Name, p.Value.Shape(), other),
					Hint: "leave it in one group"})
			}
			seen[v], names[p.Name] = p.Name, true
			if r, ok := g.Rule.(picky); ok {
				if msg, hint := r.refuse(&p); msg != "" {
					panic(&core.Error{Op: name, Msg: msg, Hint: hint})
				}
			}
			o.params = append(o.params, &held{Param: p, index: len(o.params), group: g})
		}
	}
	if len(o.params) == 0 {
		panic(&core.Error{Op: name, Msg: "got no parameters", Hint: "variables are: w = variable(w)"})
	}
	return o
}

func mustBeVariable(op string, p Param, env *core.Env) {
	switch t := p.Value; {
	case t.Closed():
		panic(&core.Error{Op: op, Msg: fmt.Sprintf("%q, %s", p.Name, t.String())})
	case t.Variable() == nil:
		panic(&core.Error{Op: op, Msg: fmt.Sprintf("%q, %s, is no variable", p.Name, t.Shape()),
			Hint: "make it one before it is used: w = variable(w)"})
	case t.Env() != env:
		panic(&core.Error{Op: op, Msg: fmt.Sprintf("%q, %s, belongs to another interpreter", p.Name, t.Shape())})
	}
}

// Name is what the optimizer is called.
func (o *Optimizer) Name() string { return o.name }

// Params are the parameters in the order in which they change.
func (o *Optimizer) Params() []Param {
	list := make([]Param, len(o.params))
	for i, p := range o.params {
		list[i] = p.Param
	}
	return list
}

// LR is the learning rate of the groups that have none of their own.
func (o *Optimizer) LR() float64 { return o.lr }

// SetLR changes the learning rate; op is what asks for it, for messages.
func (o *Optimizer) SetLR(op string, lr float64) {
	if !(lr >= 0) || math.IsInf(lr, 1) {
		panic(&core.Error{Op: op, Msg: fmt.Sprintf("the learning rate is %v, want a number of at least 0", lr),
			Hint: "as in: opt.step(lr=3e-4)"})
	}
	o.lr = lr
}

// rate is a group's learning rate.
func (o *Optimizer) rate(g *Group) float64 {
	if g.Own != nil {
		return *g.Own
	}
	return o.lr * g.Scale
}

// ZeroGrad forgets the gradients.
func (o *Optimizer) ZeroGrad() {
	for _, p := range o.params {
		if v := p.Value.Variable(); v != nil {
			o.env.SetGrad(v, nil)
		}
	}
}

// Step changes every parameter that has a gradient. Others stay, and their steps are not counted. All change or none:
// what may fail is tried first, and cancelling takes effect afterwards. In shape-only mode nothing changes.
func (o *Optimizer) Step() {
	s := o.env.Open()
	defer s.Close()
	o.env.Record(false, func() {
		todo := o.ready()
		if o.env.IsShapeOnly() {
			return
		}
		defer o.env.Control.Hold()()
		for _, t := range todo {
			t.adopt(o.env)
			o.change(t)
		}
	})
}

// task is a parameter that is to change.
type task struct {
	*held
	grad  *core.Tensor
	fresh *held // what is to be remembered from now on, before the first step
}

// ready is what is to change, with everything checked and allocated.
func (o *Optimizer) ready() (todo []task) {
	done := false
	defer func() {
		for _, t := range todo {
			if !done && t.fresh != nil {
				t.fresh.free()
			}
		}
	}()
	for _, p := range o.params {
		mustBeVariable("step", p.Param, o.env)
		g := p.Value.Variable().Grad
		if g == nil {
			continue
		}
		if g.Len() != p.Value.Len() {
			panic(&core.Error{Op: "step",
				Msg: fmt.Sprintf("the gradient of %q, %s, is %s", p.Name, p.Value.Shape(), g.Shape())})
		}
		t := task{held: p, grad: g.Packed(p.Value.Axes())}
		if o.env.IsShapeOnly() {
			continue
		}
		if p.slots == nil {
			t.fresh = p.remember(o.env)
		}
		todo = append(todo, t)
		if r, ok := p.group.Rule.(scratcher); ok {
			o.env.Reserve(r.scratch(&p.Param) * p.computes().Size())
		}
	}
	done = true
	return todo
}

// computes is the dtype in which the parameter changes.
func (p *held) computes() dtype.Type {
	if p.Value.DType() == dtype.F64 {
		return dtype.F64
	}
	return dtype.F32
}

// remember makes what the rule remembers about the parameter.
func (p *held) remember(env *core.Env) *held {
	m := &held{slots: []*core.Tensor{}}
	done := false
	defer func() {
		if !done {
			m.free()
		}
	}()
	for _, s := range p.group.Rule.slots(&p.Param) {
		if s.axes == nil {
			s.axes, s.sizes = p.Value.Axes(), p.Value.Sizes()
		}
		m.slots = append(m.slots, env.Tensor(p.computes(), s.axes, s.sizes...))
	}
	if r, ok := p.group.Rule.(counter); ok {
		m.numbers = make([]float64, len(r.numbers()))
	}
	if p.Value.DType() != p.computes() {
		m.master = env.Tensor(p.computes(), p.Value.Axes(), p.Value.Sizes()...)
	}
	done = true
	return m
}

// free lets go of what is remembered.
func (p *held) free() {
	for _, t := range p.slots {
		t.Free()
	}
	if p.master != nil {
		p.master.Free()
	}
}

// adopt remembers what was made for it.
func (t task) adopt(env *core.Env) {
	if t.fresh == nil {
		return
	}
	t.slots, t.numbers, t.master = t.fresh.slots, t.fresh.numbers, t.fresh.master
	if t.master != nil {
		move(env, t.master, t.Value)
	}
}

// change is the step of one parameter.
func (o *Optimizer) change(t task) {
	t.steps++
	if t.Value.Len() == 0 {
		return
	}
	u := &update{env: o.env, param: &t.Param, index: t.index, n: t.steps, lr: o.rate(t.group), p: t.Value, g: t.grad,
		slots: t.slots, numbers: t.numbers}
	if t.master != nil {
		u.p = t.master
	}
	t.group.Rule.step(u)
	if t.master != nil {
		move(o.env, t.Value, t.master)
	}
}

// move gives y the values of x.
func move(env *core.Env, y, x *core.Tensor) {
	(&core.Sweep{Writes: 1, F32: copies[float32], F64: copies[float64]}).Run(env, y, x)
}

func copies[T any](_ int, xs [][]T) { copy(xs[0], xs[1]) }

// update is one parameter in one step.
type update struct {
	env     *core.Env
	param   *Param
	index   int   // of the parameter
	n       int64 // which step of the parameter it is, from 1
	lr      float64
	p, g    *core.Tensor // p in f32 or f64
	slots   []*core.Tensor
	numbers []float64
}

// sweep goes over p, the slots and g, in this order; the first writes of them change.
func (u *update) sweep(writes int, f32 func(int, [][]float32), f64 func(int, [][]float64)) {
	ts := append(append([]*core.Tensor{u.p}, u.slots...), u.g)
	u.over(writes, f32, f64, ts...)
}

// over goes over tensors.
func (u *update) over(writes int, f32 func(int, [][]float32), f64 func(int, [][]float64), ts ...*core.Tensor) {
	(&core.Sweep{Writes: writes, F32: f32, F64: f64}).Run(u.env, ts...)
}

// correction is 1 - beta^n.
func (u *update) correction(beta float64) float64 { return 1 - math.Pow(beta, float64(u.n)) }

// sign turns a gradient around where the loss is to grow.
func sign(maximize bool) float64 {
	if maximize {
		return -1
	}
	return 1
}
