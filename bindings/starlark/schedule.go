package starlark

import (
	"errors"
	"fmt"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/grad/optim"
)

// scheduleModule is the module schedule: one function for each that grad/optim declares.
func scheduleModule() *starlarkstruct.Module {
	m := &starlarkstruct.Module{Name: "schedule", Members: star.StringDict{}}
	for _, info := range optim.Schedules() {
		m.Members[info.Name] = star.NewBuiltin("schedule."+info.Name, func(
			_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple,
		) (star.Value, error) {
			return newSchedule(info, args, kwargs)
		})
	}
	return m
}

// schedule is a learning rate as a function s(step).
type schedule struct {
	name string
	of   optim.Schedule
}

var _ star.Callable = (*schedule)(nil)

func (s *schedule) Name() string          { return s.name }
func (s *schedule) Type() string          { return "schedule" }
func (s *schedule) String() string        { return "<schedule." + s.name + ">" }
func (s *schedule) Freeze()               {}
func (s *schedule) Truth() star.Bool      { return true }
func (s *schedule) Hash() (uint32, error) { return 0, errors.New("unhashable: schedule") }

// HoldsNothing marks that no tensor can be reached through it.
func (s *schedule) HoldsNothing() {}

// maxStep is the last step that a schedule answers for.
const maxStep = 1 << 53

// CallInternal is the learning rate in a step.
func (s *schedule) CallInternal(_ *star.Thread, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var v star.Value
	if err := star.UnpackArgs(s.name, args, kwargs, "step", &v); err != nil {
		return nil, err
	}
	var step int64
	if i, ok := v.(star.Int); ok {
		if step, ok = i.Int64(); ok && step >= 0 && step <= maxStep {
			return star.Float(s.of.At(int(step))), nil
		}
	}
	return nil, &core.Error{Op: s.name, Msg: fmt.Sprintf("got step %s, want a number of steps from 0", brief(v)),
		Hint: "as in: s(0)"}
}

func newSchedule(info *optim.Info, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	op := info.Name
	s := info.NewSchedule()
	given := map[string]bool{}
	set := func(name string, v star.Value) error {
		if given[name] {
			return &core.Error{Op: op, Msg: "got " + name + " twice"}
		}
		given[name] = true
		return setHyper(op, info, s, name, v)
	}
	if len(args) > len(info.Fields) {
		return nil, &core.Error{Op: op,
			Msg:  fmt.Sprintf("got %d arguments, want at most %d", len(args), len(info.Fields)),
			Hint: "it is: schedule." + op + "(" + info.Usage() + ")"}
	}
	for i, arg := range args {
		if err := set(info.Fields[i].Name, arg); err != nil {
			return nil, err
		}
	}
	for _, kw := range kwargs {
		if err := set(string(kw[0].(star.String)), kw[1]); err != nil {
			return nil, err
		}
	}
	for _, f := range info.Fields {
		if f.Required && !given[f.Name] {
			return nil, &core.Error{Op: op, Msg: "got no " + f.Name,
				Hint: "it is: schedule." + op + "(" + info.Usage() + ")"}
		}
	}
	optim.CheckSchedule(op, s)
	return &schedule{info.Name, s}, nil
}
