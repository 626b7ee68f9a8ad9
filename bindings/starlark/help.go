package starlark

import (
	"fmt"
	"io"
	"strings"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
)

// help is help(x): what x is and how to call it. x is a function, a value or the name of an operation.
func help(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var x star.Value
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &x); err != nil {
		return nil, err
	}
	text, err := Help(x)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(interpOf(t).cfg.Stdout, text)
	return star.None, err
}

// Help is the help text of a value: an operation's usage, documentation and example, a function's
// docstring, or the attributes of anything else.
func Help(x star.Value) (string, error) {
	if s, ok := star.AsString(x); ok {
		if info := core.Lookup(s); info != nil {
			return opHelp(info)
		}
	}
	switch x := x.(type) {
	case *opFunc:
		return opHelp(x.info)
	case *star.Function:
		var params []string
		for i := range x.NumParams() {
			name, _ := x.Param(i)
			if def := x.ParamDefault(i); def != nil {
				name += "=" + def.String()
			}
			params = append(params, name)
		}
		return fmt.Sprintf("%s(%s)\n\n%s\n", x.Name(), strings.Join(params, ", "), strings.TrimSpace(x.Doc())), nil
	case star.HasAttrs:
		return fmt.Sprintf("%s with %s\n", x.Type(), strings.Join(x.AttrNames(), ", ")), nil
	}
	return x.Type() + "\n", nil
}

func opHelp(info *core.Info) (string, error) {
	doc, err := info.Doc()
	if err != nil {
		return "", err
	}
	c := call{info: info}
	text := c.usage() + "\n\n" + doc.Text
	if doc.Example != "" {
		text += "\nExample:\n\n    " + strings.ReplaceAll(strings.TrimRight(doc.Example, "\n"), "\n", "\n    ") + "\n"
	}
	return text, nil
}
