package starlark

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/models/token"
)

// Tokenizer is a tokenizer as a script sees it. It never changes, and any interpreter may use it.
type Tokenizer struct {
	name string
	*token.Tokenizer
}

func (t *Tokenizer) String() string {
	return fmt.Sprintf("<tokenizer %s of %d tokens>", t.name, t.Len())
}
func (t *Tokenizer) Type() string          { return "tokenizer" }
func (t *Tokenizer) Freeze()               {}
func (t *Tokenizer) Truth() star.Bool      { return true }
func (t *Tokenizer) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: tokenizer") }

// HoldsNothing marks that no tensor can be reached through it.
func (t *Tokenizer) HoldsNothing() {}

// openTokenizer is tokenizer(path, pre=None): the tokenizer in a GGUF file, a tokenizer.json, tiktoken's ranks or
// llama2.c's tokenizer.bin; t.encode(text) is its ids and t.decode(ids) the text. pre names the pre-tokenizer of a
// byte-level BPE, such as "qwen2", where the file does not or where it names one that is not known.
func openTokenizer(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	var pre star.Value = star.None
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path, "pre?", &pre); err != nil {
		return nil, err
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
	tk, err := token.Open(name, it.cfg.Open, options...)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = it.cannotOpen(failed.Path, path, err, "a path is relative to the working directory, not to the script")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	return &Tokenizer{path, tk}, nil
}

// preOption is the argument pre of op, a name or None.
func preOption(op, path string, pre star.Value) ([]token.Option, error) {
	if id, ok := star.AsString(pre); ok {
		return []token.Option{token.WithPre(id)}, nil
	}
	if pre != star.None {
		return nil, &core.Error{Op: op, Msg: "pre: got " + pre.Type() + ", want the name of a pre-tokenizer",
			Hint: fmt.Sprintf("as in: %s(%q, pre=\"qwen2\")", op, path)}
	}
	return nil, nil
}

