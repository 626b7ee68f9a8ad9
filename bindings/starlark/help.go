package starlark

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/grad/optim"
	"github.com/fucina-go/fucina/stdlib"
)

// help is help(x): what x is and how to call it. x is a function, a value or a name in quotes. Without x it
// lists all names.
func help(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var x star.Value
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0, &x); err != nil {
		return nil, err
	}
	it := interpOf(t)
	text, err := it.help(t, x)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(it.cfg.Stdout, text)
	return star.None, err
}

func (it *Interp) help(t *star.Thread, x star.Value) (string, error) {
	if x == nil {
		return it.overview(), nil
	}
	if name, ok := star.AsString(x); ok {
		return it.helpOn(t, name)
	}
	switch x := x.(type) {
	case *opFunc:
		return opHelp(x.info)
	case *star.Builtin:
		return it.builtinHelp(x)
	case *star.Function:
		return functionHelp(x), nil
	case *starlarkstruct.Module:
		names := wrap("module with ", strings.Join(x.AttrNames(), " "))
		if it.modules["@stdlib//"+x.Name+".star"][x.Name] == star.Value(x) {
			return stdlib.About(x.Name) + "\n" + names, nil
		}
		return names, nil
	case star.HasAttrs:
		return wrap(x.Type()+" with ", strings.Join(x.AttrNames(), " ")), nil
	}
	return x.Type() + "\n", nil
}

// helpOn explains what the script that t runs calls name, or the methods of that name.
func (it *Interp) helpOn(t *star.Thread, name string) (string, error) {
	names := it.Names()
	scopes := []star.StringDict{it.globals, it.names}
	if t.CallStackDepth() > 1 {
		if f, ok := t.DebugFrame(1).Callable().(*star.Function); ok {
			scopes = append(scopes, f.Globals())
		}
	}
	for _, scope := range scopes {
		v, ok := scope[name]
		if _, isText := star.AsString(v); ok && !isText {
			return it.help(t, v)
		}
	}
	if head, member, ok := strings.Cut(name, "."); ok {
		for _, scope := range scopes {
			if module, ok := scope[head].(*starlarkstruct.Module); ok && module.Members.Has(member) {
				return it.help(t, module.Members[member])
			}
		}
	}
	found := ""
	for _, d := range it.builtinDocs() {
		if d.receiver != "" && (d.name == name || d.receiver+"."+d.name == name) {
			found += d.help()
		}
		names = append(names, d.name)
	}
	if found != "" {
		return found, nil
	}
	if text, err := it.moduleHelp(t, name); text != "" || err != nil {
		return text, err
	}
	e := &core.Error{Op: "help", Msg: fmt.Sprintf("there is nothing called %q", name), Hint: "help() lists all names"}
	if near := nearest(name, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean help(%q)?", near)
	}
	if known := scriptName(name, names); known != "" {
		e.Hint = fmt.Sprintf("did you mean help(%q)?", known)
		return "", e
	}
	for _, v := range it.names {
		if module, ok := v.(*starlarkstruct.Module); ok && module.Members.Has(name) {
			e.Hint = fmt.Sprintf("did you mean help(%q)?", module.Name+"."+name)
			return "", e
		}
	}
	var longer []string
	for _, n := range names {
		if len(name) > 2 && strings.Contains(n, name) && !slices.Contains(longer, n) {
			longer = append(longer, n)
		}
	}
	if slices.Sort(longer); len(longer) > 1 {
		e.Hint = "there are " + strings.Join(longer[:min(len(longer), 8)], ", ")
	}
	return "", e
}

// moduleHelp is the help on a module of the standard library that the script has not loaded, or on a member of one; ""
// for other names.
func (it *Interp) moduleHelp(t *star.Thread, name string) (string, error) {
	module, member, _ := strings.Cut(name, ".")
	if stdlib.About(module) == "" {
		return "", nil
	}
	exports, err := it.load(t, "@stdlib//"+module+".star")
	if err != nil {
		return "", err
	}
	space, ok := exports[module].(*starlarkstruct.Module)
	switch {
	case module == name:
		return it.help(t, exports[module])
	case ok && space.Members.Has(member):
		return it.help(t, space.Members[member])
	}
	return "", nil
}

