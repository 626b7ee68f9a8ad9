package token

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"

	"github.com/fucina-go/fucina/core/gguf"
)

// What a token is, one bit each. The first six follow tokenizer.ggml.token_type; a token marked by its text
// (special.go) can have more than one.
const (
	normal uint8 = 1 << iota
	unknown
	control
	userDefined
	unused
	isByte
	rstrip  // white space after the token is not part of the text
	endsGen // end of generation
)

// typeFlags is indexed by tokenizer.ggml.token_type; 0 is llama.cpp's "undefined".
var typeFlags = [...]uint8{0, normal, unknown, control, userDefined, unused, isByte}

// maxTokens leaves eight bits of a hash table entry for a tag.
const maxTokens = 1<<24 - 1

// vocab holds every token's text, score and flags in a few flat slices: nothing per token for the garbage
// collector to walk.
type vocab struct {
	text    []byte   // all texts, one after the other
	offsets []uint32 // token i is text[offsets[i]:offsets[i+1]]
	scores  []float32
	flags   []uint8
	longest int // bytes of the longest text

	// index finds an id by text: a power of two of entries, at most half full, with linear probing. An entry is
	// tag<<24 | id+1, the tag being the hash's top eight bits; 0 is empty.
	index []uint32
	seed  maphash.Seed
}

// newVocab has room for n tokens of size bytes in all.
func newVocab(n, size int) *vocab {
	return &vocab{
		text:    make([]byte, 0, size),
		offsets: make([]uint32, 1, n+1),
		scores:  make([]float32, 0, n),
		flags:   make([]uint8, 0, n),
		seed:    maphash.MakeSeed(),
	}
}

// append adds a token, which insert or buildIndex then makes known by its text.
func (v *vocab) append(text []byte, score float32, flags uint8) {
	v.text = append(v.text, text...)
	v.offsets = append(v.offsets, uint32(len(v.text)))
	v.scores = append(v.scores, score)
	v.flags = append(v.flags, flags)
}

func readVocab(f *gguf.File) (*vocab, error) {
	tokens, err := f.Strings("tokenizer.ggml.tokens")
	if err != nil {
		return nil, err
	}
	n := tokens.Len()
	if n > maxTokens {
		return nil, fmt.Errorf("tokenizer.ggml.tokens: got %d tokens, want at most %d", n, maxTokens)
	}
	size := 0
	for text := range tokens.Strings() {
		size += len(text)
	}
	if size > math.MaxUint32 {
		return nil, fmt.Errorf("tokenizer.ggml.tokens: got %d bytes of text, want less than 4 GiB", size)
	}
	v := newVocab(n, size)
	for text := range tokens.Strings() {
		v.append(text, 0, normal)
	}
	if err := v.readScores(f); err != nil {
		return nil, err
	}
	if err := v.readTypes(f); err != nil {
		return nil, err
	}
	if err := v.buildIndex(); err != nil {
		return nil, fmt.Errorf("tokenizer.ggml.tokens: %w", err)
	}
	return v, nil
}

