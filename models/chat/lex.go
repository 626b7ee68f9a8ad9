package chat

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is what a token is.
type kind int

const (
	kindEnd    kind = iota // of the source
	kindText               // outside tags
	kindOpen               // {{
	kindClose              // }}
	kindBegin              // {%
	kindFinish             // %}
	kindName
	kindString
	kindInt
	kindFloat
	kindOp
)

// token is a piece of the source.
type token struct {
	kind kind
	text string // of a string: what it stands for
	line int
}

func (t token) operator(ops ...string) bool { return t.kind == kindOp && slices.Contains(ops, t.text) }

// lexer cuts a source into tokens by Jinja's rules, with trim_blocks and lstrip_blocks on: the newline after a block
// tag and the spaces before one that begins a line are not part of the text.
type lexer struct {
	src    string
	at     int
	line   int
	starts bool // at is the start of a line
	tokens []token
}

// maxSource bounds a template's source, in bytes; those of the models in use have up to 15,000.
const maxSource = 256 << 10

func lex(src string) []token {
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	if len(src) > maxSource {
		fail("the template has %d bytes, more than the %d allowed", len(src), maxSource)
	}
	l := &lexer{src: strings.TrimSuffix(src, "\n"), line: 1, starts: true}
	for l.at < len(l.src) {
		l.text()
	}
	return append(l.tokens, token{kindEnd, "end of template", l.line})
}

func (l *lexer) fail(line int, format string, args ...any) { failAt(line, format, args...) }

func (l *lexer) add(k kind, text string) { l.tokens = append(l.tokens, token{k, text, l.line}) }

// pass moves past n bytes.
func (l *lexer) pass(n int) {
	l.line += strings.Count(l.src[l.at:l.at+n], "\n")
	l.at += n
	l.starts = l.at > 0 && l.src[l.at-1] == '\n' || l.at == 0
}

// text takes the text up to the next tag, and the tag.
func (l *lexer) text() {
	rest := l.src[l.at:]
	end := -1
	for i := 0; i+1 < len(rest); i++ {
		if rest[i] == '{' && (rest[i+1] == '{' || rest[i+1] == '%' || rest[i+1] == '#') {
			end = i
			break
		}
	}
	if end < 0 {
		l.add(kindText, rest)
		l.pass(len(rest))
		return
	}
	text, tag := rest[:end], rest[end+1]
	mark := byte(0)
	if end+2 < len(rest) && (rest[end+2] == '-' || rest[end+2] == '+') {
		mark = rest[end+2]
	}
	if mark == '+' && tag == '{' { // {{+ x is a sign
		mark = 0
	}
	switch {
	case mark == '-':
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	case mark == 0 && tag != '{':
		line := text[strings.LastIndexByte(text, '\n')+1:]
		if (len(line) < len(text) || l.starts) && strings.TrimSpace(line) == "" {
			text = text[:len(text)-len(line)]
		}
	}
	if text != "" {
		l.add(kindText, text)
	}
	l.pass(end + 2)
	if mark != 0 {
		l.pass(1)
	}
	switch tag {
	case '#':
		l.comment()
	case '{':
		l.add(kindOpen, "{{")
		l.inside("}}", kindClose)
	case '%':
		if !l.raw() {
			l.add(kindBegin, "{%")
			l.inside("%}", kindFinish)
		}
	}
}

func (l *lexer) comment() {
	n := strings.Index(l.src[l.at:], "#}")
	if n < 0 {
		l.fail(l.line, "the comment {# has no end #}")
	}
	strip, keep := n > 0 && l.src[l.at+n-1] == '-', n > 0 && l.src[l.at+n-1] == '+'
	l.pass(n + 2)
	l.after(strip, keep)
}

// after skips what the end of a tag takes of the text behind it.
func (l *lexer) after(strip, keep bool) {
	rest := l.src[l.at:]
	switch {
	case strip:
		l.pass(len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace)))
	case !keep && strings.HasPrefix(rest, "\n"):
		l.pass(1)
	}
}

// word cuts a tag of one word, {% word %}, off s, whose {% is gone.
func word(s, name string) (rest string, strip, ok bool) {
	s = strings.TrimLeftFunc(s, unicode.IsSpace)
	if s, ok = strings.CutPrefix(s, name); !ok {
		return "", false, false
	}
	s = strings.TrimLeftFunc(s, unicode.IsSpace)
	s, strip = strings.CutPrefix(s, "-")
	s, ok = strings.CutPrefix(s, "%}")
	return s, strip, ok
}

