package safetensors

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep values may be nested that are skipped.
const maxDepth = 32

// scanner reads JSON from valid UTF-8, value by value, and keeps nothing.
type scanner struct {
	text []byte
	pos  int
}

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// next is the byte that follows, after space; 0 at the end.
func (s *scanner) next() byte {
	s.space()
	if s.pos == len(s.text) {
		return 0
	}
	return s.text[s.pos]
}

func (s *scanner) accept(c byte) bool {
	if s.next() != c || s.pos == len(s.text) {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) expect(c byte) error {
	if s.accept(c) {
		return nil
	}
	if s.pos == len(s.text) {
		return fmt.Errorf("ends where a %c should follow", c)
	}
	return fmt.Errorf("has %q at byte %d, want %c", s.text[s.pos], s.pos, c)
}

// members reads an object and calls f after each key and its colon; f reads the value. The key is as in the text, with
// its escapes.
func (s *scanner) members(f func(key span) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	if s.accept('}') {
		return nil
	}
	for {
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := f(key); err != nil {
			return err
		}
		if s.accept('}') {
			return nil
		}
		if err := s.expect(','); err != nil {
			return err
		}
	}
}

// elements reads an array and calls f where an element follows, which f reads.
func (s *scanner) elements(f func() error) error {
	if err := s.expect('['); err != nil {
		return err
	}
	if s.accept(']') {
		return nil
	}
	for {
		if err := f(); err != nil {
			return err
		}
		if s.accept(']') {
			return nil
		}
		if err := s.expect(','); err != nil {
			return err
		}
	}
}

// span is a string in the text: what is between its quotes.
type span struct{ at, len uint32 }

func (p span) of(text []byte) []byte { return text[p.at : p.at+p.len] }

// str reads a string and checks it; it may have escapes.
func (s *scanner) str() (span, error) {
	if err := s.expect('"'); err != nil {
		return span{}, err
	}
	from := s.pos
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		switch {
		case c == '"':
			s.pos++
			return span{uint32(from), uint32(s.pos - 1 - from)}, nil
		case c < ' ':
			return span{}, fmt.Errorf("has the control character %#x in a string at byte %d", c, s.pos)
		case c == '\\':
			_, n := escape(s.text[s.pos:])
			if n == 0 {
				return span{}, fmt.Errorf("has an unknown escape at byte %d", s.pos)
			}
			s.pos += n
		default:
			s.pos++
		}
	}
	return span{}, errors.New("ends inside a string")
}

// escapes are those of one letter.
var escapes = map[byte]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escape reads an escape and returns how many bytes it has; 0 if it is none.
func escape(text []byte) (r rune, n int) {
	if len(text) < 2 {
		return 0, 0
	}
	if text[1] != 'u' {
		r, ok := escapes[text[1]]
		if !ok {
			return 0, 0
		}
		return r, 2
	}
	high, ok := hex4(text)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(high) {
		return high, 6
	}
	low, ok := hex4(text[6:])
	if r = utf16.DecodeRune(high, low); !ok || r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}

// hex4 reads \u and four digits.
func hex4(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(v), err == nil && text[2] != '+'
}

// unescape decodes a string that str has checked, in its own place: what it means is never longer than what is written.
func unescape(text []byte) []byte {
	n := 0
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			text[n] = text[i]
			n, i = n+1, i+1
			continue
		}
		r, size := escape(text[i:])
		n += utf8.EncodeRune(text[n:n+utf8.RuneLen(r)], r)
		i += size
	}
	return text[:n]
}

// number reads an integer that is not negative.
func (s *scanner) number() (uint64, error) {
	s.space()
	from := s.pos
	for s.pos < len(s.text) && '0' <= s.text[s.pos] && s.text[s.pos] <= '9' {
		s.pos++
	}
	digits := s.text[from:s.pos]
	if len(digits) == 0 || digits[0] == '0' && len(digits) > 1 {
		return 0, fmt.Errorf("has no whole number at byte %d, where one is wanted", from)
	}
	if s.pos < len(s.text) && (s.text[s.pos] == '.' || s.text[s.pos] == 'e' || s.text[s.pos] == 'E') {
		return 0, fmt.Errorf("has a fraction at byte %d, want a whole number", from)
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("has the number %s at byte %d, which has more than 64 bits", clip(string(digits)), from)
	}
	return n, nil
}

// skip reads past a value of any kind.
func (s *scanner) skip(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("is nested more than %d deep at byte %d", maxDepth, s.pos)
	}
	switch c := s.next(); {
	case c == '{':
		return s.members(func(span) error { return s.skip(depth + 1) })
	case c == '[':
		return s.elements(func() error { return s.skip(depth + 1) })
	case c == '"':
		_, err := s.str()
		return err
	}
	from := s.pos
	for s.pos < len(s.text) && isWord(s.text[s.pos]) {
		s.pos++
	}
	word := string(s.text[from:s.pos])
	if word == "true" || word == "false" || word == "null" {
		return nil
	}
	if _, err := strconv.ParseFloat(word, 64); err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("has no value at byte %d, where one is wanted", from)
	}
	return nil
}

// isWord tells whether c may be in a number or one of the words true, false and null.
func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.' || c == 'E'
}

// end insists that nothing but space follows.
func (s *scanner) end() error {
	if s.next(); s.pos < len(s.text) {
		return fmt.Errorf("has %q at byte %d, after its end", s.text[s.pos], s.pos)
	}
	return nil
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
