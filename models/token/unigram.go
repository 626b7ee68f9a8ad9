package token

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fucina-go/fucina/core/gguf"
)

// unigramFamily is SentencePiece's Unigram as in T5 and XLM-RoBERTa.
var unigramFamily = family{"t5", loadUnigram}

func loadUnigram(f *gguf.File, _ string, _ config) (*Tokenizer, error) {
	v, err := readVocab(f)
	if err != nil {
		return nil, err
	}
	defaults := noRoles
	defaults.eos, defaults.unk, defaults.pad = 1, 2, 0
	defaults.addEOS = true
	s, err := readSpecials(f, v, defaults)
	if err != nil {
		return nil, err
	}
	u := &unigram{v: v, unk: s.unk, prefix: s.addSpace}
	if err := readBool(f, "remove_extra_whitespaces", &u.merge); err != nil {
		return nil, err
	}
	const key = "tokenizer.ggml.precompiled_charsmap"
	values, err := f.Ints(key)
	switch {
	case errors.Is(err, gguf.ErrMissing):
	case err != nil:
		return nil, err
	default:
		data := make([]byte, 0, values.Len())
		for b := range values.Ints() {
			data = append(data, byte(b))
		}
		if u.chars, err = newCharsMap(data); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	if err := u.prepare(); err != nil {
		return nil, err
	}
	return assemble(v, s, u), nil
}

// unigram spells a text with the tokens whose scores, logarithms of probabilities, have the greatest sum: Viterbi's
// algorithm over places in the text. A character without a token costs 10 more than the rarest token and is unknown;
// unknown ones in a row are one. This is llama.cpp's llm_tokenizer_ugm.
type unigram struct {
	v      *vocab
	unk    int32
	chars  charsMap
	prefix bool // a space comes before the first word
	merge  bool // white space in a row is one space, and none is kept at the ends
	tokens matcher
	worst  float64 // the score of an unknown character
}

const unigramPenalty = 10

func (u *unigram) prepare() error {
	if u.unk < 0 {
		return errNoUnknown
	}
	least := float32(math.MaxFloat32)
	for id, flags := range u.v.flags {
		if flags&normal != 0 {
			least = min(least, u.v.scores[id])
		}
	}
	u.worst = float64(least - unigramPenalty)
	u.tokens = newMatcher(u.v, normal|userDefined|unused, control|unknown)
	return nil
}

// unigramStep is the best way to a place in the text: the token that ends there and where it begins.
type unigramStep struct {
	score float64
	from  int
	id    int32
}

func (u *unigram) encode(e *encoding, raw string) {
	text := u.normalize(e, raw)
	if text == "" || e.err != nil {
		return
	}
	steps := make([]unigramStep, len(text)+1)
	for i := range steps {
		steps[i] = unigramStep{-math.MaxFloat64, 0, u.unk}
	}
	steps[0].score = 0
	for at := 0; at < len(text); {
		size := min(utf8Size(text[at]), len(text)-at)
		whole := false
		reach := func(id int32, n int, score float64) {
			if to := &steps[at+n]; steps[at].score+score > to.score {
				*to = unigramStep{steps[at].score + score, at, id}
			}
		}
		u.tokens.each(u.v, text[at:], func(id int32, n int) {
			whole = whole || n == size
			score := float64(u.v.scores[id])
			if u.v.flags[id]&userDefined != 0 {
				score = 0
			}
			reach(id, n, score)
		})
		if !whole {
			reach(u.unk, size, u.worst)
		}
		if at += size; !e.goOn(4 * size) {
			return
		}
	}
	from := len(e.ids)
	last := int32(-1)
	for at := len(text); at > 0; at = steps[at].from {
		if id := steps[at].id; id != u.unk || last != u.unk {
			e.ids = append(e.ids, id)
			last = id
		}
	}
	slices.Reverse(e.ids[from:])
}

// normalize replaces characters by charsMap and spaces by "▁".
func (u *unigram) normalize(e *encoding, text string) string {
	var b strings.Builder
	inWord, begun := false, false
	for text != "" {
		piece, n := u.chars.next(text)
		text = text[n:]
		if !e.goOn(n) {
			return ""
		}
		for i := range len(piece) {
			switch {
			case piece[i] != ' ':
				if !inWord && (u.prefix && !begun || u.merge) {
					b.WriteString(spmSpace)
					begun = true
				}
				inWord = true
				b.WriteByte(piece[i])
			default:
				inWord = false
				if !u.merge {
					b.WriteString(spmSpace)
				}
			}
		}
	}
	return b.String()
}

func (u *unigram) decode(text []byte, id int32) []byte {
	return append(text, bytes.ReplaceAll(u.v.bytes(id), []byte(spmSpace), []byte(" "))...)
}

// charsMap is SentencePiece's table of what to replace in a text: a double array, as in Kanda's "Space- and
// time-efficient string dictionaries", whose leaves are offsets of texts that end with a zero byte. The zero map
// replaces nothing.
type charsMap struct {
	nodes []byte // uint32, little-endian
	texts []byte
}

func newCharsMap(data []byte) (charsMap, error) {
	if len(data) == 0 {
		return charsMap{}, nil
	}
	if len(data) < 4 {
		return charsMap{}, fmt.Errorf("got %d bytes, want at least 4", len(data))
	}
	size := uint64(binary.LittleEndian.Uint32(data))
	if size%4 != 0 || size+4 >= uint64(len(data)) {
		return charsMap{}, fmt.Errorf("got a table of %d bytes, want a multiple of 4 below %d", size, len(data)-4)
	}
	if data[len(data)-1] != 0 {
		return charsMap{}, errors.New("the last text does not end with a zero byte")
	}
	return charsMap{data[4 : 4+size], data[4+size:]}, nil
}

// node is entry i, 0 outside the table: no character leads there, since its label is that of no byte but 0.
func (m *charsMap) node(i uint32) uint32 {
	if uint64(i)*4+4 > uint64(len(m.nodes)) {
		return 0
	}
	return binary.LittleEndian.Uint32(m.nodes[i*4:])
}

// base is where the children of node are, xor their byte.
func base(node uint32) uint32 { return node >> 10 << (node & (1 << 9) >> 6) }

// next is what the beginning of text, of n bytes, is replaced with: by the longest entry, or itself, one character.
// Bytes that begin none become U+FFFD.
func (m *charsMap) next(text string) (piece string, n int) {
	if len(m.nodes) > 0 {
		value := uint32(0)
		at := base(m.node(0))
		for i := range len(text) {
			c := uint32(text[i])
			at ^= c
			node := m.node(at)
			if c == 0 || node&(1<<31|0xFF) != c {
				break
			}
			at ^= base(node)
			if node>>8&1 != 0 {
				n, value = i+1, m.node(at)&(1<<31-1)
			}
		}
		if n > 0 && uint64(value) < uint64(len(m.texts)) {
			out := m.texts[value:]
			return string(out[:bytes.IndexByte(out, 0)]), n
		}
	}
	r, n := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError {
		return "\uFFFD", n
	}
	return text[:n], n
}
