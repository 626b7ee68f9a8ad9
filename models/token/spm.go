package token

import (
	"bytes"
	"fmt"
	"math"
	"sync"

	"github.com/fucina-go/fucina/core/gguf"
)

// spmFamily is SentencePiece's BPE, as in Llama 1 and 2, Mistral 7B, Phi-3 and Gemma 1 to 3.
var spmFamily = family{"llama", loadSPM}

func loadSPM(f *gguf.File, _ string, _ config) (*Tokenizer, error) {
	v, err := readVocab(f)
	if err != nil {
		return nil, err
	}
	defaults := noRoles
	defaults.bos, defaults.eos, defaults.unk = 1, 2, 0
	defaults.addBOS, defaults.addSpace = true, true
	s, err := readSpecials(f, v, defaults)
	if err != nil {
		return nil, err
	}
	c, err := newSPM(v, s)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.ggml.tokens: %w", err)
	}
	return assemble(v, s, c), nil
}

// spm joins neighbours by score: of all adjacent pairs whose joint text is a token, the one of the highest score
// (leftmost if several) becomes one symbol, until no pair is a token. A symbol that is no token even then is
// spelled in bytes. This is llama.cpp's llm_tokenizer_spm, except that text is never joined into a control, unknown
// or byte token: SentencePiece itself keeps those apart.
//
// In the vocabulary a space is "▁".
type spm struct {
	v       *vocab
	special specials
	bytes   [256]int32 // each byte's token, -1 if it has none
	inside  pairSet    // the neighbouring bytes inside tokens
	scratch sync.Pool  // of *spmScratch
}

const (
	spmSpace    = "▁"
	spmReserved = control | unknown | isByte
	// spmMaxRun keeps offsets into a run within int32. No token is near as long.
	spmMaxRun = 1 << 30
)

func newSPM(v *vocab, s specials) (codec, error) {
	c := &spm{v: v, special: s}
	c.scratch.New = func() any { return new(spmScratch) }
	for b := range c.bytes {
		id := v.find(fmt.Appendf(nil, "<0x%02X>", b))
		if id < 0 {
			id = v.find([]byte{byte(b)})
		}
		if id < 0 && c.special.unk < 0 {
			return nil, fmt.Errorf("no token for the byte <0x%02X> and no unknown token", b)
		}
		c.bytes[b] = id
	}
	for id, flags := range v.flags {
		if text := v.bytes(int32(id)); flags&spmReserved == 0 {
			for i := 1; i < len(text); i++ {
				c.inside.add(text[i-1], text[i])
			}
		}
	}
	return c, nil
}

// spmScratch is the working memory of one encode call.
type spmScratch struct {
	text    []byte // the whole input, spaces replaced
	symbols []spmSymbol
	pairs   heap[spmPair]
}

// spmSymbol is a stretch of a run, at first one character. Joined into its left neighbour, it has size 0.
type spmSymbol struct{ at, size, prev, next int32 } // prev and next are -1 at the ends

// spmPair is out of date once the sizes of its symbols no longer add up to size. Its key is its score, the best of
// which come first, and its left symbol.
type spmPair struct{ right, size int32 }

// encode works on one run at a time: where the bytes on both sides of a character boundary are neighbours in no
// token, no pair can join them, so what follows does not depend on what came before. Runs are mostly words, which
// keeps the heap small.
func (c *spm) encode(e *encoding, text string) {
	s := c.scratch.Get().(*spmScratch)
	defer c.scratch.Put(s)
	s.text = s.text[:0]
	if c.special.addSpace {
		s.text = append(s.text, spmSpace...)
	}
	for i := range len(text) {
		if text[i] == ' ' {
			s.text = append(s.text, spmSpace...)
		} else {
			s.text = append(s.text, text[i])
		}
	}
	for from, to := 0, 0; from < len(s.text); from = to {
		s.symbols = s.symbols[:0]
		for to == from || to < len(s.text) && to-from < spmMaxRun && c.inside.has(s.text[to-1], s.text[to]) {
			n := min(utf8Size(s.text[to]), len(s.text)-to)
			i := int32(len(s.symbols))
			s.symbols = append(s.symbols, spmSymbol{at: int32(to - from), size: int32(n), prev: i - 1, next: i + 1})
			to += n
		}
		s.symbols[len(s.symbols)-1].next = -1
		c.join(e, s, s.text[from:to])
		e.ids = c.emit(e.ids, s, s.text[from:to])
		if !e.goOn(to - from) {
			return
		}
	}
}

