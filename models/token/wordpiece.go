package token

import (
	"bytes"
	"errors"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/fucina-go/fucina/core/gguf"
)

// wordPieceFamily is WordPiece as in BERT.
var wordPieceFamily = family{"bert", loadWordPiece}

func loadWordPiece(f *gguf.File, _ string, _ config) (*Tokenizer, error) {
	v, err := readVocab(f)
	if err != nil {
		return nil, err
	}
	defaults := noRoles
	defaults.bos, defaults.unk, defaults.sep, defaults.pad = 101, 100, 102, 0
	defaults.addSpace = true // in decoding: a text does not begin with the space of its first word
	s, err := readSpecials(f, v, defaults)
	if err != nil {
		return nil, err
	}
	s.before, s.after = nil, nil
	if s.bos >= 0 {
		s.before = []int32{s.bos}
	}
	if s.sep >= 0 {
		s.after = []int32{s.sep}
	}
	w := &wordPiece{v: v, unk: s.unk, first: spmSpace, lower: true, oneRune: true}
	if err := readBool(f, "normalizer.lowercase", &w.lower); err != nil {
		return nil, err
	}
	w.strip = w.lower
	if err := readBool(f, "normalizer.strip_accents", &w.strip); err != nil {
		return nil, err
	}
	if s.unk < 0 {
		return nil, errNoUnknown
	}
	return assemble(v, s, w), nil
}

// errNoUnknown is the error for a vocabulary that has nothing to say for words it does not know.
var errNoUnknown = errors.New("the vocabulary has no unknown token")

// wordPiece spells each word with the longest tokens that fit, from its left; a word for which that fails is
// unknown. Words are cut at white space, and marks and Chinese characters are words of their own. This is llama.cpp's
// llm_tokenizer_wpm for GGUF files.
type wordPiece struct {
	v       *vocab
	unk     int32
	first   string // begins a token at the start of a word
	later   string // begins one inside it
	lower   bool   // capitals become small letters
	strip   bool   // accents are left out
	oneRune bool   // of a character's canonical decomposition, only the first is kept, as in llama.cpp
	maxWord int    // a longer word, in characters, is unknown; 0: none is
}

func (w *wordPiece) encode(e *encoding, text string) {
	var word []byte
	flush := func() {
		if len(word) > 0 {
			w.word(e, word)
			word = word[:0]
		}
	}
	table := classes()
	add := func(r rune) {
		c := table.of(r)
		switch {
		case c&isSpace != 0:
			flush()
		case r == 0 || r == utf8.RuneError || c&isControl != 0 || w.strip && c&isMark != 0:
		default:
			if w.lower {
				r = unicode.ToLower(r)
			}
			if c&isPunct != 0 || r < 0x7F && c&isSymbol != 0 || isChinese(r) {
				flush()
				word = utf8.AppendRune(word, r)
				flush()
			} else {
				word = utf8.AppendRune(word, r)
			}
		}
	}
	for _, r := range text {
		switch {
		case !w.strip || r < utf8.RuneSelf:
			add(r)
		default:
			for _, d := range norm.NFD.String(string(r)) {
				add(d)
				if w.oneRune {
					break
				}
			}
		}
		if !e.goOn(utf8.RuneLen(r)) {
			return
		}
	}
	flush()
}

// word appends the ids of one word.
func (w *wordPiece) word(e *encoding, word []byte) {
	from := len(e.ids)
	if w.maxWord > 0 && utf8.RuneCount(word) > w.maxWord {
		e.ids = append(e.ids, w.unk)
		return
	}
	// What a later token begins with is written over the end of the one before.
	buffer := slices.Concat([]byte(w.later), []byte(w.first), word)
	for at, mark := len(w.later), 0; at < len(buffer); mark = len(w.later) {
		piece := buffer[at-mark:]
		copy(piece, w.later[:mark])
		n := min(len(piece), w.v.longest)
		for ; n > mark && w.find(piece[:n]) < 0; n-- {
		}
		if n <= mark {
			e.ids = append(e.ids[:from], w.unk)
			return
		}
		e.ids = append(e.ids, w.find(piece[:n]))
		at += n - mark
		if !e.goOn(n) {
			return
		}
	}
}

// find leaves out the tokens that text never becomes.
func (w *wordPiece) find(text []byte) int32 {
	id := w.v.find(text)
	if w.v.flag(id)&(control|unknown) != 0 {
		return -1
	}
	return id
}

func (w *wordPiece) decode(text []byte, id int32) []byte {
	piece := w.v.bytes(id)
	if w.later == "" {
		return append(text, bytes.ReplaceAll(piece, []byte(w.first), []byte(" "))...)
	}
	if rest, ok := bytes.CutPrefix(piece, []byte(w.later)); ok {
		return append(text, rest...)
	}
	return append(append(text, ' '), piece...)
}

// chinese are the characters that are words of their own. The block from U+2B920 begins at U+2B820, but BERT's
// tokenizer in Rust says this.
var chinese = ranges{0x3400, 0x4DBF, 0x4E00, 0x9FFF, 0xF900, 0xFAFF, 0x20000, 0x2A6DF, 0x2A700, 0x2B73F, 0x2B740,
	0x2B81F, 0x2B920, 0x2CEAF, 0x2F800, 0x2FA1F}

func isChinese(r rune) bool { return r >= 0x3400 && chinese.has(r) }
