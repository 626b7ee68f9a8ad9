package starlark

import (
	"fmt"
	"math"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core/gguf"
)

// readMetadata is the metadata as a dict that is frozen, for it is read once.
func (f *ggufFile) readMetadata() (*star.Dict, error) {
	keys := f.file.Keys()
	d := star.NewDict(len(keys))
	for _, key := range keys {
		v, _ := f.file.Value(key)
		value, err := f.it.fromGGUF(v)
		if err != nil {
			return nil, err
		}
		_ = d.SetKey(star.String(key), value) // a string can be hashed
	}
	d.Freeze()
	return d, nil
}

// fromGGUF is a metadata value for a script: an int, a float, a bool, a string or a list of such.
func (it *Interp) fromGGUF(v gguf.Value) (star.Value, error) {
	switch v := v.Any().(type) {
	case int64:
		return star.MakeInt64(v), nil
	case uint64:
		return star.MakeUint64(v), nil
	case float64:
		return star.Float(v), nil
	case bool:
		return star.Bool(v), nil
	case string:
		return star.String(v), nil
	case gguf.Array:
		const element = 64 // bytes at least, with what it takes in a list
		if err := it.room("the metadata", uint64(v.Len())*element); err != nil {
			return nil, err
		}
		items := make([]star.Value, 0, v.Len())
		for e := range v.Values() {
			if len(items)%pieceLen == pieceLen-1 {
				if err := it.spend(pieceLen / stepItems); err != nil {
					return nil, err
				}
			}
			item, err := it.fromGGUF(e)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return star.NewList(items), nil
	}
	panic(fmt.Sprintf("starlark: a metadata value is a %T", v.Any()))
}

// maxMetaDepth is how deep lists may be nested, as in what is read.
const maxMetaDepth = 4

// toGGUF is a script's value in the kind that old has, if there is an old one.
func (it *Interp) toGGUF(v star.Value, old gguf.Value, had bool) (gguf.Value, error) {
	if d, ok := v.(*star.Dict); ok { // {"u16": 5}
		items := d.Items()
		name := ""
		if len(items) == 1 {
			name, _ = star.AsString(items[0][0])
		}
		kind, ok := gguf.KindNamed(name)
		if !ok || kind == gguf.KindArray {
			return old, fmt.Errorf("got %s, want a value, or its kind and the value, as in {\"u16\": 5}; kinds are "+
				"u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool string", v)
		}
		if list, ok := items[0][1].(star.Sequence); ok {
			return it.listValue(list, kind)
		}
		return scalarValue(items[0][1], kind)
	}
	if !had {
		return it.inferredValue(v, 0)
	}
	was, err := it.fromGGUF(old)
	if err != nil {
		return old, err
	}
	if same, err := star.Equal(was, v); same && err == nil && was.Type() == v.Type() {
		return old, nil
	}
	a, isArray := old.Any().(gguf.Array)
	list, isList := v.(star.Sequence)
	switch {
	case isArray != isList:
		return old, fmt.Errorf("got %s where the file has %s; give the kind to change it, as in {\"i32\": %s}",
			v.Type(), was.Type(), v)
	case isArray:
		return it.listValue(list, a.Elem())
	}
	return scalarValue(v, old.Kind())
}

// scalarValue is v in a kind that is no array.
func scalarValue(v star.Value, kind gguf.Kind) (gguf.Value, error) {
	switch v := v.(type) {
	case star.Bool:
		if kind == gguf.KindBool {
			return gguf.Bool(bool(v)), nil
		}
	case star.String:
		if kind == gguf.KindString {
			return gguf.Text(string(v)), nil
		}
	case star.Int:
		if kind.IsFloat() {
			return scalarValue(v.Float(), kind)
		}
		if !kind.IsInt() {
			break
		}
		least, most := kind.Range()
		n, signed := v.Int64()
		u, unsigned := v.Uint64()
		if signed && n < 0 && n >= least {
			return gguf.Int(kind, n), nil
		}
		if unsigned && u <= most {
			return gguf.Int(kind, int64(u)), nil
		}
		return gguf.Value{}, fmt.Errorf("got %s, want a %s: %d … %d", v, kind, least, most)
	case star.Float:
		x := float64(v)
		if kind == gguf.KindF64 {
			return gguf.Double(x), nil
		}
		if kind == gguf.KindF32 && (math.Abs(x) <= math.MaxFloat32 || math.IsInf(x, 0) || x != x) {
			return gguf.Float(float32(x)), nil
		}
	}
	return gguf.Value{}, fmt.Errorf("got %s, a %s, want a %s", v, v.Type(), kind)
}

// listValue is an array of elements of a kind.
func (it *Interp) listValue(list star.Sequence, elem gguf.Kind) (gguf.Value, error) {
	values := make([]gguf.Value, 0, list.Len())
	for item := range star.Elements(list) {
		v, err := gguf.Value{}, error(nil)
		if len(values)%pieceLen == pieceLen-1 {
			err = it.spend(pieceLen / stepItems)
		}
		if err != nil {
			return v, err
		}
		if elem == gguf.KindArray {
			v, err = it.inferredValue(item, 1)
		} else {
			v, err = scalarValue(item, elem)
		}
		if err != nil {
			return v, fmt.Errorf("element %d: %w", len(values), err)
		}
		if v.Kind() != elem {
			return v, fmt.Errorf("element %d: got %s, want an array", len(values), item.Type())
		}
		values = append(values, v)
	}
	return gguf.List(elem, values...), nil
}

// inferredValue is v in the kind that llama.cpp's tools would use: u32, i32 or wider where it does not fit, f32, bool,
// string; integers in a list are i32, or wider.
func (it *Interp) inferredValue(v star.Value, depth int) (gguf.Value, error) {
	if depth > maxMetaDepth {
		return gguf.Value{}, fmt.Errorf("lists are nested more than %d deep", maxMetaDepth)
	}
	switch v := v.(type) {
	case star.Bool:
		return scalarValue(v, gguf.KindBool)
	case star.String:
		return scalarValue(v, gguf.KindString)
	case star.Float:
		return scalarValue(v, gguf.KindF32)
	case star.Int:
		return scalarValue(v, narrowest(v, gguf.KindU32, gguf.KindI32, gguf.KindI64))
	case *star.List, star.Tuple:
		list := v.(star.Sequence)
		elem, err := elementKind(list)
		if err != nil {
			return gguf.Value{}, err
		}
		if elem != gguf.KindArray {
			return it.listValue(list, elem)
		}
		var values []gguf.Value
		for item := range star.Elements(list) {
			value, err := it.inferredValue(item, depth+1)
			if err == nil && value.Kind() != elem {
				err = fmt.Errorf("element %d: got %s, want a list, as the first is", len(values), item.Type())
			}
			if err != nil {
				return value, err
			}
			values = append(values, value)
		}
		return gguf.List(elem, values...), nil
	}
	return gguf.Value{}, fmt.Errorf("got a %s, want an int, a float, a bool, a text or a list of such", v.Type())
}

// narrowest is the first of kinds that holds v, or u64.
func narrowest(v star.Int, kinds ...gguf.Kind) gguf.Kind {
	for _, kind := range kinds {
		if _, err := scalarValue(v, kind); err == nil {
			return kind
		}
	}
	return gguf.KindU64
}

// elementKind is the kind for the elements of a list.
func elementKind(list star.Sequence) (gguf.Kind, error) {
	if list.Len() == 0 {
		return 0, fmt.Errorf(`got an empty list, whose kind is unknown; say it: {"i32": []}`)
	}
	kind := gguf.KindI32
	for item := range star.Elements(list) {
		switch v := item.(type) {
		case star.Bool:
			return gguf.KindBool, nil
		case star.String:
			return gguf.KindString, nil
		case *star.List, star.Tuple:
			return gguf.KindArray, nil
		case star.Float:
			return gguf.KindF32, nil
		case star.Int:
			if _, err := scalarValue(v, kind); err != nil {
				kind = narrowest(v, gguf.KindI64)
			}
		default:
			return 0, fmt.Errorf("got a %s in a list, want ints, floats, bools, texts or lists", v.Type())
		}
	}
	return kind, nil
}
