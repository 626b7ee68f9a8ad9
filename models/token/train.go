package token

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Training says how [Train] learns.
type Training struct {
	Size     int          // tokens in all: special ones, 256 bytes, and one for each merge
	Special  []string     // control tokens, which get the first ids; texts are cut at them
	Pre      string       // the pre-tokenizer, one of PreTokenizers; "" is gpt-2
	MinCount int          // a pair that is rarer is not merged; less than 1 counts as 1
	Stop     func() error // asked every few milliseconds; an error ends the training; may be nil
}

// Train learns a byte-level BPE from texts: of all pairs of neighbouring symbols inside the pieces that the
// pre-tokenizer cuts off, the most frequent becomes a symbol, the pair of the greatest bytes if several are, until
// there are enough (Sennrich, Haddow and Birch, "Neural machine translation of rare words with subword units"). The
// result depends on nothing but texts and settings.
func Train(texts iter.Seq[string], t Training) (*Tokenizer, error) {
	id := cmp.Or(t.Pre, "gpt-2")
	p, err := preTokenizer(id)
	if err != nil {
		return nil, fmt.Errorf("token: train: %w", err)
	}
	if p.raw {
		return nil, fmt.Errorf("token: train: the pre-tokenizer %s is not one of bytes; take gpt-2, say", id)
	}
	least := len(t.Special) + 256
	if t.Size < least || t.Size > maxTokens {
		return nil, fmt.Errorf("token: train: got a vocabulary of %d tokens, want %d to %d: %d special ones and 256 "+
			"bytes at least", t.Size, least, maxTokens, len(t.Special))
	}
	for i, text := range t.Special {
		if text == "" || slices.Contains(t.Special[:i], text) {
			return nil, fmt.Errorf("token: train: got the special token %q, want different texts", text)
		}
	}
	l := &learner{first: int32(len(t.Special)), pairs: map[uint64]*pair{}, stop: encoding{stop: t.Stop}}
	if err := l.read(texts, p, t.Special); err != nil {
		return nil, err
	}
	if err := l.learn(t.Size-least, max(1, int64(t.MinCount))); err != nil {
		return nil, err
	}
	return l.tokenizer(t.Special, p)
}

// learner is a training in progress. Symbols are the ids they will have; that of a byte follows the order of the
// characters that stand for bytes.
type learner struct {
	first int32 // the id of the first byte
	words []word
	texts [][]byte // of symbols, from first on
	made  []uint64 // the pairs merged, in order
	pairs map[uint64]*pair
	queue []*pair // a heap, the next to merge first
	stop  encoding
}

type word struct {
	symbols []int32
	count   int64
}

// pair is two neighbouring symbols, left<<32 | right.
type pair struct {
	key   uint64
	count int64
	queue int64   // count when it was put into the queue
	words []int32 // where it is or was
}

// read counts the words of texts, in the order in which they first come.
func (l *learner) read(texts iter.Seq[string], p pre, special []string) error {
	order := make([]int, 256)
	for b := range order {
		order[b] = b
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(byteRunes[a], byteRunes[b]) })
	var symbols [256]int32
	for i, b := range order {
		symbols[b] = l.first + int32(i)
		l.texts = append(l.texts, []byte{byte(b)})
	}
	special = slices.Clone(special)
	slices.SortStableFunc(special, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	counts := map[string]int{}
	cutter := newCutter(p.stages)
	for text := range texts {
		for text != "" {
			at, size := len(text), 0
			for _, s := range special {
				if i := strings.Index(text[:min(len(text), at+len(s)-1)], s); i >= 0 && i < at {
					at, size = i, len(s)
				}
			}
			cutter.cut(text[:at], func(piece string) bool {
				i, known := counts[piece]
				if !known {
					i = len(l.words)
					piece = strings.Clone(piece)
					counts[piece] = i
					w := word{symbols: make([]int32, len(piece))}
					for k := range len(piece) {
						w.symbols[k] = symbols[piece[k]]
					}
					l.words = append(l.words, w)
				}
				l.words[i].count++
				return l.stop.goOn(len(piece))
			})
			text = text[at+size:]
			if !l.stop.goOn(size + 1) {
				return l.stop.err
			}
		}
	}
	return nil
}

func keyOf(left, right int32) uint64 { return uint64(left)<<32 | uint64(right) }

