package token

import "unicode/utf8"

// A splitter is one stage of a pre-tokenizer: it returns the end of the first piece of t, which is not empty, and is
// asked again for the rest. Each does by hand, without going back, what a regular expression says in its comment;
// what the expression does not match is a piece, too. The expressions are those of llama.cpp's src/llama-vocab.cpp
// with the meaning that its src/unicode.cpp gives them.
type splitter func(t *text) int

// search makes a splitter of match, which returns the end of what it matches at a place, or the place itself.
// What is before the next match is one piece.
func search(match func(t *text, i int) int) splitter {
	return func(t *text) int {
		if end := match(t, 0); end > 0 {
			return end
		}
		_, _, i := t.at(0)
		for i < len(t.s) && match(t, i) == i {
			_, _, size := t.at(i)
			i += size
		}
		return i
	}
}

// gpt2 is 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+.
func gpt2(t *text) int {
	if end := contraction(t, 0, false); end > 0 {
		return end
	}
	i := 0
	if t.s[0] == ' ' && len(t.s) > 1 {
		i = 1
	}
	switch _, c, _ := t.at(i); {
	case c&isLetter != 0:
		return t.run(i, isLetter)
	case c&isNumber != 0:
		return t.run(i, isNumber)
	case c&isSpace == 0:
		return t.runNot(i, isSpace|isLetter|isNumber)
	}
	return spaces(t, 0)
}

// contraction is where one of 's 't 'm 'd 're 've 'll at i ends, or i; in capitals too if fold is set.
func contraction(t *text, i int, fold bool) int {
	if i+1 >= len(t.s) || t.s[i] != '\'' {
		return i
	}
	low := func(b byte) byte {
		if fold && 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		return b
	}
	first := low(t.s[i+1])
	if indexByte("stmd", first) {
		return i + 2
	}
	if i+2 < len(t.s) {
		second := low(t.s[i+2])
		if (first == 'r' || first == 'v') && second == 'e' || first == 'l' && second == 'l' {
			return i + 3
		}
	}
	return i
}

// spaces is \s+(?!\S)|\s+ at i: white space but for its last character, which belongs to what follows, if there is
// more than one and something follows.
func spaces(t *text, i int) int {
	end := t.run(i, isSpace)
	if end == i || end == len(t.s) {
		return end
	}
	_, size := utf8.DecodeLastRuneInString(t.s[i:end])
	if end-size == i {
		return end
	}
	return end - size
}

// lines is \s*[\r\n]+ at i: white space up to its last line end; i if it has none.
func lines(t *text, i int) int {
	if t.lineless >= 0 && len(t.s)-i > t.lineless {
		return i
	}
	all := t.run(i, isSpace)
	for end := all; end > i; end-- {
		if b := t.s[end-1]; b == '\r' || b == '\n' {
			return end
		}
	}
	t.lineless = len(t.s) - all
	return i
}

// words is the family of GPT-4's expression,
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|
//	\s+(?!\S)|\s+
//
// and what its members have instead.
type words struct {
	letters class  // \p{L}, or that and \p{M}
	others  class  // what the marks in a row are not: \s, \p{L}, \p{N} and perhaps \p{M}
	digits  int    // numbers in a piece; 0: all of a row
	tail    string // what may follow marks: line ends, and perhaps /
	before  bool   // contractions are pieces of their own
	after   bool   // contractions belong to the word before
	cased   bool   // a word ends before a capital after a small letter
	oneTail bool   // at most one character of tail follows
	spaces  func(t *text, i int) int
}

func (w words) splitter() splitter { return w.complete().next }

// complete fills in what a member does not name.
func (w words) complete() *words {
	if w.letters == 0 {
		w.letters = isLetter
	}
	if w.others == 0 {
		w.others = isSpace | isLetter | isNumber
	}
	if w.spaces == nil {
		w.spaces = spaces
	}
	return &w
}