// readScores leaves every score 0 if the file has none.
func (v *vocab) readScores(f *gguf.File) error {
	const key = "tokenizer.ggml.scores"
	scores, err := f.Floats(key)
	if errors.Is(err, gguf.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	if scores.Len() != len(v.flags) {
		return fmt.Errorf("%s: got %d scores, want %d, one for each token", key, scores.Len(), len(v.flags))
	}
	id := 0
	for score := range scores.Floats() {
		if math.IsNaN(score) {
			return fmt.Errorf("%s: the score of token %d is not a number", key, id)
		}
		v.scores[id] = float32(score)
		id++
	}
	return nil
}

// readTypes makes every token a normal one if the file has no types.
func (v *vocab) readTypes(f *gguf.File) error {
	const key = "tokenizer.ggml.token_type"
	types, err := f.Ints(key)
	if errors.Is(err, gguf.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	if types.Len() != len(v.flags) {
		return fmt.Errorf("%s: got %d types, want %d, one for each token", key, types.Len(), len(v.flags))
	}
	id := int32(0)
	for typ := range types.Ints() {
		if typ < 0 || typ >= int64(len(typeFlags)) {
			return fmt.Errorf("%s: token %d has type %d, want 0 to %d", key, id, typ, len(typeFlags)-1)
		}
		v.flags[id] = typeFlags[typ]
		if text := v.bytes(id); v.flags[id] == isByte && !spellsByte(text) {
			return fmt.Errorf("%s: token %d is a byte but its text is %q, want <0x00> to <0xFF>", key, id, text)
		}
		id++
	}
	return nil
}

// buildIndex leaves out empty texts, which nothing can spell.
func (v *vocab) buildIndex() error {
	v.index = make([]uint32, 2<<bits.Len(uint(len(v.flags))))
	for id := range int32(len(v.flags)) {
		if other := v.enter(id); other >= 0 {
			return fmt.Errorf("tokens %d and %d are both %q", other, id, v.bytes(id))
		}
	}
	return nil
}

// insert makes the last token known by its text.
func (v *vocab) insert(id int32) {
	if 2*len(v.flags) <= len(v.index) {
		v.enter(id)
		return
	}
	v.index = make([]uint32, 4*len(v.flags))
	if n := len(v.index); n&(n-1) != 0 {
		v.index = make([]uint32, 1<<bits.Len(uint(n)))
	}
	for id := range int32(len(v.flags)) {
		v.enter(id)
	}
}

// enter puts id into the index, which has room, and returns -1, or the token of the same text that is there.
func (v *vocab) enter(id int32) int32 {
	text := v.bytes(id)
	if len(text) == 0 {
		return -1
	}
	v.longest = max(v.longest, len(text))
	slot, tag := v.slot(text)
	for ; v.index[slot] != 0; slot = (slot + 1) & (len(v.index) - 1) {
		if other := int32(v.index[slot]&maxTokens) - 1; bytes.Equal(v.bytes(other), text) {
			return other
		}
	}
	v.index[slot] = tag | uint32(id+1)
	return -1
}

func (v *vocab) slot(text []byte) (slot int, tag uint32) {
	h := maphash.Bytes(v.seed, text)
	return int(h & uint64(len(v.index)-1)), uint32(h>>56) << 24
}

// find returns the id of the token spelled text, -1 if there is none.
func (v *vocab) find(text []byte) int32 {
	if len(text) == 0 || len(text) > v.longest {
		return -1
	}
	slot, tag := v.slot(text)
	for ; v.index[slot] != 0; slot = (slot + 1) & (len(v.index) - 1) {
		if e := v.index[slot]; e&^maxTokens == tag {
			if id := int32(e&maxTokens) - 1; bytes.Equal(v.bytes(id), text) {
				return id
			}
		}
	}
	return -1
}

// bytes is the text of id, which must be in the vocabulary. The result must not be changed.
func (v *vocab) bytes(id int32) []byte { return v.text[v.offsets[id]:v.offsets[id+1]] }

func (v *vocab) has(id int32) bool { return id >= 0 && int(id) < len(v.flags) }

// flag is 0 outside the vocabulary.
func (v *vocab) flag(id int32) uint8 {
	if !v.has(id) {
		return 0
	}
	return v.flags[id]
}

// spellsByte says whether text is <0x00> to <0xFF>.
func spellsByte(text []byte) bool {
	return len(text) == 6 && string(text[:3]) == "<0x" && text[5] == '>' &&
		hexValue(text[3]) < 16 && hexValue(text[4]) < 16
}

// byteValue is the byte that a text spellsByte accepts stands for.
func byteValue(text []byte) byte { return hexValue(text[3])<<4 | hexValue(text[4]) }

// hexValue is a hexadecimal digit's value, 255 for any other character.
func hexValue(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}
