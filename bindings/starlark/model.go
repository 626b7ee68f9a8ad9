package starlark

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/models"
	"github.com/fucina-go/fucina/models/token"
)

// modelsRoot begins the names of the model families' modules.
const modelsRoot = "@models//"

// Model is a language model as a script sees it: a family's Starlark file at work on the weights of
// a GGUF file. It may be used by any interpreter once the module that loaded it is frozen.
type Model struct {
	name     string
	tokens   *Tokenizer
	layers   int
	context  int // tokens that the model was made for; 0: any number
	pooling  int // which of poolings the file names, mean if it names none
	file     *models.Weights
	print    func() string // tells the model from others; nil: its weights change
	cached   dtype.Type    // of the keys and values that caches keep
	m        star.Value    // what the family's load_weights returned
	template string        // the chat template in the file; "": it has none
	ropes    []star.Tuple  // settings of rope, as keywords
	fns      map[string]star.Callable

	keepsNothing bool // the fns are a family's of this project, which leave no tensor behind but the one they return

	variables star.Value              // of a trainable model: m without its config
	names     map[*core.Tensor]string // what the file calls its variables
}

// loadModel is load_model(path, pre=None, family=None, cache="f32"): the language model in a GGUF file;
// m.generate(prompt) continues a text. pre names the pre-tokenizer, such as "qwen2", if the file names one that is not
// known; family is a Starlark file that says how the model computes, if the architecture is not known or is to be
// computed otherwise. Keys and values of a text are kept as cache says: "f16" takes half the memory of "f32", "q8_0"
// about a quarter, and both round.
func loadModel(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	var pre star.Value = star.None
	var family string
	cache := "f32"
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path, "pre?", &pre, "family??", &family, "cache?",
		&cache); err != nil {
		return nil, err
	}
	dt, ok := dtype.Parse(cache)
	if !ok || !slices.Contains(core.PageTypes(), dt) {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("cache: got %q, want f32, f16 or q8_0", cache),
			Hint: `as in: cache="f16"`}
	}
	it := interpOf(t)
	options, err := preOption(b.Name(), path, pre)
	if err != nil {
		return nil, err
	}
	name, err := it.named(b.Name(), path)
	if err != nil {
		return nil, err
	}
	m, err := it.openModel(name, path, family, options)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = it.cannotOpen(failed.Path, path, err, "a path is relative to the working directory, not to the script")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	m.cached = dt
	return m, nil
}

// openModel is the model in a file, which the script calls said.
func (it *Interp) openModel(name, said, module string, options []token.Option) (*Model, error) {
	w, err := models.Open(it.env, name, it.cfg.Open)
	if err != nil {
		return nil, err
	}
	w.Name = said
	return it.buildModel(said, w, module, options)
}

