package starlark

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"unicode"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
)

// FromGo is a Go value as scripts see it: nil, bools, integers, floats, strings, []byte (bytes), slices and
// arrays (lists), maps with string, integer or bool keys (dicts, in the order of the keys), structs and pointers
// to them (structs with the exported fields, named as in snake_case or by a `star:"name"` tag), functions
// (see Function), *big.Int, *core.Tensor, and Starlark values as they are. A nil pointer is None. Tensors are not
// copied, all else is. An error says what has no form in a script: other types, and what is nested more than 1000 deep,
// as is what contains itself.
func FromGo(v any) (star.Value, error) { return fromGo(v, 0) }

// fromGo is FromGo inside of depth others.
func fromGo(v any, depth int) (star.Value, error) {
	if depth > maxNesting {
		return nil, errors.New("a Go value is nested more than 1000 deep, or contains itself")
	}
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && p.IsNil() {
		return star.None, nil
	}
	switch v := v.(type) {
	case nil:
		return star.None, nil
	case star.Value:
		return v, nil
	case *core.Tensor:
		return Tensor{v}, nil
	case []byte:
		return star.Bytes(v), nil
	case *big.Int:
		return star.MakeBigInt(v), nil
	}
	return fromReflect(reflect.ValueOf(v), depth)
}