// scriptName is what scripts call what Go calls name, or what is behind its dot; "" if that is nothing they know.
func scriptName(name string, names []string) string {
	if _, member, ok := strings.Cut(name, "."); ok && slices.Contains(names, member) {
		return member
	}
	for _, info := range core.All() {
		if reflect.TypeOf(info.New()).Elem().Name() == name {
			return info.Name
		}
	}
	return ""
}

// overview says how to ask for more and lists what there is to ask about.
func (it *Interp) overview() string {
	var ops, functions, modules, models, toLoad []string
	files, _ := fs.Glob(stdlib.FS, "*.star") // it is in the binary
	for _, file := range files {
		toLoad = append(toLoad, strings.TrimSuffix(file, ".star"))
	}
	for name, v := range it.names {
		switch v.(type) {
		case *opFunc:
			ops = append(ops, name)
		case *starlarkstruct.Module:
			modules = append(modules, name)
		case *star.Builtin:
			switch {
			case core.Lookup(name) != nil: // of Starlark, and an operation on tensors
				ops, functions = append(ops, name), append(functions, name)
			case name == "load_model", name == "new_model", name == "tokenizer", name == "bpe_train":
				models = append(models, name)
			default:
				functions = append(functions, name)
			}
		}
	}
	for name := range modelMethods {
		models = append(models, "m."+name)
	}
	for name := range tokenizerMethods {
		models = append(models, "t."+name)
	}
	attributes := slices.Concat(slices.Collect(maps.Keys(properties)), slices.Collect(maps.Keys(methods)))
	var b strings.Builder
	b.WriteString("help(\"softmax\") explains a name, help(x) a value; the prompt takes ?softmax too.\n" +
		"Operations are functions and methods: softmax(x, \"a\") is x.softmax(\"a\").\n" +
		"Modules of the standard library are loaded: " + loading("nn") + ".\n\n")
	for _, group := range []struct {
		title string
		names []string
	}{
		{"operations  ", ops}, {"of a tensor ", attributes}, {"functions   ", functions}, {"modules     ", modules},
		{"models      ", models}, {"to load     ", toLoad},
	} {
		slices.Sort(group.names)
		b.WriteString(wrap(group.title, strings.Join(group.names, " ")))
	}
	return b.String()
}

// textColumns is the width of help.
const textColumns = 80

// wrap returns title and the words of text in lines that are indented as far as the title goes.
func wrap(title, text string) string {
	var b strings.Builder
	b.WriteString(title)
	indent := utf8.RuneCountInString(title)
	column := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > textColumns:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String() + "\n"
}

func functionHelp(f *star.Function) string {
	var params []string
	for i := range f.NumParams() {
		name, _ := f.Param(i)
		if def := f.ParamDefault(i); def != nil {
			name += "=" + def.String()
		}
		params = append(params, name)
	}
	return strings.TrimSpace(fmt.Sprintf("%s(%s)\n\n%s", f.Name(), strings.Join(params, ", "), f.Doc())) + "\n"
}

// Explain makes help show the comments on builtins in Go sources, which have the form of those in this package's:
// // name is module.name(arguments): what it does. Methods are called name is x.name(…), where x, a letter, is the
// receiver, a value of the type of value.
func (it *Interp) Explain(sources fs.FS, receiver string, value star.Value) {
	it.explained = append(it.explained, explained{sources, receiver, fmt.Sprintf("%T", value)})
}

// explained is what a call of Explain said.
type explained struct {
	sources        fs.FS
	receiver, kind string
}

// receiverName is what comments call the receiver of b.
func (it *Interp) receiverName(b *star.Builtin) string {
	kind := fmt.Sprintf("%T", b.Receiver())
	for _, e := range it.explained {
		if e.kind == kind {
			return e.receiver
		}
	}
	return receiverNames[kind]
}

