package starlark

import (
	"fmt"
	"reflect"

	startime "go.starlark.net/lib/time"
	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
)

// Holder is a Go value that holds script values; scopes look into it to see which tensors survive.
type Holder interface {
	Holds(visit func(star.Value))
}

// scope is scope(fn, *args, **kwargs): it calls fn and returns its result. Tensors made inside end
// with the call, unless they can be reached from the result, from fn, from its arguments or from
// global variables.
func scope(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if len(args) == 0 {
		return nil, &core.Error{Op: "scope", Msg: "got no function, want scope(fn, *args)",
			Hint: "as in: scope(lambda: zeros(row=2))"}
	}
	return inScope(t, args[0], args[1:], kwargs)
}

// inScope calls fn in a scope of its own.
func inScope(t *star.Thread, fn star.Value, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	roots := append([]star.Value{fn}, args...)
	for _, kw := range kwargs {
		roots = append(roots, kw[1])
	}
	return holding(t, roots, func() (star.Value, error) { return interpOf(t).call(t, fn, args, kwargs) })
}

// holding runs call in a scope of its own, which what can be reached from the result or the roots survives.
func holding(t *star.Thread, roots []star.Value, call func() (star.Value, error)) (star.Value, error) {
	it := interpOf(t)
	s := it.env.Open()
	over := false
	defer func() {
		if !over { // a panic is on its way out
			s.Close()
		}
	}()
	result, err := call()
	if it.stopped.Load() != nil && s.Inner() {
		over = true
		s.Dissolve() // what lives on is settled once, at the end of the outermost scope
		if err == nil {
			err = it.spend(0)
		}
		return nil, err
	}
	reach := it.reach(s)
	reach.visit(result)
	for _, v := range roots {
		reach.visit(v)
	}
	reach.frames(t)
	reach.globals(it)
	over = true
	if reach.end(s); err == nil {
		err = reach.stopped
	}
	if err == nil {
		err = reach.known("scope")
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// reachable collects the tensors that values lead to.
type reachable struct {
	walkLists
	unknown string

	it      *Interp // whose steps the walk counts as, and whose lists it takes
	grace   int     // values it may still visit when the run has to stop
	visited int
	paid    int
	stopped error // the walk was broken off
}

// walkLists is what a walk notes in. Short lists serve the next walk, too: at the end of every turn of a loop, new ones
// would cost more than the walk.
type walkLists struct {
	tensors []*core.Tensor
	seen    map[any]bool // containers and functions, by identity
	todo    []star.Value // a list rather than recursion: lists may be nested a million deep
}

// longestWalk is how long lists may be that serve the next walk.
const longestWalk = 256

// leave gives the lists to the next walk.
func (r *reachable) leave() {
	if len(r.seen) > longestWalk || cap(r.todo) > longestWalk || cap(r.tensors) > longestWalk {
		return
	}
	clear(r.seen)
	clear(r.tensors)
	clear(r.todo[:cap(r.todo)])
	r.it.lists = walkLists{r.tensors[:0], r.seen, r.todo[:0]}
}

// graceValues is how many values the end of the outermost scope visits, although the run has to stop, so that what
// was made inside is given back: a matter of some ten milliseconds.
const graceValues = 1 << 20

// reach is what finds the survivors of s.
func (it *Interp) reach(s *core.Scope) reachable {
	r := reachable{it: it, walkLists: it.lists}
	it.lists = walkLists{}
	if !s.Inner() {
		r.grace = graceValues
	}
	return r
}

// pay counts what was visited as steps.
func (r *reachable) pay() {
	err := r.it.spend((r.visited - r.paid) / stepItems)
	r.paid = r.visited
	if err != nil && r.visited > r.grace && r.stopped == nil {
		r.stopped = err
	}
}

// end ends the scope. If it is not known what survives, all does, for the scope around or for the collector to end.
func (r *reachable) end(s *core.Scope) {
	if r.pay(); r.stopped != nil {
		s.Dissolve()
		return
	}
	s.Close(r.tensors...)
	r.leave()
}

// visit follows v and all that it leads to.
func (r *reachable) visit(v star.Value) {
	r.todo = append(r.todo, v)
	for len(r.todo) > 0 && r.stopped == nil {
		last := len(r.todo) - 1
		next := r.todo[last]
		r.todo = r.todo[:last]
		r.look(next)
	}
}

// push notes a value to look at, unless it leads nowhere.
func (r *reachable) push(v star.Value) {
	if r.visited++; r.visited-r.paid >= pieceLen {
		r.pay()
	}
	if r.stopped == nil && !leadsNowhere(v) {
		r.todo = append(r.todo, v)
	}
}

// frames visits the global variables of every function in progress.
func (r *reachable) frames(t *star.Thread) {
	for depth := range t.CallStackDepth() {
		r.visited += stepItems / 4 // so that a scope deep inside counts as more steps than one that is not
		fn, ok := t.DebugFrame(depth).Callable().(*star.Function)
		if !ok || !r.enter(fn.Module()) {
			continue
		}
		for _, v := range r.it.globalsOf(fn.Module(), t) {
			r.visit(v)
		}
	}
}

// finished is a module whose file or source was run to its end, so that its variables stay as they are.
type finished struct {
	module  *star.Module
	globals []star.Value // but for those that lead nowhere
}

// globalsOf is what global variables of a module lead to, and remembered until another module is asked for.
func (it *Interp) globalsOf(m *star.Module, t *star.Thread) []star.Value {
	if it.finished.module == m {
		return it.finished.globals
	}
	var values []star.Value
	for _, v := range m.Globals() {
		if !leadsNowhere(v) {
			values = append(values, v)
		}
	}
	for depth := range t.CallStackDepth() {
		fn, ok := t.DebugFrame(depth).Callable().(*star.Function)
		if ok && fn.Module() == m && fn.Name() == topLevel {
			return values // some may be yet to come
		}
	}
	it.finished = finished{m, values}
	return values
}

// leadsNowhere tells whether a value holds no other, whatever happens.
func leadsNowhere(v star.Value) bool {
	switch v := v.(type) {
	case nil, star.NoneType, star.Bool, star.Int, star.Float, star.String, star.Bytes:
		return true
	case *star.Function:
		for i := range v.NumParams() {
			if v.ParamDefault(i) != nil {
				return false
			}
		}
		return v.NumFreeVars() == 0
	}
	return false
}

// locals visits the local variables of every function in progress.
func (r *reachable) locals(t *star.Thread) {
	for depth := range t.CallStackDepth() {
		f := t.DebugFrame(depth)
		if _, ok := f.Callable().(*star.Function); !ok {
			continue
		}
		for i := range f.NumLocals() {
			_, v := f.Local(i)
			if v != nil && v.Type() == "cell" {
				v = cellValue(v)
			}
			r.visit(v)
		}
		r.visit(f.Callable()) // and the variables it shares with functions around it
	}
}

// cellValue is the value of a local variable that inner functions share. Starlark keeps it in a cell,
// whose type it does not export: a struct with the value as its only field.
func cellValue(cell star.Value) star.Value {
	return *(*star.Value)(reflect.ValueOf(cell).UnsafePointer())
}

// globals visits the global variables of the session.
func (r *reachable) globals(it *Interp) {
	for _, v := range it.globals {
		r.visit(v)
	}
}

// known is an error if a value was met that may hold tensors nobody can see.
func (r *reachable) known(op string) error {
	if r.unknown == "" {
		return nil
	}
	return &core.Error{Op: op, Msg: "cannot tell which tensors a value of type " + r.unknown + " holds",
		Hint: "its Go type must implement Holds"}
}

// enter notes a value that others may lead back to; it is false for one seen before.
func (r *reachable) enter(v any) bool {
	if r.seen[v] {
		return false
	}
	if r.seen == nil {
		r.seen = map[any]bool{}
	}
	r.seen[v] = true
	return true
}

// look notes a tensor, or pushes what v holds.
func (r *reachable) look(v star.Value) {
	switch v := v.(type) {
	case nil, star.NoneType, star.Bool, star.Int, star.Float, star.String, star.Bytes:
	case startime.Time, startime.Duration:
	case Tensor:
		if r.enter(v.Tensor) {
			r.tensors = append(r.tensors, v.Tensor)
			r.hooks(v.Variable())
		}
	case star.Tuple:
		for i := 0; i < len(v) && r.stopped == nil; i++ {
			r.push(v[i])
		}
	case *star.List:
		if r.enter(v) {
			for i := 0; i < v.Len() && r.stopped == nil; i++ {
				r.push(v.Index(i))
			}
		}
	case *star.Dict:
		if r.enter(v) {
			for _, value := range v.Entries() {
				if r.push(value); r.stopped != nil {
					break
				}
			}
		}
	case *star.Function:
		if r.enter(v) {
			r.function(v)
		}
	case *star.Builtin:
		if v.Receiver() != nil {
			r.push(v.Receiver())
		}
	case *opFunc:
		if v.self != nil {
			r.push(Tensor{v.self})
		}
	case *starlarkstruct.Struct:
		if r.enter(v) {
			for _, name := range v.AttrNames() {
				if field, err := v.Attr(name); err == nil {
					r.push(field)
				}
			}
		}
	case *starlarkstruct.Module:
		if r.enter(v) {
			for _, member := range v.Members {
				r.push(member)
			}
		}
	case Holder:
		if r.enter(v) {
			v.Holds(r.push)
		}
	case *star.Set: // its elements are hashable, and tensors are not
	default:
		if _, plain := v.(interface{ HoldsNothing() }); !plain && !isPlainSequence(v) {
			r.unknown = fmt.Sprintf("%s (%T)", v.Type(), v)
		}
	}
}

// isPlainSequence tells whether v is one of Starlark's own types without a name: of range(n), text.elems() and
// the like, which hold numbers and texts only.
func isPlainSequence(v star.Value) bool {
	return reflect.TypeOf(v).PkgPath() == reflect.TypeFor[star.Int]().PkgPath()
}

// function follows a function's free variables and defaults.
func (r *reachable) function(fn *star.Function) {
	for i := range fn.NumFreeVars() {
		_, v := fn.FreeVar(i)
		r.push(v)
	}
	for i := range fn.NumParams() {
		r.push(fn.ParamDefault(i))
	}
}

// hooks follows the functions that backward calls for a variable.
func (r *reachable) hooks(v *core.Variable) {
	if v == nil {
		return
	}
	for _, h := range v.Hooks {
		if owner, ok := h.Owner.(star.Value); ok {
			r.push(owner)
		}
	}
}