func (w *words) next(t *text) int {
	if w.before {
		if end := contraction(t, 0, true); end > 0 {
			return end
		}
	}
	r, c, size := t.at(0)
	if end := w.word(t, r, c, size); end > 0 {
		if w.after {
			end = contraction(t, end, true)
		}
		return end
	}
	return w.rest(t, r, c, size)
}

// rest is next where r, of class c, begins neither a word nor a contraction.
func (w *words) rest(t *text, r rune, c class, size int) int {
	if c&isNumber != 0 {
		return numbers(t, 0, w.digits)
	}
	i := 0
	if r == ' ' {
		i = 1
	}
	if end := w.marks(t, i); end > i {
		return end
	}
	if end := lines(t, 0); end > 0 {
		return end
	}
	if end := w.spaces(t, 0); end > 0 {
		return end
	}
	return size
}

// numbers is the end of at most n numbers at i; of all in a row if n is 0.
func numbers(t *text, i, n int) int {
	if n == 0 {
		return t.run(i, isNumber)
	}
	for ; n > 0; n-- {
		_, c, size := t.at(i)
		if c&isNumber == 0 {
			break
		}
		i += size
	}
	return i
}

func (w *words) marks(t *text, i int) int {
	end := t.runNot(i, w.others)
	if end == i {
		return i
	}
	if w.oneTail {
		return min(t.skip(end, w.tail), end+1)
	}
	return t.skip(end, w.tail)
}

// word is the end of the word that r, of class c, begins, 0 if it begins none: letters, and perhaps one character
// before them that is no letter, number or line end.
func (w *words) word(t *text, r rune, c class, size int) int {
	lead := c&(isLetter|isNumber) == 0 && r != '\r' && r != '\n'
	if w.cased {
		return w.casedWord(t, lead, size)
	}
	if lead {
		if end := t.run(size, w.letters); end > size {
			return end
		}
	}
	return t.run(0, w.letters)
}

// casedWord is u*l+|u+l* with, if lead is set, or without the first character, in this order: u is a letter but a-z,
// l a letter but A-Z.
func (w *words) casedWord(t *text, lead bool, size int) int {
	from := []int{size, 0}
	if !lead {
		from = from[1:]
	}
	for _, i := range from {
		if end := w.lowered(t, i); end > i {
			return end
		}
	}
	for _, i := range from {
		if end := w.uppers(t, i); end > i {
			return w.lowers(t, end)
		}
	}
	return 0
}

// lowered is u*l+ at i.
func (w *words) lowered(t *text, i int) int {
	end := w.uppers(t, i)
	if to := w.lowers(t, end); to > end {
		return to
	}
	for end > i && t.s[end-1] < utf8.RuneSelf {
		end-- // a capital
	}
	return end
}

func (w *words) uppers(t *text, i int) int {
	for i < len(t.s) {
		r, c, size := t.at(i)
		if c&w.letters == 0 || 'a' <= r && r <= 'z' {
			break
		}
		i += size
	}
	return i
}

func (w *words) lowers(t *text, i int) int {
	for i < len(t.s) {
		r, c, size := t.at(i)
		if c&w.letters == 0 || 'A' <= r && r <= 'Z' {
			break
		}
		i += size
	}
	return i
}

// halvings is jais-2's \s{512}(?!\S)|\s{256}(?!\S)|…|\s{4}(?!\S)|\s{1,2}(?!\S)|\s.
func halvings(t *text, i int) int {
	var ends [513]int // after n characters
	n := 0
	end := i
	for ; n < 512; n++ {
		_, c, size := t.at(end)
		if c&isSpace == 0 {
			break
		}
		end += size
		ends[n+1] = end
	}
	if n == 0 {
		return i
	}
	// Something other than white space must not follow what is taken, unless that is one character.
	if _, c, size := t.at(end); size > 0 && c&isSpace == 0 {
		n = max(n-1, 1)
	}
	for _, size := range []int{512, 256, 128, 64, 32, 16, 8, 4, 2, 1} {
		if size <= n {
			return ends[size]
		}
	}
	return i
}
