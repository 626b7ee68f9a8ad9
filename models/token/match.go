package token

import (
	"bytes"
	"slices"
	"sort"
)

// matcher finds tokens spelled out in text. At one place the longest wins, and of places the leftmost.
type matcher struct {
	ids   []int32 // sorted by text
	first [256]bool
}

// newMatcher takes the tokens that have one of the flags want and none of the flags but.
func newMatcher(v *vocab, want, but uint8) matcher {
	var m matcher
	for id, flags := range v.flags {
		if text := v.bytes(int32(id)); flags&want != 0 && flags&but == 0 && len(text) > 0 {
			m.ids = append(m.ids, int32(id))
			m.first[text[0]] = true
		}
	}
	slices.SortFunc(m.ids, func(a, b int32) int { return bytes.Compare(v.bytes(a), v.bytes(b)) })
	return m
}

// find returns where the first token in text begins, and its id: len(text) and -1 if there is none.
func (m *matcher) find(v *vocab, text string) (at int, id int32) {
	for at := range len(text) {
		if m.first[text[at]] {
			if id := m.longest(v, text[at:]); id >= 0 {
				return at, id
			}
		}
	}
	return len(text), -1
}

// longest returns the longest token that text begins with, -1 if there is none.
func (m *matcher) longest(v *vocab, text string) int32 {
	best := int32(-1)
	m.each(v, text, func(id int32, _ int) { best = id })
	return best
}

// each calls yield for every token that text begins with, and its size, the shortest first. It narrows the sorted ids
// byte by byte to those that share text's beginning; one that ends there sorts before those that go on.
func (m *matcher) each(v *vocab, text string, yield func(id int32, size int)) {
	if text == "" || !m.first[text[0]] {
		return
	}
	ids := m.ids
	for n := range len(text) {
		from := sort.Search(len(ids), func(i int) bool { return v.bytes(ids[i])[n] >= text[n] })
		ids = ids[from:]
		to := sort.Search(len(ids), func(i int) bool { return v.bytes(ids[i])[n] > text[n] })
		if ids = ids[:to]; len(ids) == 0 {
			break
		}
		if len(v.bytes(ids[0])) == n+1 {
			yield(ids[0], n+1)
			ids = ids[1:]
		}
	}
}