// raw takes {% raw %} … {% endraw %}, whose {% is passed, as text.
func (l *lexer) raw() bool {
	rest, strip, ok := word(l.src[l.at:], "raw")
	if !ok {
		return false
	}
	l.pass(len(l.src) - l.at - len(rest))
	l.after(strip, false)
	for i := l.at; ; i += 2 {
		n := strings.Index(l.src[i:], "{%")
		if n < 0 {
			l.fail(l.line, "the block raw has no {%% endraw %%}")
		}
		i += n
		tag, back := strings.CutPrefix(l.src[i+2:], "-")
		rest, strip, ok := word(tag, "endraw")
		if !ok {
			continue
		}
		text := l.src[l.at:i]
		if back {
			text = strings.TrimRightFunc(text, unicode.IsSpace)
		}
		l.add(kindText, text)
		l.pass(len(l.src) - l.at - len(rest))
		l.after(strip, false)
		return true
	}
}

var operators = []string{"==", "!=", "<=", ">=", "**", "//", "+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")",
	"[", "]", "{", "}", ".", ":", ",", "|", ";"}

// inside cuts up a tag to its end.
func (l *lexer) inside(end string, k kind) {
	begin, open := l.line, 0
	for l.at < len(l.src) {
		rest := l.src[l.at:]
		if open == 0 {
			if strings.HasPrefix(rest, end) {
				l.add(k, end)
				l.pass(2)
				l.after(false, end == "}}")
				return
			}
			if strings.HasPrefix(rest, "-"+end) || end == "%}" && strings.HasPrefix(rest, "+"+end) {
				l.add(k, end)
				l.pass(3)
				l.after(rest[0] == '-', true)
				return
			}
		}
		c, n := utf8.DecodeRuneInString(rest)
		switch {
		case unicode.IsSpace(c):
			l.pass(n)
		case c == '\'' || c == '"':
			l.string(byte(c))
		case c >= '0' && c <= '9':
			l.number()
		case c == '_' || unicode.IsLetter(c):
			n := strings.IndexFunc(rest, func(c rune) bool {
				return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
			})
			if n < 0 {
				n = len(rest)
			}
			l.add(kindName, rest[:n])
			l.pass(n)
		default:
			open += l.operator(rest)
		}
	}
	l.fail(begin, "the tag has no end %s", end)
}

// operator takes one and returns by how much it changes the number of open brackets.
func (l *lexer) operator(rest string) int {
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		l.add(kindOp, op)
		l.pass(len(op))
		switch op {
		case "(", "[", "{":
			return 1
		case ")", "]", "}":
			return -1
		}
		return 0
	}
	c, _ := utf8.DecodeRuneInString(rest)
	l.fail(l.line, "unexpected character %q", c)
	return 0
}

func (l *lexer) number() {
	rest := l.src[l.at:]
	digits := func(i int) int {
		for i < len(rest) && (rest[i] >= '0' && rest[i] <= '9' || rest[i] == '_') {
			i++
		}
		return i
	}
	n, k := digits(0), kindInt
	if n+1 < len(rest) && rest[n] == '.' && rest[n+1] >= '0' && rest[n+1] <= '9' &&
		(len(l.tokens) == 0 || l.tokens[len(l.tokens)-1].text != ".") {
		n, k = digits(n+1), kindFloat
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		i := n + 1
		if i < len(rest) && (rest[i] == '+' || rest[i] == '-') {
			i++
		}
		if e := digits(i); e > i {
			n, k = e, kindFloat
		}
	}
	l.add(k, strings.ReplaceAll(rest[:n], "_", ""))
	l.pass(n)
}

// string takes a quoted text with Python's escapes.
func (l *lexer) string(mark byte) {
	rest := l.src[l.at+1:]
	var b strings.Builder
	for i := 0; i < len(rest); {
		c := rest[i]
		switch {
		case c == mark:
			l.add(kindString, b.String())
			l.pass(i + 2)
			return
		case c != '\\' || i+1 == len(rest):
			b.WriteByte(c)
			i++
		default:
			n, text := unescape(rest[i+1:])
			if n < 0 {
				l.fail(l.line, "damaged escape \\%c in a string", rest[i+1])
			}
			b.WriteString(text)
			i += 1 + n
		}
	}
	l.fail(l.line, "the string has no closing %c", mark)
}

// unescape reads an escape whose backslash is gone, and returns how long it is.
func unescape(s string) (int, string) {
	simple := map[byte]string{'\n': "", '\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n",
		'r': "\r", 't': "\t", 'v': "\v"}
	if text, ok := simple[s[0]]; ok {
		return 1, text
	}
	if s[0] >= '0' && s[0] <= '7' {
		n := 1
		for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			n++
		}
		v, _ := strconv.ParseUint(s[:n], 8, 32)
		return n, string(rune(v))
	}
	if n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]; n > 0 {
		if len(s) < 1+n {
			return -1, ""
		}
		v, err := strconv.ParseUint(s[1:1+n], 16, 31)
		if err != nil {
			return -1, ""
		}
		return 1 + n, string(rune(v))
	}
	_, n := utf8.DecodeRuneInString(s)
	return n, `\` + s[:n]
}