// learn makes n symbols, or as many as there are pairs for.
func (l *learner) learn(n int, least int64) error {
	for i, w := range l.words {
		for k := 1; k < len(w.symbols); k++ {
			l.count(w.symbols[k-1], w.symbols[k], w.count, int32(i))
		}
		if !l.stop.goOn(8 * len(w.symbols)) {
			return l.stop.err
		}
	}
	for _, p := range l.pairs {
		p.queue = p.count
		l.queue = append(l.queue, p)
	}
	for i := len(l.queue)/2 - 1; i >= 0; i-- {
		l.down(i)
	}
	for len(l.made) < n && len(l.queue) > 0 {
		p := l.queue[0]
		if p.count != p.queue { // counts only fall while a pair is in the queue
			p.queue = p.count
			l.down(0)
			continue
		}
		if p.count < least {
			break
		}
		last := len(l.queue) - 1
		l.queue[0] = l.queue[last]
		l.queue = l.queue[:last]
		l.down(0)
		if err := l.merge(p); err != nil {
			return err
		}
	}
	return nil
}

// count adds n to the count of a pair, which is in word i.
func (l *learner) count(left, right int32, n int64, i int32) *pair {
	key := keyOf(left, right)
	p := l.pairs[key]
	if p == nil {
		p = &pair{key: key}
		l.pairs[key] = p
	}
	p.count += n
	if k := len(p.words); n > 0 && (k == 0 || p.words[k-1] != i) {
		p.words = append(p.words, i)
	}
	return p
}

// merge makes a symbol of p wherever it is.
func (l *learner) merge(p *pair) error {
	left, right := int32(p.key>>32), int32(uint32(p.key))
	symbol := l.first + int32(len(l.texts))
	l.texts = append(l.texts, slices.Concat(l.text(left), l.text(right)))
	l.made = append(l.made, p.key)
	var fresh []*pair
	for _, i := range p.words {
		w := &l.words[i]
		from := w.symbols
		to := from[:0]
		for k := 0; k < len(from); k++ {
			if k+1 == len(from) || from[k] != left || from[k+1] != right {
				to = append(to, from[k])
				continue
			}
			// The neighbour on the left may be the new symbol already: then its pair with left was counted at its turn.
			if len(to) > 0 {
				l.count(to[len(to)-1], left, -w.count, i)
				fresh = append(fresh, l.count(to[len(to)-1], symbol, w.count, i))
			}
			if k+2 < len(from) {
				l.count(right, from[k+2], -w.count, i)
				fresh = append(fresh, l.count(symbol, from[k+2], w.count, i))
			}
			to = append(to, symbol)
			k++
		}
		w.symbols = to
		if !l.stop.goOn(8 * len(from)) {
			return l.stop.err
		}
	}
	delete(l.pairs, p.key)
	for _, f := range fresh {
		if f.queue == 0 && f.count > 0 {
			f.queue = f.count
			l.push(f)
		}
	}
	return nil
}

func (l *learner) text(symbol int32) []byte { return l.texts[symbol-l.first] }

// before says whether p is merged before q.
func (l *learner) before(p, q *pair) bool {
	if p.queue != q.queue {
		return p.queue > q.queue
	}
	if c := bytes.Compare(l.text(int32(p.key>>32)), l.text(int32(q.key>>32))); c != 0 {
		return c > 0
	}
	return bytes.Compare(l.text(int32(uint32(p.key))), l.text(int32(uint32(q.key)))) > 0
}

func (l *learner) push(p *pair) {
	l.queue = append(l.queue, p)
	i := len(l.queue) - 1
	for ; i > 0 && l.before(p, l.queue[(i-1)/2]); i = (i - 1) / 2 {
		l.queue[i] = l.queue[(i-1)/2]
	}
	l.queue[i] = p
}

// down moves pair i of the heap down to where it belongs.
func (l *learner) down(i int) {
	h := l.queue
	if i >= len(h) {
		return
	}
	p := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && l.before(h[child+1], h[child]) {
			child++
		}
		if !l.before(h[child], p) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = p
}

// tokenizer is what was learned.
func (l *learner) tokenizer(special []string, p pre) (*Tokenizer, error) {
	v := newVocab(len(special)+len(l.texts), 0)
	for _, text := range special {
		v.append([]byte(text), 0, control)
	}
	var spelled []byte
	for _, text := range l.texts {
		spelled = appendSpelled(spelled[:0], string(text))
		v.append(spelled, 0, normal)
	}
	if err := v.buildIndex(); err != nil {
		return nil, fmt.Errorf("token: train: %w", err)
	}
	roles := noRoles
	for id, text := range special {
		if slices.Contains(hfEnds, text) && roles.eos < 0 {
			roles.eos = int32(id)
		}
	}
	s, err := readSpecials(silence{}, v, roles)
	if err != nil {
		return nil, err
	}
	b := &bpe{v: v, unk: -1, pre: p, extra: newVocab(0, 0), merges: newMerges(len(l.made))}
	for rank, key := range l.made {
		b.merges.add(int32(key>>32), int32(uint32(key)), uint32(rank), l.first+256+int32(rank))
	}
	b.prepare()
	return assemble(v, s, b), nil
}
