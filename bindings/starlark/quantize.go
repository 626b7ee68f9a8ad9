package starlark

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/gguf"
	"github.com/fucina-go/fucina/models/recipe"
)

// quantizeModel is quantize_model(source, target, recipe): the model in a GGUF file, quantized into another by one of
// llama.cpp's recipes, such as "q4_k_m". imatrix names a file with the importance of the weights, of which the target's
// metadata tells as llama-quantize's does, under quantize.imatrix; types has formats for tensors, by a regular
// expression that is found in their names; again allows what is quantized already.
//
// It returns a dict for each tensor: name, from, to, elements, bytes, error and magnitude, the last two being roots of
// mean squares, of the differences and of the elements, or 0 for a tensor that stays as it is.
func quantizeModel(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var source, target, name, imatrix string
	var types *star.Dict
	var again bool
	if err := star.UnpackArgs(b.Name(), args, kwargs, "source", &source, "target", &target, "recipe", &name,
		"imatrix?", &imatrix, "types?", &types, "again?", &again); err != nil {
		return nil, err
	}
	it := interpOf(t)
	j := &recipe.Job{Again: again, Control: &it.env.Control}
	var ok bool
	if j.Recipe, ok = recipe.ByName(name); !ok {
		var names []string
		for _, r := range recipe.Recipes {
			names = append(names, r.Name)
		}
		hint := ""
		if near := nearest(name, names); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("got %q, want a recipe: %s", name,
			strings.Join(names, " ")), Hint: hint}
	}
	if j.Override, err = overrides(types); err != nil {
		return nil, fmt.Errorf("%s: types: %w", b.Name(), err)
	}
	list, err := it.quantize(j, source, target, imatrix)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		said := source
		if imatrix != "" && failed.Path == it.ResolvePath(imatrix) {
			said = imatrix
		}
		err = it.cannotOpen(failed.Path, said, err, "a path is relative to the working directory, not to the script")
	}
	if errors.Is(err, recipe.ErrStopped) {
		panic(&core.Canceled{Op: b.Name()})
	}
	var said *core.Error
	if err != nil && !errors.As(err, &said) && !strings.HasPrefix(err.Error(), b.Name()+": ") {
		err = fmt.Errorf("%s: %w", b.Name(), err)
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// quantize does the job, whose file and importance it opens.
func (it *Interp) quantize(j *recipe.Job, source, target, imatrix string) (list *star.List, err error) {
	name, err := it.named("quantize_model", source)
	if err != nil {
		return nil, err
	}
	if j.File, err = gguf.Open(name, it.cfg.Open); err != nil {
		return nil, err
	}
	defer j.File.Close()
	if imatrix != "" {
		if j.Importance, err = recipe.ReadImportance(it.ResolvePath(imatrix), it.cfg.Open); err != nil {
			return nil, err
		}
		j.Importance.File = imatrix // as it was called, not where that led
	}
	m := &meter{out: it.cfg.Stderr, terminal: it.cfg.Terminal, label: "quantize", total: len(j.File.Tensors()),
		began: time.Now()}
	m.shown, m.running = m.began, true
	list = star.NewList(nil)
	j.Done = func(r recipe.Result) {
		m.tick(true, time.Now())
		d := star.NewDict(7)
		for _, pair := range []star.Tuple{
			{star.String("name"), star.String(r.Name)},
			{star.String("from"), star.String(r.From.String())},
			{star.String("to"), star.String(r.To.String())},
			{star.String("elements"), star.MakeInt(r.Elements)},
			{star.String("bytes"), star.MakeInt(r.Bytes)},
			{star.String("error"), star.Float(r.Error)},
			{star.String("magnitude"), star.Float(r.Magnitude)},
		} {
			_ = d.SetKey(pair[0], pair[1]) // a string can be hashed
		}
		_ = list.Append(d) // nobody else has the list
	}
	draft, err := j.Draft()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	if it.sameFile(source, target) {
		return nil, &core.Error{Op: "quantize_model", Msg: fmt.Sprintf("%s and %s are one file, which would be lost",
			source, target), Hint: "give the target a name of its own"}
	}
	defer func() { m.end(time.Now()) }()
	return list, it.Save("quantize_model", target, func(w io.Writer) error { return draft.Write(w) })
}

// overrides returns what types says: the format of the first pattern that is found in a name.
func overrides(types *star.Dict) (func(string) string, error) {
	if types == nil {
		return nil, nil
	}
	type rule struct {
		pattern *regexp.Regexp
		format  string
	}
	var rules []rule
	for _, item := range types.Items() {
		pattern, ok := star.AsString(item[0])
		format, ok2 := star.AsString(item[1])
		if !ok || !ok2 {
			return nil, fmt.Errorf("got %s: %s, want a pattern and the name of a format", brief(item[0]),
				brief(item[1]))
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule{re, strings.ToLower(format)})
	}
	return func(name string) string {
		for _, r := range rules {
			if r.pattern.MatchString(name) {
				return r.format
			}
		}
		return ""
	}, nil
}

// sameFile reports whether two paths lead to one file of the operating system's.
func (it *Interp) sameFile(a, b string) bool {
	var found [2]fs.FileInfo
	for i, path := range [...]string{a, b} {
		f, err := it.cfg.Open(it.ResolvePath(path))
		if err != nil {
			return false
		}
		found[i], err = f.Stat()
		f.Close()
		if err != nil {
			return false
		}
	}
	return os.SameFile(found[0], found[1])
}
