package token

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/fucina-go/fucina/core/gguf"
)

// bpeFamily is byte-pair encoding as in GPT-2, Llama 3 and Qwen.
var bpeFamily = family{"gpt2", loadBPE}

// gemma4Family and whitespaceFamily are that under names which say more.
var (
	gemma4Family     = family{"gemma4", loadBPE}
	whitespaceFamily = family{"whitespace", loadBPE}
)

func loadBPE(f *gguf.File, model string, c config) (*Tokenizer, error) {
	v, err := readVocab(f)
	if err != nil {
		return nil, err
	}
	p, id, err := readPre(f, model, c)
	if err != nil {
		return nil, err
	}
	defaults := noRoles
	if model != "gemma4" {
		defaults.bos, defaults.eos = 11, 11
	}
	if p.noBOS {
		defaults.bos = -1
	}
	defaults.addBOS = p.addBOS
	s, err := readSpecials(f, v, defaults)
	if err != nil {
		return nil, err
	}
	if p.lines && s.bos >= 0 { // whatever the metadata says, as in llama.cpp
		s.before = []int32{s.bos}
	}
	b := &bpe{v: v, unk: s.unk, pre: p}
	if model == "whitespace" {
		b.dropSpaces = true
		if err := readBool(f, "normalizer.lowercase", &b.lower); err != nil {
			return nil, err
		}
	}
	texts, err := f.Strings("tokenizer.ggml.merges")
	if err != nil && !(errors.Is(err, gguf.ErrMissing) && id == "kimi-k2") {
		return nil, err
	}
	if b.merges, b.extra, err = readMerges(v, texts.Len(), texts.Strings()); err != nil {
		return nil, fmt.Errorf("tokenizer.ggml.merges: %w", err)
	}
	b.prepare()
	return assemble(v, s, b), nil
}

// readPre is the pre-tokenizer of the file, or the one that c names.
func readPre(f *gguf.File, model string, c config) (p pre, id string, err error) {
	const key = "tokenizer.ggml.pre"
	id, err = f.String(key)
	switch {
	case errors.Is(err, gguf.ErrMissing):
		id = "default"
	case err != nil:
		return p, "", err
	}
	if model == "gemma4" {
		id = "gemma4"
	}
	if c.pre != "" {
		p, err = preTokenizer(c.pre)
		return p, id, err
	}
	if p, err = preTokenizer(id); err != nil {
		return p, "", fmt.Errorf("%s: %w", key, err)
	}
	return p, id, nil
}

// bpe joins neighbours by rank: in each piece that its pre-tokenizer cuts off, of all adjacent pairs that have a merge
// the one of the lowest rank (leftmost if several) becomes one symbol, until there is none. This is llama.cpp's
// llm_tokenizer_bpe, with two differences: bytes that are not UTF-8 stay what they are, and text never becomes a
// control or unknown token.
type bpe struct {
	v   *vocab
	unk int32
	pre
	merges     merges
	extra      *vocab     // symbols that are no tokens
	bytes      [256]int32 // each byte's token, -1 if it has none
	first      [256]int32 // each byte's symbol, -1 if it has none; not raw
	dropSpaces bool       // white space only separates
	lower      bool       // capitals become small letters
	nfc        bool       // the text is composed first
	prefix     bool       // a space comes before the text
	always     bool       // even if it begins with one
	pool       sync.Pool  // of *bpeScratch
}

// bpeReserved are the tokens that text does not become. Bytes are reached by their value alone.
const bpeReserved = control | unknown

// prepare fills in what follows from the vocabulary and the merges.
func (b *bpe) prepare() {
	for i := range b.bytes {
		if b.raw {
			b.bytes[i] = b.find(fmt.Appendf(nil, "<0x%02X>", i))
			continue
		}
		text := appendSpelled(nil, string([]byte{byte(i)}))
		b.bytes[i], b.first[i] = b.find(text), b.symbol(text)
	}
	b.pool.New = func() any { return &bpeScratch{cutter: newCutter(b.stages), seed: maphash.MakeSeed()} }
}

// find is the token that text may become, -1 if there is none.
func (b *bpe) find(text []byte) int32 {
	if id := b.v.find(text); b.v.flag(id)&bpeReserved == 0 {
		return id
	}
	return -1
}

// symbol is a token, or one of extra, of that text.
func (b *bpe) symbol(text []byte) int32 {
	if id := b.v.find(text); id >= 0 {
		return id
	}
	if id := b.extra.find(text); id >= 0 {
		return int32(len(b.v.flags)) + id
	}
	return -1
}

