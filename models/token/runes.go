package token

import (
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is what a pre-tokenizer asks about a character, one bit each. A character has one of the categories and may
// be white space besides. What is unassigned has none.
type class uint8

const (
	isLetter  class = 1 << iota // \p{L}
	isNumber                    // \p{N}
	isMark                      // \p{M}
	isPunct                     // \p{P}
	isSymbol                    // \p{S}
	isControl                   // \p{Cc}, \p{Cf} and \p{Co}
	isSpace                     // \s, that is White_Space
)

// classTable has the class of every character in pages of 256, of which most are alike.
type classTable struct {
	pages [][256]class
	index [(unicode.MaxRune + 1) >> 8]uint16
}

// late are letters and symbols of Unicode 15.1, which Go's tables do not have.
var late = []struct {
	from, to rune
	class    class
}{{0x2FFC, 0x2FFF, isSymbol}, {0x31EF, 0x31EF, isSymbol}, {0x2EBF0, 0x2EE5D, isLetter}}

// classes is built when a tokenizer first needs it.
var classes = sync.OnceValue(func() *classTable {
	all := make([]class, unicode.MaxRune+1)
	for _, t := range []struct {
		in    *unicode.RangeTable
		class class
	}{
		{unicode.L, isLetter}, {unicode.N, isNumber}, {unicode.M, isMark}, {unicode.P, isPunct}, {unicode.S, isSymbol},
		{unicode.Cc, isControl}, {unicode.Cf, isControl}, {unicode.Co, isControl}, {unicode.White_Space, isSpace},
	} {
		for _, r := range t.in.R16 {
			for c := uint32(r.Lo); c <= uint32(r.Hi); c += uint32(r.Stride) {
				all[c] |= t.class
			}
		}
		for _, r := range t.in.R32 {
			for c := r.Lo; c <= r.Hi; c += r.Stride {
				all[c] |= t.class
			}
		}
	}
	for _, l := range late {
		for c := l.from; c <= l.to; c++ {
			all[c] = l.class
		}
	}
	table := &classTable{}
	for i := range table.index {
		page := [256]class(all[i<<8:])
		at := slices.Index(table.pages, page)
		if at < 0 {
			at = len(table.pages)
			table.pages = append(table.pages, page)
		}
		table.index[i] = uint16(at)
	}
	return table
})

func (t *classTable) of(r rune) class { return t.pages[t.index[r>>8]][r&0xFF] }

// text is what a pre-tokenizer reads: UTF-8, in which a byte that begins no character counts as U+FFFD, a symbol.
// Places are byte offsets. It reads no further than its end, which is the end of what an earlier stage cut off.
type text struct {
	s     string
	table *classTable
	ascii *[256]class

	// What is known already, so that no row is read again for each of its pieces:
	pending  int // characters of a row that are left to cut into threes
	lineless int // white space goes on to this many bytes before the end and has no line end; -1: nothing is known
}

func newText(s string) text {
	t := classes()
	return text{s: s, table: t, ascii: &t.pages[t.index[0]], lineless: -1}
}

// set makes t the text s.
func (t *text) set(s string) { t.s, t.pending, t.lineless = s, 0, -1 }

// at is the character at i and its size: -1, no class and 0 at the end.
func (t *text) at(i int) (r rune, c class, size int) {
	if i >= len(t.s) {
		return -1, 0, 0
	}
	if b := t.s[i]; b < utf8.RuneSelf {
		return rune(b), t.ascii[b], 1
	}
	r, size = utf8.DecodeRuneInString(t.s[i:])
	return r, t.table.of(r), size
}

// run is where the characters of the classes in set that begin at i end.
func (t *text) run(i int, set class) int {
	for i < len(t.s) {
		if b := t.s[i]; b < utf8.RuneSelf {
			if t.ascii[b]&set == 0 {
				break
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(t.s[i:])
		if t.table.of(r)&set == 0 {
			break
		}
		i += size
	}
	return i
}

// runNot is where the characters of none of the classes in set that begin at i end.
func (t *text) runNot(i int, set class) int {
	for i < len(t.s) {
		if b := t.s[i]; b < utf8.RuneSelf {
			if t.ascii[b]&set != 0 {
				break
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(t.s[i:])
		if t.table.of(r)&set != 0 {
			break
		}
		i += size
	}
	return i
}

// runIn is where the characters in r that begin at i end.
func (t *text) runIn(i int, in ranges) int {
	for i < len(t.s) {
		r, size := utf8.DecodeRuneInString(t.s[i:])
		if !in.has(r) {
			break
		}
		i += size
	}
	return i
}

// skip is where the bytes in set that begin at i end.
func (t *text) skip(i int, set string) int {
	for i < len(t.s) && indexByte(set, t.s[i]) {
		i++
	}
	return i
}

func indexByte(set string, b byte) bool {
	for i := range len(set) {
		if set[i] == b {
			return true
		}
	}
	return false
}

// ranges is a set of characters: pairs of a first and a last one, in order.
type ranges []rune

func (s ranges) has(r rune) bool {
	i, found := slices.BinarySearch(s, r)
	return found || i&1 == 1
}
