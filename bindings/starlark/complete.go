package starlark

import (
	"slices"
	"strings"

	star "go.starlark.net/starlark"
)

// Complete returns, sorted, what could stand in a script for the last part of word, which is the beginning of a name,
// maybe behind other names and dots: "soft", "x.", "m.tok". What begins with an underscore is left out unless word has
// it. Nothing is called, only attributes are looked up. It must not be called while a script computes.
func (it *Interp) Complete(word string) []string {
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
		return !strings.HasPrefix(name, begun) || begun == "" && strings.HasPrefix(name, "_")
	})
	slices.Sort(names)
	return names
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
