package starlark

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// openError is a file that cannot be opened or read, in our words, which are the same on every system.
type openError struct {
	name  string
	hint  string
	cause error
}

func (e *openError) Error() string {
	text := fmt.Sprintf("cannot open %s: %s", e.name, reason(e.cause))
	if e.hint != "" {
		text += "; " + e.hint
	}
	return text
}

func (e *openError) Unwrap() error { return e.cause }

// reason is err without the name of the file.
func reason(err error) string {
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	case errors.As(err, &failed):
		return failed.Err.Error()
	}
	return err.Error()
}

// cannotOpen makes an openError of what came of opening name, which a script writes as said, if one does. If
// the file is missing the hint is the name of a file beside it that may have been meant, else where such names
// begin; of a file that the one said needs, it is that one.
func (it *Interp) cannotOpen(name, said string, err error, begin string) error {
	e := &openError{name: filepath.ToSlash(name), cause: err}
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case missing && said != "" && !strings.HasSuffix(filepath.ToSlash(said), path.Base(e.name)):
		e.hint = "it belongs to " + said // a part of it, whose name nobody has spelt
	case missing:
		if near := it.nearFile(e.name); near != "" {
			e.hint = fmt.Sprintf("did you mean %s?", near)
			if said != "" {
				e.hint = fmt.Sprintf("did you mean %q?", strings.TrimSuffix(said, path.Base(name))+path.Base(near))
			}
		} else if !path.IsAbs(e.name) {
			e.hint = begin
		}
	}
	return e
}

// maxNeighbours bounds how many names of a folder are looked at for a hint.
const maxNeighbours = 1000

// nearFile returns the file of the same kind and in the same folder that a misspelt name most likely meant,
// or "".
func (it *Interp) nearFile(name string) string {
	dir, base := path.Split(name)
	folder, err := it.cfg.Open(path.Clean(dir))
	if err != nil {
		return ""
	}
	defer folder.Close()
	list, ok := folder.(fs.ReadDirFile)
	if !ok {
		return ""
	}
	entries, _ := list.ReadDir(maxNeighbours) // those before an error will do
	kind := path.Ext(base)
	var stems []string
	for _, entry := range entries {
		n := entry.Name()
		if stem := strings.TrimSuffix(n, path.Ext(n)); path.Ext(n) == kind {
			stems = append(stems, stem)
		}
	}
	slices.Sort(stems)
	if near := nearest(strings.TrimSuffix(base, kind), stems); near != "" {
		return dir + near + kind
	}
	return ""
}