func fromReflect(v reflect.Value, depth int) (star.Value, error) {
	switch v.Kind() {
	case reflect.Bool:
		return star.Bool(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return star.MakeInt64(v.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return star.MakeUint64(v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return star.Float(v.Float()), nil
	case reflect.String:
		return star.String(v.String()), nil
	case reflect.Slice, reflect.Array:
		items := make([]star.Value, v.Len())
		for i := range items {
			var err error
			if items[i], err = fromGo(v.Index(i).Interface(), depth+1); err != nil {
				return nil, err
			}
		}
		return star.NewList(items), nil
	case reflect.Map:
		return fromMap(v, depth)
	case reflect.Pointer:
		return fromGo(v.Elem().Interface(), depth+1)
	case reflect.Struct:
		return fromStruct(v, depth)
	case reflect.Func:
		return Function("function", v.Interface())
	}
	return nil, fmt.Errorf("a Go value of type %s has no form in a script", v.Type())
}

func fromMap(v reflect.Value, depth int) (star.Value, error) {
	d := star.NewDict(v.Len())
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		return strings.Compare(fmt.Sprint(a.Interface()), fmt.Sprint(b.Interface()))
	})
	for _, k := range keys {
		key, err := fromGo(k.Interface(), depth+1)
		if err != nil {
			return nil, err
		}
		value, err := fromGo(v.MapIndex(k).Interface(), depth+1)
		if err != nil {
			return nil, err
		}
		if err := d.SetKey(key, value); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func fromStruct(v reflect.Value, depth int) (star.Value, error) {
	fields := star.StringDict{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		value, err := fromGo(v.Field(i).Interface(), depth+1)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		fields[fieldName(f)] = value
	}
	return starlarkstruct.FromStringDict(starlarkstruct.Default, fields), nil
}

// fieldName is what scripts call a Go field: its star tag, or the name in snake_case.
func fieldName(f reflect.StructField) string {
	if tag := f.Tag.Get("star"); tag != "" {
		return tag
	}
	var b strings.Builder
	runes := []rune(f.Name)
	for i, r := range runes {
		if unicode.IsUpper(r) {
			if i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// toGo is what Into stores into an any, from inside of depth others.
func toGo(v star.Value, depth int) (any, error) {
	if depth > maxNesting {
		return nil, errNesting
	}
	switch v := v.(type) {
	case nil, star.NoneType:
		return nil, nil
	case star.Bool:
		return bool(v), nil
	case star.Int:
		if i, ok := v.Int64(); ok {
			return i, nil
		}
		return v.BigInt(), nil
	case star.Float:
		return float64(v), nil
	case star.String:
		return string(v), nil
	case star.Bytes:
		return []byte(v), nil
	case Tensor:
		return v.Tensor, nil
	case star.IterableMapping:
		return dictToGo(v, depth)
	case *starlarkstruct.Struct:
		fields := star.StringDict{}
		v.ToStringDict(fields)
		return namesToGo(fields, depth)
	case *starlarkstruct.Module:
		return namesToGo(v.Members, depth)
	case *star.List, star.Tuple, *star.Set:
		items := []any{}
		for item := range star.Elements(v.(star.Iterable)) {
			x, err := toGo(item, depth+1)
			if err != nil {
				return nil, err
			}
			items = append(items, x)
		}
		return items, nil
	}
	return v, nil
}

func namesToGo(d star.StringDict, depth int) (map[string]any, error) {
	m := make(map[string]any, len(d))
	for name, v := range d {
		x, err := toGo(v, depth+1)
		if err != nil {
			return nil, err
		}
		m[name] = x
	}
	return m, nil
}

func dictToGo(d star.IterableMapping, depth int) (any, error) {
	items := d.Items()
	names, others := map[string]any{}, map[any]any{}
	for _, item := range items {
		key, err := toGo(item[0], depth+1)
		if err != nil {
			return nil, err
		}
		if !hashable(key) {
			key = item[0].String()
		}
		value, err := toGo(item[1], depth+1)
		if err != nil {
			return nil, err
		}
		others[key] = value
		if name, ok := star.AsString(item[0]); ok {
			names[name] = value
		}
	}
	if len(names) == len(items) {
		return names, nil
	}
	return others, nil
}

// hashable says whether a Go map can have key as a key.
func hashable(key any) bool { return key == nil || reflect.ValueOf(key).Comparable() }

// Into stores a script's value into the variable that to points to, of any type FromGo takes but arrays and functions.
// Numbers must fit; a missing struct field stays as it is, an unknown one is an error. A variable of type any gets nil,
// bool, int64 (*big.Int beyond it), float64, string, []byte, []any for lists, tuples and sets, map[string]any for
// structs, modules and dicts with string keys, map[any]any for other dicts (where what Go cannot hash, such as a tuple,
// is the text of it), *core.Tensor; other values, functions among them, stay what they are.
func Into(v star.Value, to any) error {
	p := reflect.ValueOf(to)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("got %T to store into, want a pointer", to)
	}
	return into(v, p.Elem(), 0)
}

// into is Into inside of depth others.
func into(v star.Value, to reflect.Value, depth int) error {
	if depth > maxNesting {
		return errNesting
	}
	bad := func() error { return fmt.Errorf("got %s, want %s", v.Type(), inScripts(to.Type())) }
	switch p := to.Addr().Interface().(type) {
	case **core.Tensor:
		x, ok := v.(Tensor)
		if !ok {
			return bad()
		}
		*p = x.Tensor
		return nil
	case *star.Value:
		*p = v
		return nil
	case *any:
		x, err := toGo(v, depth)
		*p = x
		return err
	case **big.Int:
		switch v := v.(type) {
		case star.Int:
			*p = v.BigInt()
		case star.NoneType:
			*p = nil
		default:
			return bad()
		}
		return nil
	case *[]byte:
		b, ok := v.(star.Bytes)
		if !ok {
			return bad()
		}
		*p = []byte(b)
		return nil
	}
	switch to.Kind() {
	case reflect.Bool:
		b, ok := v.(star.Bool)
		if !ok {
			return bad()
		}
		to.SetBool(bool(b))
	case reflect.String:
		s, ok := star.AsString(v)
		if !ok {
			return bad()
		}
		to.SetString(s)
	case reflect.Float32, reflect.Float64:
		f, ok := star.AsFloat(v)
		if !ok {
			return bad()
		}
		if _, whole := v.(star.Int); to.OverflowFloat(f) || whole && math.IsInf(f, 0) {
			return fmt.Errorf("%s does not fit into %s", v, to.Type())
		}
		to.SetFloat(f)
	case reflect.Slice:
		return intoSlice(v, to, depth, bad)
	case reflect.Map:
		return intoMap(v, to, depth, bad)
	case reflect.Struct:
		return intoStruct(v, to, depth, bad)
	case reflect.Pointer:
		if v == star.None {
			to.SetZero()
			return nil
		}
		to.Set(reflect.New(to.Type().Elem()))
		return into(v, to.Elem(), depth+1)
	default:
		return intoInteger(v, to, bad)
	}
	return nil
}

// inScripts is what scripts call what is stored into a variable of type t.
func inScripts(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[*core.Tensor]():
		return "a tensor"
	case reflect.TypeFor[[]byte]():
		return "bytes"
	case reflect.TypeFor[*big.Int]():
		return "an int"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "an int"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a bool"
	case reflect.Slice:
		return "a list"
	case reflect.Map:
		return "a dict"
	case reflect.Struct:
		return "a struct"
	}
	return "a value of the Go type " + t.String() + ", which no script has"
}

func intoInteger(v star.Value, to reflect.Value, bad func() error) error {
	i, ok := v.(star.Int)
	if !ok {
		return bad()
	}
	switch {
	case to.CanInt():
		n, ok := i.Int64()
		if !ok || to.OverflowInt(n) {
			return fmt.Errorf("%s does not fit into %s", i, to.Type())
		}
		to.SetInt(n)
	case to.CanUint():
		n, ok := i.Uint64()
		if !ok || to.OverflowUint(n) {
			return fmt.Errorf("%s does not fit into %s", i, to.Type())
		}
		to.SetUint(n)
	default:
		return bad()
	}
	return nil
}

func intoSlice(v star.Value, to reflect.Value, depth int, bad func() error) error {
	seq, ok := v.(star.Iterable)
	if !ok {
		return bad()
	}
	list := reflect.MakeSlice(to.Type(), 0, max(0, star.Len(v)))
	i := 0
	for item := range star.Elements(seq) {
		element := reflect.New(to.Type().Elem()).Elem()
		if err := into(item, element, depth+1); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		list = reflect.Append(list, element)
		i++
	}
	to.Set(list)
	return nil
}

func intoMap(v star.Value, to reflect.Value, depth int, bad func() error) error {
	d, ok := v.(star.IterableMapping)
	if !ok {
		return bad()
	}
	m := reflect.MakeMap(to.Type())
	for _, item := range d.Items() {
		key, value := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
		if err := into(item[0], key, depth+1); err != nil {
			return fmt.Errorf("key %s: %w", item[0], err)
		}
		if !key.Comparable() {
			return fmt.Errorf("key %s: Go cannot hash it", item[0])
		}
		if err := into(item[1], value, depth+1); err != nil {
			return fmt.Errorf("value of %s: %w", item[0], err)
		}
		m.SetMapIndex(key, value)
	}
	to.Set(m)
	return nil
}

func intoStruct(v star.Value, to reflect.Value, depth int, bad func() error) error {
	fields := star.StringDict{}
	switch v := v.(type) {
	case *starlarkstruct.Struct:
		v.ToStringDict(fields)
	case star.IterableMapping:
		for _, item := range v.Items() {
			name, ok := star.AsString(item[0])
			if !ok {
				return bad()
			}
			fields[name] = item[1]
		}
	default:
		return bad()
	}
	fields = maps.Clone(fields)
	var known []string
	for i := range to.NumField() {
		f := to.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		known = append(known, fieldName(f))
		value, ok := fields[fieldName(f)]
		if !ok {
			continue
		}
		delete(fields, fieldName(f))
		if err := into(value, to.Field(i), depth+1); err != nil {
			return fmt.Errorf("field %s: %w", fieldName(f), err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		return fmt.Errorf("got an unknown field %s, want %s", name, strings.Join(known, ", "))
	}
	return nil
}

// Function is a Go function as a builtin. Its parameters are converted by Into, positional only; a variadic one takes
// the rest. Its results are converted by FromGo: none gives None, several a tuple; a last result of type error
// fails the call. A panic is an error at the script's line.
func Function(name string, fn any) (*star.Builtin, error) {
	f := reflect.ValueOf(fn)
	if f.Kind() != reflect.Func || f.IsNil() {
		return nil, fmt.Errorf("%s: got %T, want a function", name, fn)
	}
	t := f.Type()
	fixed := t.NumIn()
	if t.IsVariadic() {
		fixed--
	}
	return star.NewBuiltin(name, func(
		_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple,
	) (_ star.Value, err error) {
		defer rescue(&err)
		if len(kwargs) > 0 {
			return nil, fmt.Errorf("%s takes no keywords, got %s", b.Name(), kwargs[0][0])
		}
		if len(args) < fixed || len(args) > fixed && !t.IsVariadic() {
			return nil, fmt.Errorf("%s: got %d arguments, want %d", b.Name(), len(args), fixed)
		}
		in := make([]reflect.Value, len(args))
		for i, arg := range args {
			var kind reflect.Type
			if i < fixed {
				kind = t.In(i)
			} else {
				kind = t.In(fixed).Elem()
			}
			in[i] = reflect.New(kind).Elem()
			if err := into(arg, in[i], 0); err != nil {
				return nil, fmt.Errorf("%s: argument %d: %w", b.Name(), i+1, err)
			}
		}
		return results(b.Name(), f.Call(in))
	}), nil
}

var errorType = reflect.TypeFor[error]()

func results(name string, out []reflect.Value) (star.Value, error) {
	if n := len(out); n > 0 && out[n-1].Type() == errorType {
		if err, failed := out[n-1].Interface().(error); failed {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = out[:n-1]
	}
	values := make(star.Tuple, len(out))
	for i, v := range out {
		var err error
		if values[i], err = FromGo(v.Interface()); err != nil {
			return nil, fmt.Errorf("%s: result %d: %w", name, i+1, err)
		}
	}
	switch len(values) {
	case 0:
		return star.None, nil
	case 1:
		return values[0], nil
	}
	return values, nil
}
