// Package token turns text into token ids and back, as llama.cpp does for the same GGUF file, and learns byte-pair
// encodings from texts.
//
// Here lives what every tokenizer model shares: the vocabulary, special tokens and the end-of-generation rule,
// and UTF-8-safe streaming. What differs between models is a [codec], one file each: SentencePiece's BPE (spm.go) and
// its Unigram (unigram.go), byte-level BPE (bpe.go, with the pre-tokenizers of pre.go), WordPiece (wordpiece.go) and
// RWKV's trie (rwkv.go). To add a model, write its codec and name its family in families. What differs between files
// is how vocabulary and settings are read: GGUF (New), and in open.go tokenizer.json, tiktoken's ranks and llama2.c's
// tokenizer.bin. Not here: chat templates, and which token comes next.
package token

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/gguf"
)

// Tokenizer is one model's tokenizer. It never changes after [New] and may be used by many goroutines at once. The zero
// Tokenizer has no vocabulary: to use it is a misuse and panics with a *core.Error.
type Tokenizer struct {
	*vocab
	specials
	codec
	defined matcher // user-defined tokens: split off whatever the mode
	special matcher // those, and control and unknown tokens: split off under ParseSpecial
}

// codec is what one tokenizer model does with ordinary text; special tokens are split off before. Its methods may be
// called from many goroutines at once.
type codec interface {
	// encode appends the ids of text, which begins the input or follows a special token and may be invalid UTF-8.
	encode(e *encoding, text string)
	// decode appends the bytes that id, an ordinary token, stands for.
	decode(text []byte, id int32) []byte
}

// encoding is one text on its way into ids.
type encoding struct {
	ids  []int32
	stop func() error // asked now and then; may be nil
	err  error        // what it said
	done int          // bytes since it was asked
}

// encodingStride is how many bytes, a few milliseconds of work, are encoded before stop is asked again.
const encodingStride = 1 << 14

// goOn counts n more bytes and says whether to go on.
func (e *encoding) goOn(n int) bool {
	if e.done += n; e.done < encodingStride || e.stop == nil {
		return e.err == nil
	}
	e.done = 0
	if e.err == nil {
		e.err = e.stop()
	}
	return e.err == nil
}

// family is a value of tokenizer.ggml.model and how its tokenizer is read.
type family struct {
	model string
	load  func(f *gguf.File, model string, c config) (*Tokenizer, error)
}

var families = []family{
	spmFamily, bpeFamily, gemma4Family, whitespaceFamily, wordPieceFamily, unigramFamily, rwkvFamily,
}

// config is what options set.
type config struct{ pre string }

// Option says what a file does not say, or says wrongly.
type Option func(*config)

// WithPre names the pre-tokenizer of a byte-level BPE, one of [PreTokenizers], whatever the file says.
func WithPre(id string) Option { return func(c *config) { c.pre = id } }

func configOf(options []Option) (c config) {
	for _, option := range options {
		option(&c)
	}
	return c
}

// New reads the tokenizer in a GGUF file's metadata; it keeps nothing of f. Errors: a tokenizer model of no known
// family, a pre-tokenizer that is not known, a key that is missing or of the wrong type, arrays of different lengths,
// a token listed twice, an id outside the vocabulary.
func New(f *gguf.File, options ...Option) (*Tokenizer, error) {
	if f == nil {
		return nil, errors.New("token: got no file, want one that gguf.Open opened")
	}
	defer runtime.KeepAlive(f) // it is read through slices that do not
	model, err := f.String("tokenizer.ggml.model")
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	known := make([]string, len(families))
	for i, fam := range families {
		known[i] = fam.model
		if fam.model != model {
			continue
		}
		t, err := fam.load(f, model, configOf(options))
		if err != nil {
			return nil, fmt.Errorf("token: model %q: %w", model, err)
		}
		return t, nil
	}
	return nil, fmt.Errorf("token: tokenizer.ggml.model: got %q, want one of %s", model, strings.Join(known, ", "))
}

func assemble(v *vocab, s specials, c codec) *Tokenizer {
	return &Tokenizer{
		vocab:    v,
		specials: s,
		codec:    c,
		defined:  newMatcher(v, userDefined, control|unknown),
		special:  newMatcher(v, userDefined|control|unknown, 0),
	}
}

