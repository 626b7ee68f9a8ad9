package starlark

import (
	"errors"
	"slices"
	"strings"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// maxNesting is how deep lists may be nested for what goes through them by recursion.
const maxNesting = 1000

var errNesting = errors.New("lists are nested more than 1000 deep, or contain themselves")

// text is v as str shows it, or as repr does: then a string is quoted. It asks in between whether to stop.
func (it *Interp) text(v star.Value, quoted bool) (string, error) {
	if s, ok := v.(star.String); ok {
		if !quoted {
			return string(s), nil
		}
		q, err := it.Apart(len(s), func() (star.Value, error) { return star.String(s.String()), nil })
		if err != nil {
			return "", err
		}
		return string(q.(star.String)), nil
	}
	w := textWriter{it: it}
	err := w.value(v)
	return w.out.String(), err
}

// Show is v as the prompt shows it: as repr does, but for tensors inside of lists, structs and the like, of which those
// of more than 16 elements stand with their axes alone; a model's weights would be thousands of lines. Of what repr
// refuses, such as lists nested too deep, it is the beginning.
func (it *Interp) Show(v star.Value) string {
	w := textWriter{it: it, echo: true}
	if err := w.value(v); err != nil {
		return brief(v)
	}
	return w.out.String()
}

// maxEchoed is how many elements a tensor inside of another value has at most for the prompt to show them.
const maxEchoed = 16

// maxBrief is how many bytes of a value a message shows.
const maxBrief = 200

var errBrief = errors.New("a value has more text than a message shows")

// brief is v as a message shows it: a tensor by its shape, and of what is long, deep or contains itself the beginning.
func brief(v star.Value) string {
	if x, ok := v.(Tensor); ok {
		return x.Shape()
	}
	w := textWriter{}
	err := w.value(v)
	text := w.out.String()
	if err == nil && len(text) <= maxBrief {
		return text
	}
	return strings.ToValidUTF8(text[:min(len(text), maxBrief)], "") + "…"
}

// textWriter writes values as Starlark does, or without it what a message shows of them.
type textWriter struct {
	it   *Interp
	echo bool // leave out the elements of tensors that stand in others
	out  strings.Builder
	path []star.Value
	seen int
}

func (w *textWriter) value(v star.Value) error {
	if w.it == nil {
		if w.out.Len() > maxBrief {
			return errBrief
		}
		switch s := v.(type) {
		case star.String:
			v = s[:min(len(s), maxBrief)]
		case star.Bytes:
			v = s[:min(len(s), maxBrief)]
		}
	}
	if w.seen++; w.it != nil && w.seen%pieceLen == 0 {
		if err := w.it.spend(pieceLen / stepItems); err != nil {
			return err
		}
		if err := w.it.room("a string", uint64(w.out.Len())); err != nil {
			return err
		}
	}
	switch v := v.(type) {
	case Tensor:
		if w.echo && len(w.path) > 0 && !v.Closed() && v.Len() > maxEchoed {
			w.out.WriteString(v.Shape() + " …")
			return nil
		}
	case nil:
		w.out.WriteString("nothing") // an argument that was left out
		return nil
	case *star.List:
		return w.nested(v, "[", "]", func() error { return w.elements(v) })
	case star.Tuple:
		end := ")"
		if len(v) == 1 {
			end = ",)"
		}
		return w.nested(nil, "(", end, func() error { return w.elements(v) })
	case *star.Set:
		return w.nested(nil, "set([", "])", func() error { return w.elements(v) })
	case *star.Dict:
		return w.nested(v, "{", "}", func() error { return w.entries(v) })
	case *starlarkstruct.Struct:
		name := v.Constructor().String()
		if s, ok := star.AsString(v.Constructor()); ok {
			name = s
		}
		return w.nested(nil, name+"(", ")", func() error { return w.fields(v) })
	case star.String:
		if w.it == nil {
			break
		}
		s, err := w.it.text(v, true)
		w.out.WriteString(s)
		return err
	}
	w.out.WriteString(v.String())
	return nil
}

// nested writes what is in a container; one that contains itself is "...".
func (w *textWriter) nested(v star.Value, begin, end string, inside func() error) error {
	w.out.WriteString(begin)
	defer w.out.WriteString(end)
	if v != nil && slices.Contains(w.path, v) {
		w.out.WriteString("...")
		return nil
	}
	if len(w.path) == maxNesting {
		return errNesting
	}
	w.path = append(w.path, v)
	defer func() { w.path = w.path[:len(w.path)-1] }()
	return inside()
}

func (w *textWriter) elements(xs star.Iterable) error {
	i := 0
	for x := range star.Elements(xs) {
		if i++; i > 1 {
			w.out.WriteString(", ")
		}
		if err := w.value(x); err != nil {
			return err
		}
	}
	return nil
}

func (w *textWriter) entries(d *star.Dict) error {
	i := 0
	for key, x := range d.Entries() {
		if i++; i > 1 {
			w.out.WriteString(", ")
		}
		if err := w.value(key); err != nil {
			return err
		}
		w.out.WriteString(": ")
		if err := w.value(x); err != nil {
			return err
		}
	}
	return nil
}

func (w *textWriter) fields(s *starlarkstruct.Struct) error {
	for i, name := range s.AttrNames() {
		if i > 0 {
			w.out.WriteString(", ")
		}
		x, err := s.Attr(name)
		if err != nil {
			return err
		}
		w.out.WriteString(name + " = ")
		if err := w.value(x); err != nil {
			return err
		}
	}
	return nil
}

// toText is str(x): x as text, a string as it is.
func toText(t *star.Thread, _ *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	own := star.Universe["str"].(*star.Builtin)
	if len(kwargs) > 0 || len(args) != 1 {
		return own.CallInternal(t, args, kwargs)
	}
	it := interpOf(t)
	if bytes, ok := args[0].(star.Bytes); ok {
		return it.Apart(len(bytes), func() (star.Value, error) { return own.CallInternal(t, args, nil) })
	}
	s, err := it.text(args[0], false)
	return star.String(s), err
}

// represent is repr(x): x as text, a string in quotes.
func represent(t *star.Thread, _ *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if len(kwargs) > 0 || len(args) != 1 {
		return star.Universe["repr"].(*star.Builtin).CallInternal(t, args, kwargs)
	}
	s, err := interpOf(t).text(args[0], true)
	return star.String(s), err
}
