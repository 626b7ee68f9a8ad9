package starlark

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/models"
	"github.com/fucina-go/fucina/models/kv"
	"github.com/fucina-go/fucina/models/token"
)

// modelsRoot begins the names of the model families' modules.
const modelsRoot = "@models//"

// Model is a language model as a script sees it: a family's Starlark file at work on the weights of
// a GGUF file. It may be used by any interpreter once the module that loaded it is frozen.
type Model struct {
	name   string
	tokens *token.Tokenizer
	layers int
	m      star.Value   // what the family's load_weights returned
	ropes  []star.Tuple // settings of rope, as keywords
	fns    map[string]star.Callable
}

// loadModel is load_model(path): the language model in a GGUF file; m.generate(prompt) continues a text.
func loadModel(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path); err != nil {
		return nil, err
	}
	it := interpOf(t)
	m, err := it.openModel(path)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = it.cannotOpen(failed.Path, path, err, "a path is relative to the working directory, not to the script")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	return m, nil
}

func (it *Interp) openModel(path string) (*Model, error) {
	w, err := models.Open(it.env, it.ResolvePath(path), it.cfg.Open)
	if err != nil {
		return nil, err
	}
	tokens, err := token.New(w.File)
	if err != nil {
		return nil, err
	}
	family, err := it.load(it.thread, modelsRoot+w.Arch+".star")
	if err != nil {
		return nil, err
	}
	m := &Model{name: path, tokens: tokens, fns: map[string]star.Callable{}}
	for _, name := range []string{"load_weights", "embed", "layer", "logits"} {
		fn, ok := family[name].(star.Callable)
		if !ok {
			return nil, fmt.Errorf("%s%s.star does not define %s", modelsRoot, w.Arch, name)
		}
		m.fns[name] = fn
	}
	file := &weightFile{w: w, vocab: tokens.Len()}
	if m.m, err = star.Call(it.thread, m.fns["load_weights"], star.Tuple{file}, nil); err != nil {
		return nil, err
	}
	m.m.Freeze()
	if unused := w.Unused(); len(unused) > 0 {
		return nil, fmt.Errorf("%s has %d tensors that the family %s does not use: %s", path, len(unused), w.Arch,
			strings.Join(unused[:min(4, len(unused))], ", "))
	}
	return m, m.readConfig()
}

// readConfig takes what the runtime needs from the family's config.
func (m *Model) readConfig() error {
	config, err := attr(m.m, "config")
	if err != nil {
		return err
	}
	layers, err := attr(config, "layers")
	if err != nil {
		return err
	}
	if m.layers, err = star.AsInt32(layers); err != nil {
		return fmt.Errorf("config.layers: %w", err)
	}
	if ropes, err := attr(config, "rope"); err == nil {
		if d, ok := ropes.(*star.Dict); ok {
			m.ropes = d.Items()
		}
	}
	return nil
}

func attr(v star.Value, name string) (star.Value, error) {
	if h, ok := v.(star.HasAttrs); ok {
		if field, err := h.Attr(name); field != nil || err != nil {
			return field, err
		}
	}
	return nil, fmt.Errorf("the family's model has no %s", name)
}

func (m *Model) String() string        { return fmt.Sprintf("<model %s>", m.name) }
func (m *Model) Type() string          { return "model" }
func (m *Model) Freeze()               {}
func (m *Model) Truth() star.Bool      { return true }
func (m *Model) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: model") }

// Holds visits the weights.
func (m *Model) Holds(visit func(star.Value)) { visit(m.m) }

// modelMethods are what scripts call on a model.
var modelMethods = map[string]*star.Builtin{
	"detokenize": star.NewBuiltin("detokenize", modelDetokenize),
	"generate":   star.NewBuiltin("generate", modelGenerate),
	"logits":     star.NewBuiltin("logits", modelLogits),
	"tokenize":   star.NewBuiltin("tokenize", modelTokenize),
}

// Attr is a method by name, or what the family's load_weights made.
func (m *Model) Attr(name string) (star.Value, error) {
	if b, ok := modelMethods[name]; ok {
		return b.BindReceiver(m), nil
	}
	if name == "weights" {
		return m.m, nil
	}
	if name == "vocab" {
		return star.MakeInt(m.tokens.Len()), nil
	}
	return nil, nil
}

// AttrNames is every attribute.
func (m *Model) AttrNames() []string {
	return []string{"detokenize", "generate", "logits", "tokenize", "vocab", "weights"}
}

