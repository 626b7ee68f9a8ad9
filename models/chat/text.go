package chat

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

func formatInt(i int64) string { return strconv.FormatInt(i, 10) }

// formatFloat is the shortest text that reads back as f, as Python's repr writes it.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	if exp, _ := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:]); f != 0 && (exp < -4 || exp >= 16) {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// text is Python's str(v): what {{ v }} puts out.
func (r *run) text(v Value) string {
	switch v := v.(type) {
	case string:
		return v
	case *undefined:
		return ""
	}
	var b strings.Builder
	r.repr(&b, v)
	return b.String()
}

// repr writes Python's repr(v): texts have quotes.
func (r *run) repr(b *strings.Builder, v Value) {
	defer r.deeper()()
	start := b.Len()
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int64:
		b.WriteString(formatInt(v))
	case float64:
		b.WriteString(formatFloat(v))
	case string:
		quote(b, v)
	case *List:
		r.reprList(b, v)
		return
	case *Dict:
		b.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			r.repr(b, k)
			b.WriteString(": ")
			r.repr(b, v.vals[i])
		}
		b.WriteByte('}')
		return
	case *undefined:
		b.WriteString("Undefined")
	case *function:
		fmt.Fprintf(b, "<function %s>", v.name)
	case *object:
		fmt.Fprintf(b, "<%s>", v.name)
	}
	r.spend(b.Len() - start)
}

func (r *run) reprList(b *strings.Builder, v *List) {
	open, end := "[", "]"
	switch {
	case strings.HasPrefix(v.made, "range"):
		b.WriteString(v.made)
		return
	case v.made != "":
		open, end = v.made+"([", "])"
	case v.Tuple:
		open, end = "(", ")"
		if len(v.Items) == 1 {
			end = ",)"
		}
	}
	b.WriteString(open)
	for i, item := range v.Items {
		if i > 0 {
			b.WriteString(", ")
		}
		r.repr(b, item)
	}
	b.WriteString(end)
}

// quote writes s as Python's repr does.
func quote(b *strings.Builder, s string) {
	mark := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		mark = '"'
	}
	b.WriteRune(mark)
	for _, c := range s {
		switch {
		case c == mark || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(b, `\u%04x`, c)
		default:
			fmt.Fprintf(b, `\U%08x`, c)
		}
	}
	b.WriteRune(mark)
}

// jsonStyle is how tojson writes, as Python's json.dumps.
type jsonStyle struct {
	ascii, sorted   bool
	indent          string
	lines           bool // one entry a line, indented
	itemSep, keySep string
}

// json writes v as JSON at a depth of entries.
func (r *run) json(b *strings.Builder, v Value, s *jsonStyle, depth int) {
	defer r.deeper()()
	start := b.Len()
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case int64:
		b.WriteString(formatInt(v))
	case float64:
		b.WriteString(jsonFloat(v))
	case string:
		jsonString(b, v, s.ascii)
	case *List:
		r.jsonEntries(b, s, depth, '[', ']', len(v.Items), func(i int) { r.json(b, v.Items[i], s, depth+1) })
		return
	case *Dict:
		order := make([]int, v.Len())
		for i := range order {
			order[i] = i
		}
		if s.sorted {
			r.sort(len(order), func(i int) Value { return v.keys[i] }, order, false)
		}
		r.jsonEntries(b, s, depth, '{', '}', v.Len(), func(i int) {
			jsonString(b, r.jsonKey(v.keys[order[i]]), s.ascii)
			b.WriteString(s.keySep)
			r.json(b, v.vals[order[i]], s, depth+1)
		})
		return
	default:
		fail("Object of type %s is not JSON serializable", typeName(v))
	}
	r.spend(b.Len() - start)
}

func (r *run) jsonEntries(b *strings.Builder, s *jsonStyle, depth int, open, end byte, n int, entry func(int)) {
	b.WriteByte(open)
	line := func(depth int) {
		if s.lines {
			r.spend(depth * len(s.indent))
			b.WriteByte('\n')
			for range depth {
				b.WriteString(s.indent)
			}
		}
	}
	for i := range n {
		if i > 0 {
			b.WriteString(s.itemSep)
		}
		line(depth + 1)
		entry(i)
	}
	if n > 0 {
		line(depth)
	}
	b.WriteByte(end)
}

func (r *run) jsonKey(k Value) string {
	switch k := k.(type) {
	case string:
		return k
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(k)
	case int64:
		return formatInt(k)
	case float64:
		return jsonFloat(k)
	}
	fail("keys must be str, int, float, bool or None, not %s", typeName(k))
	return ""
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return formatFloat(f)
}

func jsonString(b *strings.Builder, s string, ascii bool) {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}
	b.WriteByte('"')
	for _, c := range s {
		switch esc, ok := short[c]; {
		case ok:
			b.WriteString(esc)
		case c < 0x20 || ascii && c > 0x7e && c < 0x10000:
			fmt.Fprintf(b, `\u%04x`, c)
		case ascii && c >= 0x10000:
			hi, lo := utf16.EncodeRune(c)
			fmt.Fprintf(b, `\u%04x\u%04x`, hi, lo)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
}

// title is Python's str.title: a letter after anything but a letter is a capital.
func title(s string, inWord func(rune) bool) string {
	var b strings.Builder
	inside := false
	for _, c := range s {
		if inside {
			b.WriteRune(unicode.ToLower(c))
		} else {
			b.WriteRune(unicode.ToTitle(c))
		}
		inside = inWord(c)
	}
	return b.String()
}

func capitalize(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToTitle(c)) + strings.ToLower(s[n:])
}
