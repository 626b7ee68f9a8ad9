package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// formatFilter is text | format(…), the same as text % (…).
func formatFilter(r *run, v Value, c *call) Value {
	if len(c.names) == 0 {
		return r.percent(r.text(v), c.pos)
	}
	d := NewDict()
	for i, name := range c.names {
		d.put(name, c.named[i])
	}
	return r.percent(r.text(v), []Value{d})
}

// percent is Python's % on texts: %s, %r, %d, %i, %f, %g, %e, %x, %o, %%, with flags, width and precision, and
// %(name)s of a dictionary.
func (r *run) percent(format string, args []Value) string {
	var b strings.Builder
	var named Value
	if len(args) == 1 {
		named = args[0]
	}
	used := 0
	for i := 0; i < len(format); i++ {
		n := strings.IndexByte(format[i:], '%')
		if n < 0 {
			b.WriteString(format[i:])
			break
		}
		b.WriteString(format[i : i+n])
		i += n + 1
		var v Value = absent{}
		if strings.HasPrefix(format[min(i, len(format)):], "(") {
			end := strings.IndexByte(format[i:], ')')
			d, ok := named.(*Dict)
			if end < 0 || !ok {
				fail("format: %%(name) needs a closing bracket and a dictionary of values")
			}
			if v, ok = d.get(format[i+1 : i+end]); !ok {
				fail("format: no value named %s", format[i+1:i+end])
			}
			i, used = i+end+1, 1
		}
		spec := i
		for i < len(format) && strings.IndexByte("-+ #0123456789.", format[i]) >= 0 {
			i++
		}
		if i == len(format) {
			fail("format: incomplete format")
		}
		if format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		if _, next := v.(absent); next {
			if used == len(args) {
				fail("not enough arguments for format string")
			}
			v = args[used]
			used++
		}
		s := r.verb(v, format[spec:i], format[i])
		r.room(b.Len()/16 + len(s))
		b.WriteString(s)
	}
	if _, dict := named.(*Dict); used < len(args) && !dict {
		fail("not all arguments converted during string formatting")
	}
	r.room(b.Len())
	return b.String()
}

// verb writes one value: spec is flags, width and precision as Go's and Python's formats share them.
func (r *run) verb(v Value, spec string, verb byte) string {
	r.defined(v)
	for _, part := range strings.FieldsFunc(spec, func(c rune) bool { return c < '0' || c > '9' }) {
		if n, err := strconv.Atoi(part); err != nil || n > 1000 {
			fail("format: the width or precision %s is more than 1000", part)
		}
	}
	i, f, isInt, ok := number(v)
	switch verb {
	case 's':
		return fmt.Sprintf("%"+spec+"s", r.text(v))
	case 'r':
		var b strings.Builder
		r.repr(&b, v)
		return fmt.Sprintf("%"+spec+"s", b.String())
	case 'd', 'i', 'x', 'X', 'o':
		if verb == 'i' {
			verb = 'd'
		}
		if ok && !isInt && verb == 'd' {
			i, isInt = int64(f), true
		}
		if isInt {
			return fmt.Sprintf("%"+spec+string(verb), i)
		}
	case 'f', 'F', 'e', 'E':
		if ok {
			return fmt.Sprintf("%"+spec+string(verb), f)
		}
	case 'g':
		if ok {
			if !strings.Contains(spec, ".") {
				spec += ".6"
			}
			return fmt.Sprintf("%"+spec+"g", f)
		}
	default:
		fail("format: unsupported format character '%c'", verb)
	}
	fail("format: %%%c needs a number, got %s", verb, typeName(v))
	return ""
}

// formatText is Python's str.format: {}, {0}, {name}, {{ and }}, with a specification of width, alignment and a verb.
func formatText(r *run, s string, c *call) Value {
	var b strings.Builder
	used := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '{' && s[i] != '}' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == s[i] {
			b.WriteByte(s[i])
			i++
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 0 {
			fail("format: single '%c' in the text", s[i])
		}
		field, spec, _ := strings.Cut(s[i+1:i+end], ":")
		field, conversion, _ := strings.Cut(field, "!")
		i += end
		if field == "" {
			field = strconv.Itoa(used)
			used++
		}
		text := r.formatted(c.field(field), spec, conversion)
		r.room(b.Len()/16 + len(text))
		b.WriteString(text)
	}
	r.room(b.Len())
	return b.String()
}

// field is the argument that a field names.
func (c *call) field(name string) Value {
	if n, err := strconv.Atoi(name); err == nil {
		if n < 0 || n >= len(c.pos) {
			fail("format: replacement index %d out of range for %d arguments", n, len(c.pos))
		}
		return c.pos[n]
	}
	for i, known := range c.names {
		if known == name {
			return c.named[i]
		}
	}
	fail("format: no argument named %s", name)
	return nil
}

func (r *run) formatted(v Value, spec, conversion string) string {
	if conversion == "r" {
		var b strings.Builder
		r.repr(&b, v)
		v = b.String()
	} else if conversion != "" && conversion != "s" {
		fail("format: unknown conversion !%s", conversion)
	}
	if spec == "" {
		return r.text(v)
	}
	align, width, verb := byte(0), spec, byte('s')
	if i := strings.IndexByte("<>^", spec[0]); i >= 0 {
		align, width = spec[0], spec[1:]
	}
	if n := len(width); n > 0 && (width[n-1] < '0' || width[n-1] > '9') {
		verb, width = width[n-1], width[:n-1]
	} else if _, _, isInt, ok := number(v); isInt {
		verb = 'd'
	} else if ok {
		verb = 'g'
	}
	if strings.Trim(width, "+0123456789.") != "" {
		fail("format: the specification %q is not supported", spec)
	}
	if align == 0 && verb == 's' {
		align = '<'
	}
	if align == 0 {
		return r.verb(v, width, verb)
	}
	width, precision, some := strings.Cut(width, ".")
	if some {
		precision = "." + precision
	}
	s := r.verb(v, precision, verb)
	n, _ := strconv.Atoi(width)
	n -= utf8.RuneCountInString(s)
	if n <= 0 {
		return s
	}
	left := 0
	switch align {
	case '>':
		left = n
	case '^':
		left = n / 2
	}
	return r.repeat(" ", int64(left)) + s + r.repeat(" ", int64(n-left))
}
