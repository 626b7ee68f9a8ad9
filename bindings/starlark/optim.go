package starlark

import (
	"errors"
	"fmt"
	"math"
	"strings"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/grad"
	"github.com/fucina-go/fucina/grad/optim"
)

// optimModule is the module optim: one function for each optimizer that grad/optim declares, and ema.
func optimModule() *starlarkstruct.Module {
	m := &starlarkstruct.Module{Name: "optim", Members: star.StringDict{}}
	for _, info := range optim.Rules() {
		m.Members[info.Name] = star.NewBuiltin("optim."+info.Name, func(
			t *star.Thread, _ *star.Builtin, args star.Tuple, kwargs []star.Tuple,
		) (star.Value, error) {
			return newOptimizer(t, info, args, kwargs)
		})
	}
	m.Members["ema"] = star.NewBuiltin("optim.ema", newEMA)
	return m
}

// optimizer is an optimizer as a script sees it. It is a grad.Stateful.
type optimizer struct{ *optim.Optimizer }

var (
	_ star.HasSetField = (*optimizer)(nil)
	_ Holder           = (*optimizer)(nil)
	_ grad.Stateful    = (*optimizer)(nil)
)

func (o *optimizer) Type() string          { return "optimizer" }
func (o *optimizer) Freeze()               {}
func (o *optimizer) Truth() star.Bool      { return true }
func (o *optimizer) Hash() (uint32, error) { return 0, errors.New("unhashable: optimizer") }

func (o *optimizer) String() string {
	return fmt.Sprintf("<optim.%s of %d parameters, lr %v>", o.Name(), len(o.Params()), o.LR())
}

// Holds visits the parameters.
func (o *optimizer) Holds(visit func(star.Value)) { holdParams(o.Params(), visit) }

func holdParams(params []optim.Param, visit func(star.Value)) {
	for _, p := range params {
		visit(Tensor{p.Value})
	}
}

// newOptimizer is an optimizer of params, which lead to variables, or are dicts with params and settings of a group's
// own.
func newOptimizer(t *star.Thread, info *optim.Info, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var params star.Value
	lr := info.LR
	rule := info.NewRule()
	op := info.Name
	if len(args) > 2 {
		return nil, &core.Error{Op: op, Msg: fmt.Sprintf("got %d arguments by position, want params and lr", len(args)),
			Hint: "the others go by name: optim." + op + "(params, lr=" + star.Float(lr).String() + ")"}
	}
	for i, arg := range args {
		kwargs = append(kwargs, star.Tuple{star.String([]string{"params", "lr"}[i]), arg})
	}
	given := map[string]bool{}
	for _, kw := range kwargs {
		name := string(kw[0].(star.String))
		if given[name] {
			return nil, &core.Error{Op: op, Msg: "got " + name + " twice"}
		}
		given[name] = true
		var err error
		switch name {
		case "params":
			params = kw[1]
		case "lr":
			lr, err = hyperFloat(op, name, kw[1])
		default:
			err = setHyper(op, info, rule, name, kw[1], "params", "lr")
		}
		if err != nil {
			return nil, err
		}
	}
	if params == nil {
		return nil, &core.Error{Op: op, Msg: "got no params", Hint: "as in: optim." + op + "([w, b])"}
	}
	groups, err := groupsOf(op, info, rule, params)
	if err != nil {
		return nil, err
	}
	return &optimizer{optim.New(interpOf(t).env, op, lr, groups)}, nil
}

