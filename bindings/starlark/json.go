package starlark

import (
	"slices"

	"go.starlark.net/lib/json"
	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
)

// jsonModule is Starlark's json, of which encode and decode end when the run has to stop.
var jsonModule = &starlarkstruct.Module{Name: "json", Members: star.StringDict{
	"decode": star.NewBuiltin("json.decode", decode),
	"encode": star.NewBuiltin("json.encode", encode),
	"indent": star.NewBuiltin("json.indent", indent),
}}

// textSize is the bytes of text among arguments.
func textSize(args star.Tuple) (size int) {
	for _, arg := range args {
		switch arg.(type) {
		case star.String, star.Bytes:
			size += star.Len(arg)
		}
	}
	return size
}

// indent is json.indent, apart.
func indent(t *star.Thread, _ *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	return interpOf(t).Apart(textSize(args), func() (star.Value, error) {
		return json.Module.Members["indent"].(*star.Builtin).CallInternal(t, args, kwargs)
	})
}

// decode is json.decode, apart.
func decode(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	return interpOf(t).Apart(textSize(args), func() (star.Value, error) {
		return json.Module.Members["decode"].(*star.Builtin).CallInternal(t, args, kwargs)
	})
}

// encode is json.encode; what it goes through asks whether to stop.
func encode(t *star.Thread, _ *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	it := interpOf(t)
	args = slices.Clone(args)
	for i, arg := range args {
		args[i] = it.encodable(arg, 0)
	}
	v, err = json.Module.Members["encode"].(*star.Builtin).CallInternal(t, args, kwargs)
	if why := it.stopped.Load(); why != nil {
		return nil, why
	}
	return v, err
}

// encodable is v with iterators that ask whether to stop, also those of its elements.
func (it *Interp) encodable(v star.Value, depth int) star.Value {
	switch v := v.(type) {
	case star.String:
		if len(v) >= longText {
			return &encodableText{v, it}
		}
	case *star.List, star.Tuple, *star.Set:
		return &encodableList{watched{v.(star.Iterable), it}, depth}
	case star.IterableMapping:
		return &encodableDict{v, it, depth}
	case Tensor:
		panic(&core.Error{Op: "json.encode", Msg: "got " + v.Shape() + ", which JSON has nothing for",
			Hint: "its numbers are x.tolist()"})
	}
	return v
}

// encodableText is a long text, which is written apart.
type encodableText struct {
	star.Value
	it *Interp
}

// MarshalJSON is the text as JSON.
func (s *encodableText) MarshalJSON() ([]byte, error) {
	v, err := s.it.Apart(star.Len(s.Value), func() (star.Value, error) {
		return star.Call(new(star.Thread), json.Module.Members["encode"], star.Tuple{s.Value}, nil)
	})
	if err != nil {
		return nil, err
	}
	return []byte(v.(star.String)), nil
}

type encodableList struct {
	watched
	depth int
}

// Iterate begins to go through the elements.
func (l *encodableList) Iterate() star.Iterator {
	return &encodableIterator{Iterator: l.watched.Iterate(), it: l.it, depth: l.depth}
}

type encodableIterator struct {
	star.Iterator
	it    *Interp
	depth int
	seen  int
}

// Next is the next element, encodable.
func (i *encodableIterator) Next(v *star.Value) bool {
	if !i.Iterator.Next(v) {
		return false
	}
	if i.depth == maxNesting {
		panic(errNesting)
	}
	if i.seen++; i.seen%pieceLen == 0 {
		i.it.spend(pieceLen / 2) // the watched iterator sees why the run must stop; writing an element takes long
	}
	*v = i.it.encodable(*v, i.depth+1)
	return true
}

type encodableDict struct {
	star.IterableMapping
	it    *Interp
	depth int
}

// Items is the entries with encodable values.
func (d *encodableDict) Items() []star.Tuple {
	items := d.IterableMapping.Items()
	for i, item := range items {
		if i%pieceLen == pieceLen-1 {
			if err := d.it.spend(pieceLen / stepItems); err != nil {
				panic(err)
			}
		}
		if d.depth == maxNesting {
			panic(errNesting)
		}
		items[i] = star.Tuple{item[0], d.it.encodable(item[1], d.depth+1)}
	}
	return items
}
