package starlark

import (
	"fmt"
	"slices"
	"strings"

	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// boundedMethods are the methods of Starlark's texts and containers whose work has no bound but their arguments.
// pass.go lets a hidden value look at what x.name is taken of.
var boundedMethods = []string{
	"capitalize", "count", "difference", "elems", "endswith", "extend", "find", "format", "index", "insert",
	"intersection", "isalnum", "isalpha", "isdigit", "islower", "isspace", "issubset", "issuperset", "istitle",
	"isupper", "items", "join", "keys", "lower", "lstrip", "partition", "remove", "removeprefix", "removesuffix",
	"replace", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip",
	"symmetric_difference", "title", "union", "update", "upper", "values",
}

// methodCheck is the X of X[v] in X[v].name.
type methodCheck struct {
	hiddenValue
	it *Interp
}

func (c *methodCheck) Get(v star.Value) (star.Value, bool, error) { return c.it.bounded(v), true, nil }

// bounded is v as a value whose methods do not go on when the run has to stop.
func (it *Interp) bounded(v star.Value) star.Value {
	switch v := v.(type) {
	case star.String, star.Bytes:
		return &boundedValue{v.(star.HasAttrs), it, true}
	case *star.List, *star.Dict, *star.Set:
		return &boundedValue{v.(star.HasAttrs), it, false}
	}
	return v
}

// argumentsName is the name of the hidden value that looks at what f(*xs) is given.
const argumentsName = "*xs"

// maxArguments is how many arguments a list may give a call, which copies them.
const maxArguments = 1 << 20

// argumentsCheck is the X of X[v] in f(*X[v]): v, unless it is too long, which ends when the run has to stop.
type argumentsCheck struct {
	hiddenValue
	it *Interp
}

func (c *argumentsCheck) Get(v star.Value) (star.Value, bool, error) {
	if n := star.Len(v); n > maxArguments {
		return nil, false, fmt.Errorf("*: got %d arguments, want at most %d; give the list itself, without *", n,
			maxArguments)
	}
	return c.it.watch(v), true, nil
}

type boundedValue struct {
	star.HasAttrs
	it     *Interp
	isText bool
}

// Attr is the method, bounded.
func (v *boundedValue) Attr(name string) (star.Value, error) {
	method, err := v.HasAttrs.Attr(name)
	b, ok := method.(*star.Builtin)
	if !ok {
		return method, err
	}
	size := 0
	if v.isText {
		size = star.Len(v.HasAttrs)
	}
	switch name {
	case "join", "extend", "update", "union", "replace", "format":
	case "difference", "intersection", "symmetric_difference", "issubset", "issuperset":
	default:
		if size < longText {
			return method, err
		}
	}
	return star.NewBuiltin(name, func(
		t *star.Thread, _ *star.Builtin, args star.Tuple, kwargs []star.Tuple,
	) (star.Value, error) {
		return v.it.method(t, b, v, size, args, kwargs)
	}).BindReceiver(v.HasAttrs), nil
}

// method calls a method of x, which has size bytes if it is a text.
func (it *Interp) method(
	t *star.Thread, b *star.Builtin, x *boundedValue, size int, args star.Tuple, kwargs []star.Tuple,
) (v star.Value, err error) {
	defer rescue(&err)
	switch b.Name() {
	case "replace":
		return it.Apart(size+textSize(args), func() (star.Value, error) {
			if err := it.replaced(x.HasAttrs, args); err != nil {
				return nil, err
			}
			return b.CallInternal(t, args, kwargs)
		})
	case "difference", "intersection", "symmetric_difference", "issubset", "issuperset":
		if len(args) != 1 || len(kwargs) > 0 { // Starlark's own would panic
			return nil, fmt.Errorf("%s: got %d arguments, want what to compare with: s.%[1]s([1, 2])", b.Name(),
				len(args)+len(kwargs))
		}
		fallthrough
	case "join", "extend", "update", "union", "format":
		watchedArgs := slices.Clone(args)
		for i, arg := range args {
			if b.Name() == "format" {
				watchedArgs[i] = it.shown(arg)
			} else if _, mapping := arg.(star.IterableMapping); !mapping {
				watchedArgs[i] = it.watch(arg)
			}
		}
		v, err = b.CallInternal(t, watchedArgs, kwargs)
		if why := it.stopped.Load(); why != nil {
			return nil, why
		}
		return v, err
	}
	return it.Apart(size, func() (star.Value, error) { return b.CallInternal(t, args, kwargs) })
}

// replaced is an error if x.replace(old, new, count) has no room.
func (it *Interp) replaced(x star.Value, args star.Tuple) error {
	s, ok := star.AsString(x)
	if !ok || len(args) < 2 {
		return nil
	}
	before, ok1 := star.AsString(args[0])
	after, ok2 := star.AsString(args[1])
	if !ok1 || !ok2 || len(after) <= len(before) || (len(s)+1)*len(after) < longText {
		return nil
	}
	n := uint64(strings.Count(s, before))
	if len(args) > 2 {
		if most, err := star.AsInt32(args[2]); err == nil && most >= 0 {
			n = min(n, uint64(most))
		}
	}
	if err := it.room("a string", uint64(len(s))+n*uint64(len(after)-len(before))); err != nil {
		return err
	}
	return it.spend(int(n*uint64(len(after))) / stepBytes)
}

// walk calls one of Starlark's own builtins that goes through its arguments. Long ones end when the run has to stop;
// what reads a long text does it apart.
func (it *Interp) walk(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if size := textSize(args); size >= longText {
		return it.Apart(size, func() (star.Value, error) { return b.CallInternal(t, args, kwargs) })
	}
	long := args
	for i, arg := range args {
		if n := star.Len(arg); n >= 0 && n < longList {
			continue
		}
		w := it.watch(arg)
		switch d := arg.(type) {
		case Tensor:
			continue
		case star.IterableMapping:
			if b.Name() == "dict" {
				w = it.watch(&pairs{d, d.Items()})
			}
		}
		if s, ok := w.(*watchedSequence); ok && b.Name() == "zip" {
			w = &s.watched // zip goes to the end of what has a length
		}
		if i < len(long) && &long[0] == &args[0] {
			long = slices.Clone(args)
		}
		long[i] = w
	}
	v, err := b.CallInternal(t, long, kwargs)
	if why := it.stopped.Load(); why != nil {
		return nil, why
	}
	return v, err
}

// getAttr is getattr(x, name, default=None); it finds bounded methods as x.name does.
func getAttr(t *star.Thread, _ *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if len(args) > 0 {
		args = slices.Clone(args)
		args[0] = interpOf(t).bounded(args[0])
	}
	return star.Universe["getattr"].(*star.Builtin).CallInternal(t, args, kwargs)
}

// sorted is sorted(xs, key=None, reverse=False): a list of the elements in order; equals keep theirs.
func sorted(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var xs star.Iterable
	var key star.Callable
	reverse := false
	if err := star.UnpackArgs(b.Name(), args, kwargs, "iterable", &xs, "key??", &key, "reverse?",
		&reverse); err != nil {
		return nil, err
	}
	it := interpOf(t)
	type pair struct{ key, value star.Value }
	var list []pair
	for x := range star.Elements(it.watch(xs).(star.Iterable)) {
		k := x
		if key != nil {
			if k, err = it.call(t, key, star.Tuple{x}, nil); err != nil {
				return nil, err
			}
		}
		list = append(list, pair{k, x})
	}
	compared := 0
	less := func(x, y star.Value) bool {
		if compared++; compared%pieceLen == 0 {
			if err := it.spend(pieceLen / stepItems); err != nil {
				panic(err)
			}
		}
		is, err := star.Compare(syntax.LT, x, y)
		if err != nil {
			panic(err)
		}
		return is
	}
	if err := it.spend(0); err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(x, y pair) int {
		if reverse {
			x, y = y, x
		}
		if less(x.key, y.key) {
			return -1
		}
		return 1 // or equal: only what is less counts
	})
	values := make([]star.Value, len(list))
	for i, p := range list {
		values[i] = p.value
	}
	return star.NewList(values), nil
}

// addBounds gives scripts the hidden values that bound operators and methods. A comparison whose result is itself a
// condition has its own, since a Comparer may answer with a Conditioner.
func (it *Interp) addBounds() {
	for _, op := range []syntax.Token{syntax.STAR, syntax.PERCENT, syntax.PIPE} {
		it.names[op.String()] = &operatorCheck{it: it, op: op}
	}
	for _, op := range comparisons {
		it.names[op.String()] = &comparisonCheck{it: it, op: op}
		it.names["if "+op.String()] = &comparisonCheck{it: it, op: op, condition: true}
	}
	it.names["[:]"] = &sliceCheck{it: it}
	it.names["in"] = &containerCheck{it: it}
	it.names["+"] = &addCheck{it: it}
	it.names["+="] = &addCheck{it: it, inPlace: true}
	it.names["*="] = &timesCheck{it: it}
	it.names["."] = &methodCheck{it: it}
	it.names[argumentsName] = &argumentsCheck{it: it}
}
