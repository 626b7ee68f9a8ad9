package starlark

import (
	"slices"
	"strings"
	"unicode"

	star "go.starlark.net/starlark"
)

// Complete returns, sorted, what could stand in a script for the last part of word, which is the beginning of a name,
// maybe behind other names and dots: "soft", "x.", "m.tok". What begins with an underscore is left out unless word has
// it, and what is no name that can be written, too. Nothing is called, only attributes are looked up; a value of the
// host that panics there has none. It must not be called while a script computes.
func (it *Interp) Complete(word string) (found []string) {
	defer func() {
		if recover() != nil {
			found = nil
		}
	}()
	path := strings.Split(word, ".")
	begun := path[len(path)-1]
	names := it.Names()
	if len(path) > 1 {
		names = nil
		if v, ok := it.value(path[:len(path)-1]).(star.HasAttrs); ok {
			names = v.AttrNames()
		}
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !strings.HasPrefix(name, begun) || begun == "" && strings.HasPrefix(name, "_") || !isName(name)
	})
	slices.Sort(names)
	return names
}

// isName tells whether s can stand behind a dot: letters, digits and underscores, and first no digit.
func isName(s string) bool {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return s != ""
}

// value is what a script could now call by the names of path with dots between them; nil if nothing.
func (it *Interp) value(path []string) (v star.Value) {
	for _, names := range []star.StringDict{it.globals, it.names, star.Universe} {
		if v = names[path[0]]; v != nil {
			break
		}
	}
	for _, name := range path[1:] {
		x, ok := v.(star.HasAttrs)
		if !ok || !slices.Contains(x.AttrNames(), name) {
			return nil
		}
		var err error
		if v, err = x.Attr(name); err != nil {
			return nil
		}
	}
	return v
}