// groupsOf reads params: a list of dicts that have params is one of groups, anything else is one group.
func groupsOf(op string, info *optim.Info, rule optim.Rule, params star.Value) ([]optim.Group, error) {
	list, ok := params.(*star.List)
	isGroup := func(v star.Value) bool {
		d, ok := v.(*star.Dict)
		if !ok {
			return false
		}
		_, has, err := d.Get(star.String("params"))
		return has && err == nil
	}
	if !ok || list.Len() == 0 || !isGroup(list.Index(0)) {
		found, err := paramsOf(op, params, "")
		return []optim.Group{{Params: found, Rule: rule, Name: info.Name, Scale: 1}}, err
	}
	var groups []optim.Group
	for i := range list.Len() {
		if !isGroup(list.Index(i)) {
			return nil, &core.Error{Op: op, Msg: fmt.Sprintf("params[%d] is no group, but params[0] is one", i),
				Hint: `a group is: {"params": [w, b], "lr": 3e-4}`}
		}
		g, err := groupOf(op, info, rule, list.Index(i).(*star.Dict), fmt.Sprint(i))
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// groupOf reads one group: params, lr or lr_scale, the name of another rule, and hyperparameters.
func groupOf(op string, info *optim.Info, rule optim.Rule, d *star.Dict, prefix string) (g optim.Group, err error) {
	g = optim.Group{Name: info.Name, Scale: 1}
	if v, ok, _ := d.Get(star.String("rule")); ok {
		name, _ := star.AsString(v)
		if info = optim.Lookup(optim.Rules(), name); info == nil {
			return g, unknownName(op, "rule", text(v), optim.Rules())
		}
		g.Name, g.Rule = name, info.NewRule()
	} else {
		g.Rule = info.Clone(rule)
	}
	for _, item := range d.Items() {
		key, v := text(item[0]), item[1]
		switch key {
		case "params":
			g.Params, err = paramsOf(op, v, prefix)
		case "rule":
		case "lr":
			var lr float64
			lr, err = hyperFloat(op, key, v)
			g.Own = &lr
		case "lr_scale":
			g.Scale, err = hyperFloat(op, key, v)
		default:
			err = setHyper(op, info, g.Rule, key, v, "params", "rule", "lr", "lr_scale")
		}
		if err != nil {
			return g, err
		}
	}
	if _, ok, _ := d.Get(star.String("lr_scale")); ok && g.Own != nil {
		return g, &core.Error{Op: op, Msg: "a group has both lr and lr_scale",
			Hint: "lr stays as it is, lr_scale follows the optimizer's lr; leave one out"}
	}
	return g, nil
}

// unknownName is the error for a name that is none of the declared.
func unknownName(op, what, name string, list []*optim.Info) error {
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
	}
	e := &core.Error{Op: op, Msg: fmt.Sprintf("there is no %s %q", what, name),
		Hint: "there are " + strings.Join(names, ", ")}
	if near := nearest(name, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}

// setHyper gives a rule or schedule a hyperparameter; others are names that are taken besides.
func setHyper(op string, info *optim.Info, x any, name string, v star.Value, others ...string) error {
	f := info.Field(name)
	if f == nil {
		names := others
		for _, f := range info.Fields {
			names = append(names, f.Name)
		}
		e := &core.Error{Op: op, Msg: fmt.Sprintf("there is no setting %q", name),
			Hint: "there are " + strings.Join(names, ", ")}
		if near := nearest(name, names); near != "" {
			e.Hint = fmt.Sprintf("did you mean %s?", near)
		}
		return e
	}
	var value any
	var err error
	switch f.Default.(type) {
	case float64:
		value, err = hyperFloat(op, name, v)
	case int:
		var n int
		if _, isInt := v.(star.Int); !isInt || star.AsInt(v, &n) != nil {
			return wrongHyper(op, name, v, "a whole number")
		}
		value = n
	case bool:
		is, ok := v.(star.Bool)
		if !ok {
			return wrongHyper(op, name, v, "True or False")
		}
		value = bool(is)
	case string:
		s, ok := star.AsString(v)
		if !ok {
			return wrongHyper(op, name, v, "a string")
		}
		value = s
	case [2]float64:
		value, err = hyperPair(op, name, v)
	}
	if err == nil {
		f.Set(x, value)
	}
	return err
}

func wrongHyper(op, name string, v star.Value, want string) error {
	return &core.Error{Op: op, Msg: fmt.Sprintf("%s: got %s, want %s", name, v.Type(), want)}
}

func hyperFloat(op, name string, v star.Value) (float64, error) {
	x, ok := star.AsFloat(v)
	if _, isTensor := v.(Tensor); isTensor {
		return 0, &core.Error{Op: op, Msg: name + ": got a tensor, want a number",
			Hint: "its value is: " + name + ".item()"}
	}
	if !ok || math.IsNaN(x) {
		return 0, wrongHyper(op, name, v, "a number")
	}
	return x, nil
}

func hyperPair(op, name string, v star.Value) (pair [2]float64, err error) {
	s, ok := v.(star.Sequence)
	if !ok || s.Len() != 2 {
		return pair, wrongHyper(op, name, v, "two numbers, such as (0.9, 0.999)")
	}
	i := 0
	for item := range star.Elements(s) {
		if pair[i], err = hyperFloat(op, fmt.Sprintf("%s[%d]", name, i), item); err != nil {
			return pair, err
		}
		i++
	}
	return pair, nil
}

// optimizerMethods are what scripts call on an optimizer.
var optimizerMethods = map[string]*star.Builtin{
	"step":      star.NewBuiltin("step", optimizerStep),
	"zero_grad": star.NewBuiltin("zero_grad", optimizerZeroGrad),
}

// Attr is lr, params or a method.
func (o *optimizer) Attr(name string) (star.Value, error) {
	switch name {
	case "lr":
		return star.Float(o.LR()), nil
	case "params":
		return paramDict(o.Params())
	}
	if b, ok := optimizerMethods[name]; ok {
		return b.BindReceiver(o), nil
	}
	return nil, nil
}

// paramDict is the parameters by their names.
func paramDict(params []optim.Param) (star.Value, error) {
	d := star.NewDict(len(params))
	for _, p := range params {
		if err := d.SetKey(star.String(p.Name), Tensor{p.Value}); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// AttrNames is every attribute.
func (o *optimizer) AttrNames() []string { return []string{"lr", "params", "step", "zero_grad"} }

// SetField is opt.lr = x.
func (o *optimizer) SetField(name string, v star.Value) (err error) {
	defer rescue(&err)
	if name != "lr" {
		return star.NoSuchAttrError(fmt.Sprintf("an optimizer has no .%s to set; lr is: opt.lr = 3e-4", name))
	}
	lr, err := hyperFloat(name, name, v)
	if err == nil {
		o.SetLR(name, lr)
	}
	return err
}

// optimizerStep is o.step(lr=None): every parameter that has a gradient changes by the rule of the optimizer o; one
// that has none stays. With lr, that is the learning rate from here on: o.step(lr=s(i)) follows a schedule s. All
// change or, if the memory does not suffice, none; an interrupt takes effect afterwards.
func optimizerStep(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var lr star.Value = star.None
	if err := star.UnpackArgs(b.Name(), args, kwargs, "lr?", &lr); err != nil {
		return nil, err
	}
	o := b.Receiver().(*optimizer)
	if lr != star.None {
		x, err := hyperFloat(b.Name(), "lr", lr)
		if err != nil {
			return nil, err
		}
		o.SetLR(b.Name(), x)
	}
	o.Step()
	return star.None, nil
}

// optimizerZeroGrad is o.zero_grad(): forgets the gradients of the parameters, so that the next backward begins anew.
// Without it gradients add up, over several batches for example: backward(loss / n) n times, then o.step().
func optimizerZeroGrad(
	_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple,
) (v star.Value, err error) {
	defer rescue(&err)
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	b.Receiver().(*optimizer).ZeroGrad()
	return star.None, nil
}

// clipGradNorm is clip_grad_norm(params, max_norm, norm_type=2.0, error_if_nonfinite=False): multiplies the gradients
// of the variables in params by max_norm / norm, if the norm of all of them together is above max_norm, and returns the
// norm. norm_type may be float("inf"), for the greatest magnitude. A norm that is no finite number is an error if
// error_if_nonfinite.
func clipGradNorm(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var params, limit star.Value
	var order star.Value = star.Float(2)
	strict := false
	if err := star.UnpackArgs(b.Name(), args, kwargs, "params", &params, "max_norm", &limit, "norm_type?", &order,
		"error_if_nonfinite?", &strict); err != nil {
		return nil, err
	}
	list, err := paramsOf(b.Name(), params, "")
	if err != nil {
		return nil, err
	}
	most, err := hyperFloat(b.Name(), "max_norm", limit)
	if err != nil {
		return nil, err
	}
	p, err := hyperFloat(b.Name(), "norm_type", order)
	if err != nil {
		return nil, err
	}
	it := interpOf(t)
	norm := optim.ClipNorm(it.env, list, most, p, strict)
	if it.paths != nil {
		return unknown{it}, nil
	}
	return star.Float(norm), nil
}

// clipGradValue is clip_grad_value(params, clip_value): bounds every element of the gradients of the variables in
// params to the range from -clip_value to clip_value.
func clipGradValue(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var params, limit star.Value
	if err := star.UnpackArgs(b.Name(), args, kwargs, "params", &params, "clip_value", &limit); err != nil {
		return nil, err
	}
	list, err := paramsOf(b.Name(), params, "")
	if err != nil {
		return nil, err
	}
	most, err := hyperFloat(b.Name(), "clip_value", limit)
	if err != nil {
		return nil, err
	}
	optim.ClipValue(interpOf(t).env, list, most)
	return star.None, nil
}