// buildModel is the model called name with the weights of an open file; module is the family's file, "" for that of the
// architecture.
func (it *Interp) buildModel(name string, w *models.Weights, module string, options []token.Option) (*Model, error) {
	tokens, err := token.New(w.File, options...)
	if err != nil {
		return nil, err
	}
	if module == "" {
		if module, err = w.Family(); err != nil {
			return nil, err
		}
		module = modelsRoot + module
	}
	family, err := it.load(it.thread, module)
	if err != nil {
		return nil, err
	}
	m := &Model{name: name, tokens: &Tokenizer{name, tokens}, file: w, print: sync.OnceValue(w.Fingerprint),
		fns: map[string]star.Callable{}, keepsNothing: strings.HasPrefix(module, modelsRoot) && !it.shadowed}
	if m.template, err = w.File.String("tokenizer.chat_template"); err != nil && !models.Missing(err) {
		return nil, err
	}
	m.pooling = slices.Index(poolings, "mean")
	if id, err := w.Int(w.Key("pooling_type")); err == nil && id >= 0 && id < int64(len(poolings)) {
		m.pooling = int(id)
	}
	for _, part := range []string{"load_weights", "embed", "layer", "logits"} {
		fn, ok := family[part].(star.Callable)
		if !ok {
			return nil, fmt.Errorf("%s does not define the function %s, which a family has", module, part)
		}
		m.fns[part] = fn
	}
	file := &weightFile{w: w, vocab: tokens.Len()}
	if m.m, err = star.Call(it.thread, m.fns["load_weights"], star.Tuple{file}, nil); err != nil {
		return nil, err
	}
	m.m.Freeze()
	if unused := w.Unused(); len(unused) > 0 {
		return nil, fmt.Errorf("%s has %d tensors that the family %s does not use: %s", name, len(unused),
			strings.TrimSuffix(strings.TrimPrefix(module, modelsRoot), ".star"),
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
		return fmt.Errorf("the family's config.layers: got %s, want an int up to %d", layers, math.MaxInt32)
	}
	if context, err := attr(config, "context"); err == nil {
		if m.context, err = star.AsInt32(context); err != nil {
			return fmt.Errorf("the family's config.context: got %s, want an int up to %d", context, math.MaxInt32)
		}
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
	"cache":       star.NewBuiltin("cache", modelNewCache),
	"chat":        star.NewBuiltin("chat", modelChat),
	"chat_prompt": star.NewBuiltin("chat_prompt", modelChatPrompt),
	"detokenize":  star.NewBuiltin("detokenize", modelDetokenize),
	"embed":       star.NewBuiltin("embed", modelEmbed),
	"forward":     star.NewBuiltin("forward", modelForward),
	"generate":    star.NewBuiltin("generate", modelGenerate),
	"load_cache":  star.NewBuiltin("load_cache", modelLoadCache),
	"logits":      star.NewBuiltin("logits", modelLogits),
	"perplexity":  star.NewBuiltin("perplexity", modelPerplexity),
	"save":        star.NewBuiltin("save", modelSave),
	"tokenize":    star.NewBuiltin("tokenize", modelTokenize),
	"trainable":   star.NewBuiltin("trainable", modelTrainable),
}

// Attr is a method by name, the tokenizer, or what the family's load_weights made.
func (m *Model) Attr(name string) (star.Value, error) {
	if b, ok := modelMethods[name]; ok {
		return b.BindReceiver(m), nil
	}
	switch {
	case name == "weights" && m.variables != nil:
		return m.variables, nil
	case name == "weights":
		return m.m, nil
	}
	switch name {
	case "context":
		return star.MakeInt(m.context), nil
	case "vocab":
		return star.MakeInt(m.tokens.Len()), nil
	case "tokenizer":
		return m.tokens, nil
	}
	return nil, nil
}

// AttrNames is every attribute.
func (m *Model) AttrNames() []string {
	return []string{"cache", "chat", "chat_prompt", "context", "detokenize", "embed", "forward", "generate",
		"load_cache", "logits", "perplexity", "save", "tokenize", "tokenizer", "trainable", "vocab", "weights"}
}

// modelTokenize is m.tokenize(text, special=True): the ids of text. With special, BOS and EOS are added
// where the model wants them. m.tokenizer can do more.
func modelTokenize(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var text string
	special := true
	if err := star.UnpackArgs(b.Name(), args, kwargs, "text", &text, "special?", &special); err != nil {
		return nil, err
	}
	mode := token.Plain
	if special {
		mode = token.AddSpecial
	}
	ids, err := b.Receiver().(*Model).tokens.EncodeUntil(text, mode, interpOf(t).stopper(b.Name()))
	if err != nil {
		return nil, err
	}
	return idList(ids), nil
}

// modelDetokenize is m.detokenize(ids): the text of ids.
func modelDetokenize(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var list star.Value
	if err := star.UnpackArgs(b.Name(), args, kwargs, "ids", &list); err != nil {
		return nil, err
	}
	m := b.Receiver().(*Model)
	ids, err := m.ids(b.Name(), list)
	return star.String(m.tokens.Decode(ids)), err
}

// ids is a list or a tensor of token ids, each inside the vocabulary.
func (m *Model) ids(op string, list star.Value) ([]int32, error) {
	return m.tokens.ids(op, fmt.Sprintf("m.%s([1, 2])", op), list)
}

// prompt is a text or a list of ids.
func (m *Model) prompt(op string, v star.Value) ([]int32, error) {
	var ids []int32
	var err error
	switch v := v.(type) {
	case star.String:
		if err := wholeText(op, "the prompt", string(v)); err != nil {
			return nil, err
		}
		ids = m.tokens.Encode(string(v), token.AddSpecial)
	case star.Iterable, Tensor:
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

// wholeText is an error if a text, which what says in words, is not UTF-8.
func wholeText(op, what, s string) error {
	for i, r := range s {
		if _, n := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && n == 1 {
			return &core.Error{Op: op, Msg: fmt.Sprintf("%s is no UTF-8: byte 0x%02x at %d", what, s[i], i),
				Hint: "a text that is cut should be cut between characters: s.codepoints()"}
		}
	}
	return nil
}

// tooLong is the error of a prompt that, with the tokens asked for, does not fit into the context.
func (m *Model) tooLong(op string, prompt, asked int) error {
	e := &core.Error{Op: op, Msg: fmt.Sprintf("%d tokens, but the context of %s is %d", prompt, m.name, m.context),
		Hint: "give it a shorter text"}
	if asked > 0 {
		e.Msg = fmt.Sprintf("a prompt of %d tokens and %d asked for are %d, but the context of %s is %d", prompt, asked,
			prompt+asked, m.name, m.context)
		if prompt < m.context {
			e.Hint = fmt.Sprintf("ask for fewer: max_tokens=%d", m.context-prompt)
		}
	}
	return e
}

// modelLogits is m.logits(prompt): scores[row, vocab] for the token after every one of the prompt, a text or a list of
// ids. For a tensor of ids with the axes [batch, seq], scores[batch, seq, vocab], through which gradients flow to
// the weights of m.trainable().
func modelLogits(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var prompt star.Value
	if err := star.UnpackArgs(b.Name(), args, kwargs, "prompt", &prompt); err != nil {
		return nil, err
	}
	m := b.Receiver().(*Model)
	it := interpOf(t)
	if tokens, ok := prompt.(Tensor); ok {
		return m.score(it, b.Name(), tokens.Tensor)
	}
	ids, err := m.prompt(b.Name(), prompt)
	if err != nil {
		return nil, err
	}
	if m.context > 0 && len(ids) > m.context {
		return nil, m.tooLong(b.Name(), len(ids), 0)
	}
	cache := m.newCache(it)
	defer cache.Free()
	x, err := m.forward(it, cache, ids, true)
	return Tensor{x}, err
}

var rowAxis = mustAxes("row")

func mustAxes(text string) *axis.List {
	l, err := axis.Parse(text)
	if err != nil {
		panic(err)
	}
	return l
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
	"size":   star.NewBuiltin("size", weightsMeta),
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
	return []string{"bool", "float", "has", "int", "size", "skip", "str", "tensor", "vocab"}
}

// weightsMeta is g.int(key, default), g.size, g.float, g.str and g.bool: a metadata value of the architecture. A size
// is an int from 1 on, a float is finite and, where the family asks for it, no less than least or greater than above.
func weightsMeta(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var key string
	var absent star.Value
	var limits floatLimits
	names := []any{"key", &key, "default?", &absent}
	if b.Name() == "float" {
		names = append(names, "least?", &limits.least, "above?", &limits.above)
	}
	if err := star.UnpackArgs(b.Name(), args, kwargs, names...); err != nil {
		return nil, err
	}
	w := b.Receiver().(*weightFile).w
	var v star.Value
	var err error
	switch key = w.Key(key); b.Name() {
	case "int", "size":
		var i int64
		i, err = w.Int(key)
		if n, ok := absent.(star.Int); ok && b.Name() == "size" && models.Missing(err) {
			i, _ = n.Int64()
			err = nil
		}
		if b.Name() == "size" && err == nil && (i < 1 || i > math.MaxInt32) {
			return nil, badSize(w, key, i)
		}
		v = star.MakeInt64(i)
	case "float":
		var f float64
		f, err = w.Float(key)
		if want := limits.broken(f); err == nil && want != "" {
			return nil, &core.Error{Op: w.Name, Msg: fmt.Sprintf("%s: got %g, want %s", key, f, want), Hint: damaged}
		}
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

// floatLimits is what numbers make sense in a setting; nil is no limit.
type floatLimits struct{ least, above star.Value }

// broken says what is wanted if f is not that.
func (l *floatLimits) broken(f float64) (want string) {
	limit := func(v star.Value) float64 {
		x, _ := star.AsFloat(v)
		return x
	}
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return "a finite number"
	case l.least != nil && f < limit(l.least):
		return fmt.Sprintf("%g or more", limit(l.least))
	case l.above != nil && f <= limit(l.above):
		return fmt.Sprintf("a number above %g", limit(l.above))
	}
	return ""
}

const damaged = "the file is damaged, or written by a program that goes wrong" // what metadata without sense hints at

// badSize is the error of a size in a file's metadata that is none.
func badSize(w *models.Weights, key string, got int64) error {
	e := &core.Error{Op: w.Name, Msg: fmt.Sprintf("%s: got %d, want 1 … %d", key, got, math.MaxInt32),
		Hint: damaged}
	if key == w.Key("context_length") {
		e.Hint = fmt.Sprintf("write a file with another: save_gguf(%q, like=open_gguf(%q), metadata={%q: 2048})",
			"mended.gguf", w.Name, key)
	}
	return e
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