// join joins the symbols of one run.
func (c *spm) join(e *encoding, s *spmScratch, run []byte) {
	s.pairs = s.pairs[:0]
	for i := 1; i < len(s.symbols); i++ {
		if p, ok := c.pair(s, run, int32(i-1), int32(i)); ok {
			s.pairs = append(s.pairs, p)
		}
	}
	s.pairs.sort()
	for len(s.pairs) > 0 && e.goOn(1) {
		first := s.pairs.pop()
		at, p := int32(uint32(first.key)), first.value
		left, right := &s.symbols[at], &s.symbols[p.right]
		if left.size == 0 || right.size == 0 || left.size+right.size != p.size {
			continue
		}
		left.size, right.size = p.size, 0
		left.next = right.next
		if left.next >= 0 {
			s.symbols[left.next].prev = at
			if q, ok := c.pair(s, run, at, left.next); ok {
				s.pairs.push(q)
			}
		}
		if left.prev >= 0 {
			if q, ok := c.pair(s, run, left.prev, at); ok {
				s.pairs.push(q)
			}
		}
	}
}

// pair is the pair of two neighbouring symbols, if their joint text is a token.
func (c *spm) pair(s *spmScratch, run []byte, left, right int32) (p keyed[spmPair], ok bool) {
	at, size := s.symbols[left].at, s.symbols[left].size+s.symbols[right].size
	id := c.find(run[at : at+size])
	if id < 0 {
		return p, false
	}
	order := math.Float32bits(c.v.scores[id] + 0) // -0 becomes 0
	if order>>31 == 0 {
		order ^= 1<<31 - 1 // of those that are not negative the greatest is the first
	}
	return keyed[spmPair]{uint64(order)<<32 | uint64(left), spmPair{right, size}}, true
}

func (c *spm) find(text []byte) int32 {
	id := c.v.find(text)
	if id >= 0 && c.v.flags[id]&spmReserved != 0 {
		return -1
	}
	return id
}

// emit appends the ids of a run's symbols. One that cannot be spelled in bytes either is one unknown token.
func (c *spm) emit(ids []int32, s *spmScratch, run []byte) []int32 {
	for i := int32(0); i >= 0; i = s.symbols[i].next {
		text := run[s.symbols[i].at:][:s.symbols[i].size]
		if id := c.find(text); id >= 0 {
			ids = append(ids, id)
			continue
		}
		for _, b := range text {
			if c.bytes[b] < 0 {
				ids = append(ids, c.special.unk)
				break
			}
			ids = append(ids, c.bytes[b])
		}
	}
	return ids
}

func (c *spm) decode(text []byte, id int32) []byte {
	return append(text, bytes.ReplaceAll(c.v.bytes(id), []byte(spmSpace), []byte(" "))...)
}

// utf8Size is the bytes of the UTF-8 character that begins with b; 1 where none does.
func utf8Size(b byte) int {
	switch {
	case b < 0xC0:
		return 1
	case b < 0xE0:
		return 2
	case b < 0xF0:
		return 3
	}
	return 4
}

// pairSet is a set of pairs of bytes.
type pairSet [1 << 16 / 64]uint64

func (s *pairSet) add(a, b byte)      { s[uint(a)<<2|uint(b)>>6] |= 1 << (b & 63) }
func (s *pairSet) has(a, b byte) bool { return s[uint(a)<<2|uint(b)>>6]>>(b&63)&1 != 0 }