// trainBPE is bpe_train(texts, vocab_size, special=[], pre="gpt-2", min_count=1): the byte-level BPE learned from
// texts, a text or several. It has the special tokens, the 256 bytes, and what joins most often; pairs that are rarer
// than min_count never do. t.save(path) keeps it.
func trainBPE(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var source star.Value
	var special star.Iterable
	training := token.Training{Pre: "gpt-2", MinCount: 1, Stop: interpOf(t).stopper(b.Name())}
	if err := star.UnpackArgs(b.Name(), args, kwargs, "texts", &source, "vocab_size", &training.Size,
		"special?", &special, "pre?", &training.Pre, "min_count?", &training.MinCount); err != nil {
		return nil, err
	}
	if special != nil {
		for item := range star.Elements(special) {
			text, ok := star.AsString(item)
			if !ok {
				return nil, &core.Error{Op: b.Name(), Msg: "special: got " + brief(item) + ", want texts",
					Hint: `as in: bpe_train(texts, 1000, special=["<|endoftext|>"])`}
			}
			training.Special = append(training.Special, text)
		}
	}
	wrong := star.Value(nil)
	var texts iter.Seq[string]
	switch source := source.(type) {
	case star.String:
		texts = func(yield func(string) bool) { yield(string(source)) }
	case star.Iterable:
		texts = func(yield func(string) bool) {
			for item := range star.Elements(source) {
				text, ok := star.AsString(item)
				if !ok {
					wrong = item
					return
				}
				if !yield(text) {
					return
				}
			}
		}
	default:
		wrong = source
		texts = func(func(string) bool) {}
	}
	tk, err := token.Train(texts, training)
	if wrong != nil {
		return nil, &core.Error{Op: b.Name(), Msg: "texts: got " + wrong.Type() + ", want a text or a list of texts",
			Hint: `as in: bpe_train(["once", "upon"], 300)`}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	return &Tokenizer{"bpe_train", tk}, nil
}

// stopper says whether the run was stopped.
func (it *Interp) stopper(op string) func() error {
	return func() error {
		if it.env.Control.Stopped() {
			return &core.Canceled{Op: op}
		}
		return nil
	}
}

// tokenizerMethods are what scripts call on a tokenizer.
var tokenizerMethods = map[string]*star.Builtin{
	"decode": star.NewBuiltin("decode", tokenizerDecode),
	"encode": star.NewBuiltin("encode", tokenizerEncode),
	"id":     star.NewBuiltin("id", tokenizerID),
	"json":   star.NewBuiltin("json", tokenizerJSON),
	"merges": star.NewBuiltin("merges", tokenizerMerges),
	"save":   star.NewBuiltin("save", tokenizerSave),
	"token":  star.NewBuiltin("token", tokenizerToken),
}

// Attr is a method, the number of tokens, or the id of the token that has a role; None if none has it.
func (t *Tokenizer) Attr(name string) (star.Value, error) {
	if b, ok := tokenizerMethods[name]; ok {
		return b.BindReceiver(t), nil
	}
	id := int32(0)
	switch name {
	case "vocab_size":
		return star.MakeInt(t.Len()), nil
	case "bos":
		id = t.BOS()
	case "eos":
		id = t.EOS()
	case "eot":
		id = t.EOT()
	case "pad":
		id = t.PAD()
	case "sep":
		id = t.SEP()
	case "unk":
		id = t.UNK()
	default:
		return nil, nil
	}
	if id < 0 {
		return star.None, nil
	}
	return star.MakeInt(int(id)), nil
}

// AttrNames is every attribute.
func (t *Tokenizer) AttrNames() []string {
	return []string{"bos", "decode", "encode", "eos", "eot", "id", "json", "merges", "pad", "save", "sep", "token",
		"unk", "vocab_size"}
}

// tokenizerEncode is t.encode(text, special=False, bos=False, axis=None): the ids of text, a list, or a tensor
// i32[axis] if an axis is named. With special, what spells a control token such as "</s>" is that token; without, text
// never becomes one. With bos, what the file wants around a text is added: a BOS before, an EOS behind.
func tokenizerEncode(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var text, name string
	special, bos := false, false
	if err := star.UnpackArgs(b.Name(), args, kwargs, "text", &text, "special?", &special, "bos?", &bos,
		"axis??", &name); err != nil {
		return nil, err
	}
	mode := token.Plain
	if special {
		mode |= token.ParseSpecial
	}
	if bos {
		mode |= token.AddSpecial
	}
	it := interpOf(t)
	ids, err := b.Receiver().(*Tokenizer).EncodeUntil(text, mode, it.stopper(b.Name()))
	if err != nil {
		return nil, err
	}
	if name == "" {
		return idList(ids), nil
	}
	axes, err := axisNames(star.String(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	if axes.Len() != 1 {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("axis: got %q, want one name", name),
			Hint: `as in: t.encode(text, axis="seq")`}
	}
	values := make([]int64, len(ids))
	for i, id := range ids {
		values[i] = int64(id)
	}
	return Tensor{it.env.FromInts(dtype.I32, values, axes, len(ids))}, nil
}

func idList(ids []int32) *star.List {
	items := make([]star.Value, len(ids))
	for i, id := range ids {
		items[i] = star.MakeInt(int(id))
	}
	return star.NewList(items)
}

// tokenizerDecode is t.decode(ids): the text of ids, a list or a tensor of one axis. Control tokens stand for none.
func tokenizerDecode(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var source star.Value
	if err := star.UnpackArgs(b.Name(), args, kwargs, "ids", &source); err != nil {
		return nil, err
	}
	t := b.Receiver().(*Tokenizer)
	ids, err := t.ids(b.Name(), "t.decode([1, 2])", source)
	return star.String(t.Decode(ids)), err
}

// ids is a list or a tensor of token ids, each inside the vocabulary. example is a call that is right.
func (t *Tokenizer) ids(op, example string, source star.Value) ([]int32, error) {
	var ids []int32
	add := func(item star.Value) error {
		id, err := star.AsInt32(item)
		if err != nil || id < 0 || id >= t.Len() {
			return &core.Error{Op: op, Msg: fmt.Sprintf("got %s among the token ids", brief(item)),
				Hint: fmt.Sprintf("ids are 0 … %d, as in: %s", t.Len()-1, example)}
		}
		ids = append(ids, int32(id))
		return nil
	}
	switch source := source.(type) {
	case Tensor:
		if source.Rank() != 1 || !source.DType().IsInt() {
			return nil, &core.Error{Op: op, Msg: "got " + source.Shape() + ", want integers along one axis",
				Hint: "as in: " + example}
		}
		for _, x := range source.Values() {
			if err := add(number(x)); err != nil {
				return nil, err
			}
		}
	case star.Iterable:
		for item := range star.Elements(source) {
			if err := add(item); err != nil {
				return nil, err
			}
		}
	default:
		return nil, &core.Error{Op: op, Msg: "got " + source.Type() + ", want a list or a tensor of token ids",
			Hint: "as in: " + example}
	}
	return ids, nil
}

// tokenizerToken is t.token(id): the vocabulary's own text of a token, such as "▁the", "Ġthe" or "</s>".
func tokenizerToken(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var id star.Value
	if err := star.UnpackArgs(b.Name(), args, kwargs, "id", &id); err != nil {
		return nil, err
	}
	t := b.Receiver().(*Tokenizer)
	ids, err := t.ids(b.Name(), "t.token(1)", star.Tuple{id})
	if err != nil {
		return nil, err
	}
	return star.String(t.Piece(ids[0])), nil
}

// tokenizerID is t.id(token): the id of the token that the vocabulary writes so, None if there is none.
func tokenizerID(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var piece string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "token", &piece); err != nil {
		return nil, err
	}
	if id, ok := b.Receiver().(*Tokenizer).ID(piece); ok {
		return star.MakeInt(int(id)), nil
	}
	return star.None, nil
}

// tokenizerMerges is t.merges(): what joins in a BPE, in order, as pairs of texts; empty for the other kinds.
func tokenizerMerges(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	var pairs []star.Value
	for left, right := range b.Receiver().(*Tokenizer).Merges() {
		pairs = append(pairs, star.Tuple{star.String(left), star.String(right)})
	}
	return star.NewList(pairs), nil
}

// tokenizerJSON is t.json(): a byte-level BPE as the text of a tokenizer.json.
func tokenizerJSON(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	var text strings.Builder
	if err := b.Receiver().(*Tokenizer).WriteHF(&text); err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	return star.String(text.String()), nil
}

// tokenizerSave is t.save(path): writes a byte-level BPE as a tokenizer.json, which tokenizer(path) and other programs
// read.
func tokenizerSave(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path); err != nil {
		return nil, err
	}
	write := func(w io.Writer) error { return b.Receiver().(*Tokenizer).WriteHF(w) }
	return star.None, interpOf(t).Save(b.Name(), path, write)
}