// bpeScratch is the working memory of one encode call, and what earlier ones found.
type bpeScratch struct {
	cutter  *cutter
	spelled []byte
	symbols []bpeSymbol
	queue   heap[struct{}] // rank<<32 | number of the left symbol
	cache   []bpeCached
	seed    maphash.Seed
}

// bpeSymbol is a stretch of a piece. rank is that of its merge with the next symbol.
type bpeSymbol struct {
	id, at     int32 // id is -1 for a character that is no symbol, and after joining the left neighbour
	prev, next int32 // -1 at the ends
	rank       uint32
	joined     int32 // what the merge makes
}

// bpeCached is what a short piece became. Entries are replaced, never collected: 64 bytes each.
type bpeCached struct {
	hash   uint32
	length uint8
	n      uint8
	piece  [26]byte
	ids    [7]int32
}

const (
	bpeCacheSize = 1 << 14
	// bpeCacheFrom is the length of a text from which on the cache is worth its memory.
	bpeCacheFrom = 1 << 12
	// bpeMaxPiece keeps offsets into a piece within int32.
	bpeMaxPiece = 1 << 30
	// bpeScan is how many symbols are looked through for the lowest rank; more have a heap.
	bpeScan = 48
	// bpePoll is the symbols of a long piece after which stop may be asked.
	bpePoll = 1 << 12
	// bpeKeep bounds the symbols for which memory is kept for the next call.
	bpeKeep = 1 << 16
)

func (b *bpe) encode(e *encoding, text string) {
	s := b.pool.Get().(*bpeScratch)
	defer b.pool.Put(s)
	if len(text) >= bpeCacheFrom && s.cache == nil {
		s.cache = make([]bpeCached, bpeCacheSize)
	}
	if b.nfc {
		text = nfc(text)
	}
	if b.prefix && (b.always || text[0] != ' ') {
		text = " " + text
	}
	if b.lower {
		text = strings.Map(unicode.ToLower, text)
	}
	if b.escape {
		text = strings.ReplaceAll(text, " ", spmSpace)
	}
	s.cutter.cut(text, func(piece string) bool {
		for len(piece) > bpeMaxPiece {
			b.piece(e, s, piece[:bpeMaxPiece])
			piece = piece[bpeMaxPiece:]
		}
		b.piece(e, s, piece)
		return e.goOn(len(piece))
	})
	if cap(s.symbols) > bpeKeep {
		s.symbols, s.queue = nil, nil
	}
}

// piece appends the ids of one piece.
func (b *bpe) piece(e *encoding, s *bpeScratch, piece string) {
	if len(s.cache) == 0 || len(piece) > len(s.cache[0].piece) {
		b.join(e, s, piece)
		return
	}
	hash := maphash.String(s.seed, piece)
	c := &s.cache[hash%bpeCacheSize]
	if c.hash == uint32(hash>>32) && string(c.piece[:c.length]) == piece && c.n > 0 {
		e.ids = append(e.ids, c.ids[:c.n]...)
		return
	}
	from := len(e.ids)
	b.join(e, s, piece)
	if n := len(e.ids) - from; n <= len(c.ids) {
		c.hash, c.length, c.n = uint32(hash>>32), uint8(len(piece)), uint8(n)
		copy(c.piece[:], piece)
		copy(c.ids[:], e.ids[from:])
	}
}

func (b *bpe) join(e *encoding, s *bpeScratch, piece string) {
	if b.dropSpaces {
		if r, _ := utf8.DecodeRuneInString(piece); unicode.IsSpace(r) {
			return
		}
	}
	if b.whole || b.lines && strings.Trim(piece, "\n") == "" {
		spelled := append(s.spelled[:0], piece...)
		if !b.raw {
			spelled = appendSpelled(s.spelled[:0], piece)
		}
		s.spelled = spelled
		if id := b.find(spelled); id >= 0 {
			e.ids = append(e.ids, id)
			return
		}
	}
	if !b.symbols(e, s, piece) {
		return
	}
	if len(s.symbols) <= bpeScan {
		b.joinFew(s)
	} else {
		b.joinMany(e, s)
	}
	b.emit(e, s, piece)
}

