package starlark

import (
	"fmt"
	"strconv"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/grad/optim"
)

// maxParamDepth is how deep lists, dicts and structs of parameters may be nested.
const maxParamDepth = 100

// paramWalk collects the variables that a value leads to, through lists, tuples, dicts and structs, in their order; the
// fields of a struct in that of the alphabet. A variable met again is the same parameter. What is no tensor is passed
// over: a struct may have numbers and functions in it.
type paramWalk struct {
	op   string
	list []optim.Param
	seen map[*core.Variable]bool
	been map[any]bool // containers, by identity: one may be in many places, and in itself
}

// paramsOf is the parameters that v leads to. Their names are made of keys, fields and places, as in blocks.0.w_q,
// behind prefix.
func paramsOf(op string, v star.Value, prefix string) ([]optim.Param, error) {
	w := paramWalk{op: op, seen: map[*core.Variable]bool{}, been: map[any]bool{}}
	if err := w.visit(v, prefix, 0); err != nil {
		return nil, err
	}
	if len(w.list) == 0 {
		return nil, &core.Error{Op: op, Msg: "found no variable in params, a " + v.Type(),
			Hint: "variables are: w = variable(w)"}
	}
	return w.list, nil
}

func (w *paramWalk) visit(v star.Value, name string, depth int) error {
	if depth > maxParamDepth {
		return &core.Error{Op: w.op, Msg: fmt.Sprintf("params are nested more than %d deep", maxParamDepth),
			Hint: "give the inner ones"}
	}
	if w.again(v) {
		return nil
	}
	within := func(key string) string {
		if name == "" {
			return key
		}
		return name + "." + key
	}
	switch v := v.(type) {
	case Tensor:
		w.tensor(v, name)
	case *star.Dict:
		for _, item := range v.Items() {
			if err := w.visit(item[1], within(text(item[0])), depth+1); err != nil {
				return err
			}
		}
	case *starlarkstruct.Struct:
		for _, field := range v.AttrNames() {
			x, err := v.Attr(field)
			if err != nil {
				return err
			}
			if err := w.visit(x, within(field), depth+1); err != nil {
				return err
			}
		}
	case *star.List, star.Tuple:
		list := v.(star.Indexable)
		for i := range list.Len() {
			if err := w.visit(list.Index(i), within(strconv.Itoa(i)), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// again tells whether v is a container that was met before.
func (w *paramWalk) again(v star.Value) bool {
	var key any
	switch v := v.(type) {
	case *star.List, *star.Dict, *starlarkstruct.Struct:
		key = v
	case star.Tuple:
		if len(v) > 0 {
			key = &v[0]
		}
	}
	if key == nil || w.been[key] {
		return key != nil
	}
	w.been[key] = true
	return false
}

func (w *paramWalk) tensor(x Tensor, name string) {
	if name == "" {
		name = "param"
	}
	v := x.Variable() // nil if it is none, which grad/optim refuses
	if v != nil && w.seen[v] {
		return
	}
	w.seen[v] = true
	w.list = append(w.list, optim.Param{Name: name, Value: x.Tensor})
}