// mustBeRead complains about a tokenizer that nothing was read into.
func (t *Tokenizer) mustBeRead(op string) {
	if t == nil || t.vocab == nil {
		panic(&core.Error{Op: op, Msg: "the tokenizer has no vocabulary", Hint: "token.New and token.Open read one"})
	}
}

// Len is the number of tokens. A model may have more logits than that; the ids above stand for no text.
func (t *Tokenizer) Len() int {
	t.mustBeRead("len")
	return len(t.flags)
}

// Piece is the vocabulary's own text of id, such as "▁the", "<0x0A>" or "</s>"; [Tokenizer.Decode] gives the text
// that tokens stand for. It is "" for an id outside the vocabulary.
func (t *Tokenizer) Piece(id int32) string {
	t.mustBeRead("piece")
	if !t.has(id) {
		return ""
	}
	return string(t.bytes(id))
}

// ID is the token whose vocabulary text is piece.
func (t *Tokenizer) ID(piece string) (id int32, ok bool) {
	t.mustBeRead("id")
	id = t.find([]byte(piece))
	return id, id >= 0
}

// BOS begins a text; -1 if there is none, as for the tokens below.
func (t *Tokenizer) BOS() int32 { return t.bos }

// EOS ends a text.
func (t *Tokenizer) EOS() int32 { return t.eos }

// UNK stands for what the vocabulary cannot spell.
func (t *Tokenizer) UNK() int32 { return t.unk }

// EOT ends a turn of a conversation.
func (t *Tokenizer) EOT() int32 { return t.eot }

// SEP separates two texts and ends the last.
func (t *Tokenizer) SEP() int32 { return t.sep }

// PAD fills up a batch.
func (t *Tokenizer) PAD() int32 { return t.pad }

// IsEOG says whether id ends generation: EOS, EOT, EOM, and tokens known by their text to be an end.
func (t *Tokenizer) IsEOG(id int32) bool {
	t.mustBeRead("is_eog")
	return t.flag(id)&endsGen != 0
}

// Mode says what [Tokenizer.Encode] does beyond the text itself; modes combine with |.
type Mode uint8

const (
	// Plain encodes text as text: what spells a control token, such as "</s>", does not become that token.
	// Use it for text that comes from outside.
	Plain Mode = 0
	// AddSpecial puts BOS before and EOS after the text if the file's metadata asks for them.
	AddSpecial Mode = 1
	// ParseSpecial turns what spells a control token into that token. Use it for a rendered chat template.
	ParseSpecial Mode = 2
)

// Encode returns the ids of text. Invalid UTF-8 becomes byte tokens. User-defined tokens are found in every mode,
// at each place the longest that fits, leftmost first.
func (t *Tokenizer) Encode(text string, mode Mode) []int32 {
	ids, _ := t.EncodeUntil(text, mode, nil)
	return ids
}

// EncodeUntil is Encode that asks stop every few milliseconds and ends with its error if that is not nil.
func (t *Tokenizer) EncodeUntil(text string, mode Mode, stop func() error) ([]int32, error) {
	t.mustBeRead("encode")
	e := &encoding{ids: make([]int32, 0, len(text)/3+2), stop: stop}
	if mode&AddSpecial != 0 {
		e.ids = append(e.ids, t.before...)
	}
	m := &t.defined
	if mode&ParseSpecial != 0 {
		m = &t.special
	}
	for text != "" && e.err == nil {
		at, id := m.find(t.vocab, text)
		if at > 0 {
			t.encode(e, text[:at])
		}
		if id < 0 {
			break
		}
		e.ids = append(e.ids, id)
		text = text[at+len(t.bytes(id)):]
		if t.flags[id]&rstrip != 0 {
			text = strings.TrimLeft(text, " \t\n\v\f\r")
		}
		e.goOn(at + 1)
	}
	if mode&AddSpecial != 0 {
		e.ids = append(e.ids, t.after...)
	}
	return e.ids, e.err
}

// appendText appends the bytes id stands for. A control token, the unknown token and an id outside the vocabulary
// stand for none and are not visible.
func (t *Tokenizer) appendText(text []byte, id int32) (_ []byte, visible bool) {
	switch flags := t.flag(id); {
	case !t.has(id) || flags&(control|unknown) != 0:
		return text, false
	case flags&userDefined != 0:
		return append(text, t.bytes(id)...), true
	case flags&isByte != 0:
		return append(text, byteValue(t.bytes(id))), true
	}
	return t.decode(text, id), true
}