// modelTokenize is m.tokenize(text, special=True): the ids of text. With special, BOS and EOS are added
// where the model wants them.
func modelTokenize(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var text string
	special := true
	if err := star.UnpackArgs(b.Name(), args, kwargs, "text", &text, "special?", &special); err != nil {
		return nil, err
	}
	ids := b.Receiver().(*Model).encode(text, special)
	items := make([]star.Value, len(ids))
	for i, id := range ids {
		items[i] = star.MakeInt(int(id))
	}
	return star.NewList(items), nil
}

func (m *Model) encode(text string, special bool) []int32 {
	if special {
		return m.tokens.Encode(text, token.AddSpecial)
	}
	return m.tokens.Encode(text, token.Plain)
}

// modelDetokenize is m.detokenize(ids): the text of ids.
func modelDetokenize(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var list star.Iterable
	if err := star.UnpackArgs(b.Name(), args, kwargs, "ids", &list); err != nil {
		return nil, err
	}
	m := b.Receiver().(*Model)
	ids, err := m.ids(b.Name(), list)
	return star.String(m.tokens.Decode(ids)), err
}

// ids is a list of token ids, each inside the vocabulary.
func (m *Model) ids(op string, list star.Iterable) ([]int32, error) {
	var ids []int32
	for item := range star.Elements(list) {
		id, err := star.AsInt32(item)
		if err != nil || id < 0 || id >= m.tokens.Len() {
			return nil, &core.Error{Op: op, Msg: fmt.Sprintf("got %s among the token ids", item),
				Hint: fmt.Sprintf("ids are 0 … %d, as in: m.%s([1, 2])", m.tokens.Len()-1, op)}
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}

// prompt is a text or a list of ids.
func (m *Model) prompt(op string, v star.Value) ([]int32, error) {
	var ids []int32
	var err error
	switch v := v.(type) {
	case star.String:
		ids = m.encode(string(v), true)
	case star.Iterable:
		ids, err = m.ids(op, v)
	default:
		return nil, &core.Error{Op: op, Msg: "prompt: got " + v.Type() + ", want a text or a list of token ids",
			Hint: fmt.Sprintf("as in: m.%s(\"once\")", op)}
	}
	if err == nil && len(ids) == 0 {
		err = &core.Error{Op: op, Msg: "the prompt has no tokens", Hint: fmt.Sprintf("as in: m.%s(\"once\")", op)}
	}
	return ids, err
}

// modelLogits is m.logits(prompt): scores[row, vocab] for the token after every one of the prompt.
func modelLogits(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var prompt star.Value
	if err := star.UnpackArgs(b.Name(), args, kwargs, "prompt", &prompt); err != nil {
		return nil, err
	}
	m := b.Receiver().(*Model)
	ids, err := m.prompt(b.Name(), prompt)
	if err != nil {
		return nil, err
	}
	it := interpOf(t)
	cache := kv.New(it.env, m.layers)
	defer cache.Free()
	x, err := m.forward(it, cache, ids, true)
	return Tensor{x}, err
}

// forward runs the family's functions on new tokens of the sequence in cache, which then counts
// them. The scores are [row, vocab] of all rows, or of the last one. Every layer's tensors end with
// the layer.
func (m *Model) forward(it *Interp, cache *kv.Cache, ids []int32, all bool) (*core.Tensor, error) {
	env := it.env
	positions := make([]int64, len(ids))
	rows := make([]int64, len(ids))
	for i, id := range ids {
		positions[i], rows[i] = int64(cache.Len()+i), int64(id)
	}
	outer := env.Open()
	defer outer.Close()
	b := &batch{m: m, cache: cache, all: all, positions: env.FromInts(dtype.I32, positions, rowAxis, len(ids))}
	tokens := Tensor{env.FromInts(dtype.I32, rows, rowAxis, len(ids))}
	x, err := it.step(m.fns["embed"], m.m, tokens, b)
	for i := 0; i < m.layers && err == nil; i++ {
		var y *core.Tensor
		if y, err = it.step(m.fns["layer"], m.m, star.MakeInt(i), Tensor{x}, b); err == nil {
			x.Free()
			x = y
		}
	}
	if err != nil {
		return nil, err
	}
	y, err := it.step(m.fns["logits"], m.m, Tensor{x}, b)
	if err != nil {
		return nil, err
	}
	cache.Commit(len(ids))
	outer.Close(y)
	return y, nil
}

var rowAxis = mustAxes("row")

func mustAxes(text string) *axis.List {
	l, err := axis.Parse(text)
	if err != nil {
		panic(err)
	}
	return l
}

// step calls a family's function in a scope of its own that only the resulting tensor leaves. The
// function cannot have stored anything elsewhere, because the model is frozen.
func (it *Interp) step(fn star.Callable, args ...star.Value) (*core.Tensor, error) {
	s := it.env.Open()
	defer s.Close()
	v, err := star.Call(it.thread, fn, args, nil)
	if err != nil {
		return nil, err
	}
	x, ok := v.(Tensor)
	if !ok {
		return nil, fmt.Errorf("%s returned %s, want a tensor", fn.Name(), v.Type())
	}
	s.Close(x.Tensor)
	return x.Tensor, nil
}

// weightFile is the file being loaded, as a family's load_weights sees it.
type weightFile struct {
	w     *models.Weights
	vocab int
}

func (g *weightFile) String() string        { return "<weights " + g.w.Name + ">" }
func (g *weightFile) Type() string          { return "weights" }
func (g *weightFile) Freeze()               {}
func (g *weightFile) Truth() star.Bool      { return true }
func (g *weightFile) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: weights") }

// HoldsNothing marks that no tensor of a script can be reached through it.
func (g *weightFile) HoldsNothing() {}

var weightMethods = map[string]*star.Builtin{
	"bool":   star.NewBuiltin("bool", weightsMeta),
	"float":  star.NewBuiltin("float", weightsMeta),
	"has":    star.NewBuiltin("has", weightsHas),
	"skip":   star.NewBuiltin("skip", weightsSkip),
	"int":    star.NewBuiltin("int", weightsMeta),
	"str":    star.NewBuiltin("str", weightsMeta),
	"tensor": star.NewBuiltin("tensor", weightsTensor),
}

// Attr is a method, or vocab, the number of tokens.
func (g *weightFile) Attr(name string) (star.Value, error) {
	if name == "vocab" {
		return star.MakeInt(g.vocab), nil
	}
	if b, ok := weightMethods[name]; ok {
		return b.BindReceiver(g), nil
	}
	return nil, nil
}

// AttrNames is every attribute.
func (g *weightFile) AttrNames() []string {
	return []string{"bool", "float", "has", "int", "skip", "str", "tensor", "vocab"}
}

// weightsMeta is g.int(key, default), g.float, g.str and g.bool: a metadata value of the architecture.
func weightsMeta(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var key string
	var absent star.Value
	if err := star.UnpackArgs(b.Name(), args, kwargs, "key", &key, "default?", &absent); err != nil {
		return nil, err
	}
	w := b.Receiver().(*weightFile).w
	var v star.Value
	var err error
	switch key = w.Key(key); b.Name() {
	case "int":
		var i int64
		i, err = w.Int(key)
		v = star.MakeInt64(i)
	case "float":
		var f float64
		f, err = w.Float(key)
		v = star.Float(f)
	case "str":
		var s string
		s, err = w.File.String(key)
		v = star.String(s)
	default:
		var is bool
		is, err = w.Bool(key)
		v = star.Bool(is)
	}
	if absent != nil && models.Missing(err) {
		return absent, nil
	}
	return v, err
}

// weightsHas is g.has(name): whether the file has the tensor.
func weightsHas(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var name string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "name", &name); err != nil {
		return nil, err
	}
	_, ok := b.Receiver().(*weightFile).w.File.Tensor(name)
	return star.Bool(ok), nil
}

// weightsSkip is g.skip(prefix): the tensors whose names begin so are left out knowingly.
func weightsSkip(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var prefix string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "prefix", &prefix); err != nil {
		return nil, err
	}
	b.Receiver().(*weightFile).w.Skip(prefix)
	return star.None, nil
}

// weightsTensor is g.tensor(name, axis=size, …): a weight under axis names, the slowest first.
func weightsTensor(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var name string
	if err := star.UnpackPositionalArgs(b.Name(), args, nil, 1, &name); err != nil {
		return nil, err
	}
	names, sizes := make([]string, len(kwargs)), make([]int, len(kwargs))
	for i, kw := range kwargs {
		names[i] = string(kw[0].(star.String))
		if sizes[i], err = size(kw[1]); err != nil {
			return nil, fmt.Errorf("tensor %s: %s: %w", name, names[i], err)
		}
	}
	axes, err := axis.Of(names...)
	if err != nil {
		return nil, err
	}
	x, err := b.Receiver().(*weightFile).w.Tensor(name, axes, sizes)
	if err != nil {
		return nil, err
	}
	return Tensor{x}, nil
}
