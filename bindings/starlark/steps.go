package starlark

import (
	"fmt"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
)

// scoped is scoped(fn): a function that calls fn in a scope of its own each time.
func scoped(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var fn star.Callable
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &fn); err != nil {
		return nil, err
	}
	return &scopedFunc{fn: fn}, nil
}

// scopedFunc is what scoped returns.
type scopedFunc struct{ fn star.Callable }

func (f *scopedFunc) Name() string          { return f.fn.Name() }
func (f *scopedFunc) String() string        { return "<scoped " + f.fn.Name() + ">" }
func (f *scopedFunc) Type() string          { return "function" }
func (f *scopedFunc) Freeze()               { f.fn.Freeze() }
func (f *scopedFunc) Truth() star.Bool      { return true }
func (f *scopedFunc) Hash() (uint32, error) { return f.fn.Hash() }

// Holds visits the function.
func (f *scopedFunc) Holds(visit func(star.Value)) { visit(f.fn) }

// CallInternal calls the function in a scope.
func (f *scopedFunc) CallInternal(t *star.Thread, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	return inScope(t, f.fn, args, kwargs)
}

// keep is keep(x): the tensors that x leads to are ended by no scope. It returns x.
func keep(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var x star.Value
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &x); err != nil {
		return nil, err
	}
	var reach reachable
	reach.visit(x)
	if err := reach.known(b.Name()); err != nil {
		return nil, err
	}
	for _, t := range reach.tensors {
		t.Keep()
	}
	return x, nil
}

// steps is steps(n) or steps(iterable): what a loop goes through when every turn is to be a scope.
// Tensors made in a turn end with it, unless they can be reached from local or global variables.
func steps(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var over star.Value
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &over); err != nil {
		return nil, err
	}
	s := &stepsValue{it: interpOf(t)}
	switch over := over.(type) {
	case star.Int:
		n, err := size(over)
		if err != nil {
			return nil, &core.Error{Op: b.Name(), Msg: err.Error(), Hint: "without end: while True"}
		}
		s.n = n
	case star.Iterable:
		s.over = over
	default:
		return nil, &core.Error{Op: b.Name(),
			Msg:  "got " + over.Type() + ", want a number of turns or something to iterate",
			Hint: "as in: steps(3)"}
	}
	return s, nil
}

// stepsValue is what steps returns.
type stepsValue struct {
	it   *Interp
	n    int
	over star.Iterable // nil: count to n
}

func (s *stepsValue) String() string        { return "<steps>" }
func (s *stepsValue) Type() string          { return "steps" }
func (s *stepsValue) Freeze()               {}
func (s *stepsValue) Truth() star.Bool      { return true }
func (s *stepsValue) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: steps") }

// Holds visits what is iterated.
func (s *stepsValue) Holds(visit func(star.Value)) {
	if s.over != nil {
		visit(s.over)
	}
}

// Iterate begins the loop.
func (s *stepsValue) Iterate() star.Iterator {
	turns := &turns{it: s.it, n: s.n}
	if s.over != nil {
		turns.over = s.over.Iterate()
	}
	return turns
}

// turns is one run of a loop over steps.
type turns struct {
	it   *Interp
	i, n int
	over star.Iterator
	open *core.Scope // of the turn in progress
}

// Next ends the turn in progress and begins the next one.
func (s *turns) Next(v *star.Value) bool {
	if s.open != nil {
		reach := s.it.reach(s.open)
		reach.locals(s.it.thread)
		reach.frames(s.it.thread)
		reach.globals(s.it)
		reach.end(s.open)
		s.open = nil
		if reach.stopped != nil {
			return false
		}
		if err := reach.known("steps"); err != nil {
			s.it.halt(&stop{msg: err.Error(), cause: err, catchable: true})
			return false
		}
	}
	if s.over != nil {
		s.open = s.it.env.Open() // what is iterated may make tensors: they belong to the turn
		if !s.over.Next(v) {
			s.open.Dissolve()
			s.open = nil
			return false
		}
		return true
	}
	if s.i >= s.n {
		return false
	}
	*v = star.MakeInt(s.i)
	s.i++
	s.open = s.it.env.Open()
	return true
}

// Done ends the loop. A turn left by break, return or an error is not over: the value on its way out
// cannot be seen from here, so its tensors go to the scope around the loop.
func (s *turns) Done() {
	if s.over != nil {
		s.over.Done()
	}
	if s.open != nil {
		s.open.Dissolve()
		s.open = nil
	}
}
