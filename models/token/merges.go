package token

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"math/bits"
	"slices"
)

// merges says which neighbouring symbols of BPE join, into what and how soon: a hash table in two flat slices.
type merges struct {
	keys []uint64 // left<<32 | right; noPair is empty
	vals []uint64 // rank<<32 | symbol
	n    int
}

const noPair = 1<<64 - 1

// newMerges has room for n merges.
func newMerges(n int) merges {
	size := 1 << bits.Len(uint(n+n/3))
	m := merges{keys: make([]uint64, size), vals: make([]uint64, size)}
	for i := range m.keys {
		m.keys[i] = noPair
	}
	return m
}

func (m *merges) slot(key uint64) uint64 {
	return (key * 0x9E3779B97F4A7C15) >> (64 - uint(bits.Len(uint(len(m.keys)-1))))
}

// add adds a merge unless the pair has one already.
func (m *merges) add(left, right int32, rank uint32, symbol int32) {
	if 4*m.n >= 3*len(m.keys) {
		bigger := newMerges(2 * m.n)
		for i, key := range m.keys {
			if key != noPair {
				bigger.put(key, m.vals[i])
			}
		}
		*m = bigger
	}
	m.put(uint64(uint32(left))<<32|uint64(uint32(right)), uint64(rank)<<32|uint64(uint32(symbol)))
}

func (m *merges) put(key, val uint64) {
	i := m.slot(key)
	for ; m.keys[i] != noPair; i = (i + 1) & uint64(len(m.keys)-1) {
		if m.keys[i] == key {
			return
		}
	}
	m.keys[i], m.vals[i] = key, val
	m.n++
}

// noMerge is the rank of a pair that does not join. It is larger than that of any merge.
const noMerge = 1<<32 - 1

// of is the rank and the symbol of a pair.
func (m *merges) of(left, right int32) (rank uint32, symbol int32) {
	if left < 0 || right < 0 {
		return noMerge, -1
	}
	key := uint64(uint32(left))<<32 | uint64(uint32(right))
	for i := m.slot(key); ; i = (i + 1) & uint64(len(m.keys)-1) {
		switch m.keys[i] {
		case key:
			return uint32(m.vals[i] >> 32), int32(uint32(m.vals[i]))
		case noPair:
			return noMerge, -1
		}
	}
}

// readMerges reads n merges in order of rank, two texts with a space between. A text that is no token is a symbol all
// the same, numbered from the last token on; extra has those.
func readMerges(v *vocab, n int, texts iter.Seq[[]byte]) (m merges, extra *vocab, err error) {
	m, extra = newMerges(n), newVocab(0, 0)
	rank := uint32(0)
	for merge := range texts {
		at := -1
		if len(merge) > 1 {
			at = bytes.IndexByte(merge[1:], ' ') + 1 // the text on the left may begin with a space
		}
		if at <= 0 || at == len(merge)-1 {
			return m, nil, fmt.Errorf("merge %d is %.40q, want two texts with a space between", rank, merge)
		}
		if err := m.join(v, extra, merge[:at], merge[at+1:], rank); err != nil {
			return m, nil, err
		}
		rank++
	}
	return m, extra, nil
}

// join adds the merge of two texts.
func (m *merges) join(v, extra *vocab, left, right []byte, rank uint32) error {
	if len(left) == 0 || len(right) == 0 {
		return fmt.Errorf("merge %d joins %.40q and %.40q, want two texts", rank, left, right)
	}
	if len(v.flags)+len(extra.flags) > maxTokens {
		return fmt.Errorf("merge %d: got more than %d texts", rank, maxTokens)
	}
	var ids [3]int32
	for i, text := range [][]byte{left, right, slices.Concat(left, right)} {
		id := v.find(text)
		if id < 0 {
			if id = extra.find(text); id < 0 {
				id = int32(len(extra.flags))
				extra.append(text, 0, normal)
				extra.insert(id)
			}
			id += int32(len(v.flags))
		}
		ids[i] = id
	}
	m.add(ids[0], ids[1], rank, ids[2])
	return nil
}

// order is the slots that have a merge, by rank, and by slot where ranks are equal.
func (m *merges) order() []int {
	slots := make([]int, 0, m.n)
	for i, key := range m.keys {
		if key != noPair {
			slots = append(slots, i)
		}
	}
	slices.SortStableFunc(slots, func(a, b int) int { return cmp.Compare(m.vals[a]>>32, m.vals[b]>>32) })
	return slots
}
