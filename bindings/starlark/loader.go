package starlark

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/models"
	"github.com/fucina-go/fucina/stdlib"
)

// builtinRoots are the modules that come with the program, by what their names begin with.
var builtinRoots = map[string]embed.FS{
	"@stdlib//": stdlib.FS,
	modelsRoot:  models.FS,
}

// builtinRoot is the root that name begins with, and the rest; both are empty for other names.
func builtinRoot(name string) (root, rest string) {
	if scheme, rest, ok := strings.Cut(name, "//"); ok {
		if _, ok := builtinRoots[scheme+"//"]; ok {
			return scheme + "//", rest
		}
	}
	return "", ""
}

// load serves a load statement: it runs the module once, freezes its globals and caches them. A module that
// failed is run again when it is asked for again, so that a session can go on after the file was corrected.
func (it *Interp) load(t *star.Thread, request string) (star.StringDict, error) {
	from := t.CallFrame(0).Pos.Filename()
	name, err := it.moduleName(from, request)
	if err != nil {
		return nil, err
	}
	if exports, ok := it.modules[name]; ok {
		return exports, nil
	}
	if i := slices.Index(it.loading, name); i >= 0 {
		chain := append(slices.Clone(it.loading[i:]), name)
		return nil, fmt.Errorf("modules load one another in a circle: %s", strings.Join(chain, " → "))
	}
	missing := "a path is relative to the file that loads, //a.star to the root"
	if stem := strings.TrimSuffix(request, ".star"); stdlib.About(stem) != "" {
		missing = fmt.Sprintf("did you mean \"@stdlib//%s.star\"?", stem)
	}
	src, err := it.readFile(name, request, missing)
	if err != nil {
		return nil, err
	}
	globals, err := it.exec(name, src)
	if err != nil {
		return nil, err
	}
	globals.Freeze()
	it.modules[name] = withNamespace(name, globals)
	return it.modules[name], nil
}

// withNamespace adds what makes load("lib/text.star", "text") work: one value named after the file that has
// the module's public names as its fields, unless the module defines that name itself.
func withNamespace(file string, globals star.StringDict) star.StringDict {
	name := strings.TrimSuffix(path.Base(file), ".star")
	if globals.Has(name) {
		return globals
	}
	public := maps.Clone(globals)
	maps.DeleteFunc(public, func(name string, _ star.Value) bool { return strings.HasPrefix(name, "_") })
	exports := maps.Clone(globals)
	exports[name] = &starlarkstruct.Module{Name: name, Members: public}
	return exports
}

// moduleName returns the name under which a module is opened, cached and shown: @stdlib// or @models// and a
// path, or a path as from would have to be given to RunFile.
func (it *Interp) moduleName(from, request string) (string, error) {
	builtin, rest := builtinRoot(request)
	rooted := builtin != ""
	if !rooted {
		if rest, rooted = strings.CutPrefix(request, "//"); !rooted {
			rest = request
		}
	}
	root, dir := filepath.ToSlash(it.cfg.Dir), path.Dir(from)
	if home, file := builtinRoot(from); builtin != "" || home != "" {
		if builtin == "" {
			builtin = home
		}
		root, dir = "", path.Dir(file)
	} else if strings.HasPrefix(from, "<") {
		dir = root
	}
	switch {
	case rooted:
		dir = root
	case strings.HasPrefix(request, "@"):
		return "", fmt.Errorf("unknown scheme; modules are @stdlib//name.star, //from/the/root.star or ./beside.star")
	case path.IsAbs(rest) || filepath.IsAbs(rest):
		dir = ""
	}
	if rest == "" {
		return "", errors.New("no file name")
	}
	name := path.Join(dir, rest)
	if builtin == "" {
		return name, nil
	}
	if !fs.ValidPath(name) {
		return "", fmt.Errorf("the path leaves %s", builtin)
	}
	return builtin + name, nil
}

// readFile returns the text of the module or script called name, which a script writes as said, if one does; begin
// is a hint for a missing one.
func (it *Interp) readFile(name, said, begin string) (string, error) {
	if root, file := builtinRoot(name); root != "" {
		src, err := builtinRoots[root].ReadFile(file)
		if err != nil {
			return "", notBuiltIn(root, file, said != "")
		}
		return string(src), nil
	}
	f, err := it.cfg.Open(name)
	if err != nil {
		return "", it.cannotOpen(name, said, err, begin)
	}
	defer f.Close()
	src, err := io.ReadAll(f)
	if err != nil {
		return "", it.cannotOpen(name, said, err, begin)
	}
	return string(src), nil
}

// notBuiltIn is the error of a file that no built-in root has; in a script names stand in quotes.
func notBuiltIn(root, file string, inScript bool) error {
	files, _ := fs.Glob(builtinRoots[root], "*.star")
	if near := nearest(file, files); near != "" {
		near = root + near
		if inScript {
			near = strconv.Quote(near)
		}
		return fmt.Errorf("there is no %s%s; did you mean %s?", root, file, near)
	}
	return fmt.Errorf("there is no %s%s; there are %s", root, file, strings.Join(files, ", "))
}