// symbols makes s.symbols the bytes or characters of piece, with their merges, and says whether to go on.
func (b *bpe) symbols(e *encoding, s *bpeScratch, piece string) bool {
	s.symbols = slices.Grow(s.symbols[:0], len(piece))
	for at := 0; at < len(piece); {
		i := int32(len(s.symbols))
		x := bpeSymbol{id: b.first[piece[at]], at: int32(at), prev: i - 1, next: i + 1, rank: noMerge}
		size := 1
		if b.raw {
			size = min(utf8Size(piece[at]), len(piece)-at)
			s.spelled = append(s.spelled[:0], piece[at:at+size]...)
			x.id = b.symbol(s.spelled)
		}
		s.symbols = append(s.symbols, x)
		if i > 0 {
			left := &s.symbols[i-1]
			left.rank, left.joined = b.merges.of(left.id, x.id)
		}
		if i%bpePoll == bpePoll-1 && !e.goOn(bpePoll) {
			return false
		}
		at += size
	}
	s.symbols[len(s.symbols)-1].next = -1
	return true
}

// joinFew looks for the lowest rank anew after every merge.
func (b *bpe) joinFew(s *bpeScratch) {
	for {
		best, lowest := int32(-1), uint32(noMerge)
		for i := int32(0); i >= 0; i = s.symbols[i].next {
			if s.symbols[i].rank < lowest {
				best, lowest = i, s.symbols[i].rank
			}
		}
		if best < 0 {
			return
		}
		b.merge(s, best)
	}
}

// joinMany keeps the ranks in a heap. An entry is out of date once its symbol has another rank.
func (b *bpe) joinMany(e *encoding, s *bpeScratch) {
	s.queue = s.queue[:0]
	push := func(i int32) {
		if i >= 0 && s.symbols[i].rank != noMerge {
			s.queue.push(keyed[struct{}]{key: uint64(s.symbols[i].rank)<<32 | uint64(i)})
		}
	}
	for i := range s.symbols {
		if push(int32(i)); i%bpePoll == bpePoll-1 && !e.goOn(bpePoll) {
			return
		}
	}
	for len(s.queue) > 0 {
		top := s.queue.pop().key
		i := int32(uint32(top))
		if s.symbols[i].rank != uint32(top>>32) {
			continue
		}
		b.merge(s, i)
		push(s.symbols[i].prev)
		push(i)
		if !e.goOn(1) {
			return
		}
	}
}

// merge joins symbol i with the next one.
func (b *bpe) merge(s *bpeScratch, i int32) {
	x := &s.symbols[i]
	right := &s.symbols[x.next]
	x.id = x.joined
	right.rank = noMerge
	if x.next = right.next; x.next >= 0 {
		s.symbols[x.next].prev = i
		x.rank, x.joined = b.merges.of(x.id, s.symbols[x.next].id)
	} else {
		x.rank = noMerge
	}
	if x.prev >= 0 {
		left := &s.symbols[x.prev]
		left.rank, left.joined = b.merges.of(left.id, x.id)
	}
}

// emit appends the ids of a piece's symbols, unless they are not joined to the end. One that is no token is spelled
// in bytes, and a byte that has no token is unknown.
func (b *bpe) emit(e *encoding, s *bpeScratch, piece string) {
	if e.err != nil {
		return
	}
	for i := int32(0); i >= 0; i = s.symbols[i].next {
		x := &s.symbols[i]
		if x.id >= 0 && int(x.id) < len(b.v.flags) && b.v.flags[x.id]&bpeReserved == 0 {
			e.ids = append(e.ids, x.id)
			continue
		}
		end := int32(len(piece))
		if x.next >= 0 {
			end = s.symbols[x.next].at
		}
		for _, c := range []byte(piece[x.at:end]) {
			if id := b.bytes[c]; id >= 0 {
				e.ids = append(e.ids, id)
			} else if b.unk >= 0 {
				e.ids = append(e.ids, b.unk)
			}
		}
	}
}

func (b *bpe) decode(text []byte, id int32) []byte {
	switch piece := b.v.bytes(id); {
	case b.escape:
		return append(text, bytes.ReplaceAll(piece, []byte(spmSpace), []byte(" "))...)
	case b.raw:
		return append(text, piece...)
	default:
		return appendUnspelled(text, piece)
	}
}

// Merges yields what joins, in order of rank, as the vocabulary writes it; nothing if t is no BPE by merges.
func (t *Tokenizer) Merges() iter.Seq2[string, string] {
	return func(yield func(left, right string) bool) {
		b, ok := t.codec.(*bpe)
		if !ok {
			return
		}
		for _, slot := range b.merges.order() {
			key := b.merges.keys[slot]
			if !yield(b.text(int32(key>>32)), b.text(int32(uint32(key)))) {
				return
			}
		}
	}
}

// text is that of a symbol.
func (b *bpe) text(symbol int32) string {
	if n := int32(len(b.v.flags)); symbol >= n {
		return string(b.extra.bytes(symbol - n))
	}
	return string(b.v.bytes(symbol))
}