// builtinHelp is the comment on a function of this package, or where to read about one of Starlark's own.
func (it *Interp) builtinHelp(b *star.Builtin) (string, error) {
	if text, err := optimHelp(b.Name()); text != "" || err != nil {
		return text, err
	}
	for _, d := range it.builtinDocs() {
		if d.name != b.Name() || d.receiver != it.receiverName(b) {
			continue
		}
		text := d.help()
		if info := core.Lookup(d.name); info != nil && b.Receiver() == nil {
			op, err := opHelp(info)
			return text + "\n" + op, err
		}
		return text, nil
	}
	const spec = "https://github.com/bazelbuild/starlark/blob/master/spec.md"
	if info := core.Lookup(b.Name()); info != nil && b.Receiver() == nil {
		op, err := opHelp(info)
		return op + "\nOn other values as in Starlark: " + spec + "\n", err
	}
	return fmt.Sprintf("%s is as in Starlark: %s\n", b.Name(), spec), nil
}

// receiverNames is what comments call the receiver of a method.
var receiverNames = map[string]string{
	fmt.Sprintf("%T", Tensor{}):           "x",
	fmt.Sprintf("%T", (*Model)(nil)):      "m",
	fmt.Sprintf("%T", (*modelCache)(nil)): "k",
	fmt.Sprintf("%T", (*batch)(nil)):      "b",
	fmt.Sprintf("%T", chatTemplate{}):     "c",
	fmt.Sprintf("%T", (*weightFile)(nil)): "g",
	fmt.Sprintf("%T", (*Tokenizer)(nil)):  "t",
	fmt.Sprintf("%T", (*tensorFile)(nil)): "f",
	fmt.Sprintf("%T", (*batchesOf)(nil)):  "d",
	fmt.Sprintf("%T", (*optimizer)(nil)):  "o",
	fmt.Sprintf("%T", (*ema)(nil)):        "e",
}

// sourceFiles is this package's own text, in which the documentation of its builtins stands.
//
//go:embed *.go
var sourceFiles embed.FS

// builtinDoc is the comment on the Go function behind a builtin: its usage and what it does.
type builtinDoc struct {
	receiver, name string // x and tolist, or "" and scope
	text           string
}

// help is the comment, and behind that on m.generate and m.chat the settings.
func (d builtinDoc) help() string {
	text := wrap("", d.text)
	if d.receiver == "m" && (d.name == "generate" || d.name == "chat") {
		text += settingsHelp()
	}
	return text
}

// builtinComment matches the comment on a builtin, which begins: tensorToList is x.tolist(): …
var builtinComment = regexp.MustCompile(`(?m)^\t?// \w+ is ((?:(?:(\w)\.)?((?:\w+\.)?\w+)\(|(x)\.(\w+): ).*` +
	`(?:\n//.*)*)\n(?:func |\tnames\[)`)

// builtinDocs reads the documentation of builtins now, never at start.
func (it *Interp) builtinDocs() []builtinDoc {
	var docs []builtinDoc
	for _, of := range append([]explained{{sources: sourceFiles}}, it.explained...) {
		files, err := fs.Glob(of.sources, "*.go")
		if err != nil {
			panic(err) // the pattern is good
		}
		for _, file := range files {
			src, err := fs.ReadFile(of.sources, file)
			if err != nil {
				panic(err) // it is embedded
			}
			for _, m := range builtinComment.FindAllStringSubmatch(string(src), -1) {
				docs = append(docs, builtinDoc{m[2] + m[4], m[3] + m[5], strings.ReplaceAll(m[1], "\n//", "")})
			}
		}
	}
	return docs
}

// optimHelp is the comment on an optimizer or a schedule; "" for the name of anything else.
func optimHelp(name string) (string, error) {
	module, member, _ := strings.Cut(name, ".")
	list, params := optim.Schedules(), ""
	if module == "optim" {
		list, params = optim.Rules(), "params, lr=%v, "
	} else if module != "schedule" {
		return "", nil
	}
	info := optim.Lookup(list, member)
	if info == nil {
		return "", nil
	}
	if params != "" {
		params = fmt.Sprintf(params, star.Float(info.LR))
	}
	doc, err := info.Doc()
	return wrap("", name+"("+params+info.Usage()+")") + "\n" + doc, err
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
