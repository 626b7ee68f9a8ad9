package chat

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// filterFunc is v | name(…).
type filterFunc func(r *run, v Value, c *call) Value

// filters is the filters by name; those of lists are in lists.go. It is set in init, since map calls filters by name.
var filters map[string]filterFunc

func init() {
	filters = map[string]filterFunc{
		"abs": absFilter, "batch": batchFilter, "capitalize": textFilter(capitalize), "center": methodFilter("center"),
		"count": lengthFilter, "d": defaultFilter, "default": defaultFilter, "dictsort": dictsortFilter,
		"e": escapeFilter, "escape": escapeFilter, "first": firstFilter, "float": floatFilter,
		"format": formatFilter, "from_json": fromJSON, "fromjson": fromJSON, "groupby": groupbyFilter,
		"indent": indentFilter, "int": intFilter, "items": itemsFilter, "join": joinFilter, "last": lastFilter,
		"length": lengthFilter, "list": listFilter, "lower": textFilter(strings.ToLower), "map": mapFilter,
		"max": bestFilter(1), "min": bestFilter(-1), "reject": selectFilter(false, false),
		"rejectattr": selectFilter(true, false), "replace": replaceFilter, "reverse": reverseFilter,
		"round": roundFilter, "safe": stringFilter, "select": selectFilter(false, true),
		"selectattr": selectFilter(true, true), "slice": sliceFilter, "sort": sortFilter, "string": stringFilter,
		"sum": sumFilter, "title": textFilter(titleFilter), "tojson": tojson, "trim": trimFilter,
		"truncate": truncateFilter, "unique": uniqueFilter, "upper": textFilter(strings.ToUpper),
		"wordcount": wordcountFilter, "attr": attrFilter,
	}
}

// textFilter is a filter of texts; what is none becomes one.
func textFilter(f func(string) string) filterFunc {
	return func(r *run, v Value, c *call) Value {
		c.need()
		s := r.text(v)
		r.room(2 * len(s))
		return f(s)
	}
}

// methodFilter is a method of texts as a filter.
func methodFilter(name string) filterFunc {
	return func(r *run, v Value, c *call) Value { return textMethods[name](r, r.text(v), c) }
}

// titleFilter is the filter title: a word ends at a space, a dash or an opening bracket.
func titleFilter(s string) string {
	return title(s, func(c rune) bool { return !space(c) && !strings.ContainsRune("-({[<", c) })
}

func stringFilter(r *run, v Value, c *call) Value {
	c.need()
	return r.text(v)
}

func trimFilter(r *run, v Value, c *call) Value { return textMethods["strip"](r, r.text(v), c) }

func escapeFilter(r *run, v Value, c *call) Value {
	c.need()
	s := r.text(v)
	for _, e := range [][2]string{{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {`"`, "&#34;"}} {
		s = r.replace(s, e[0], e[1], -1)
	}
	return s
}

func replaceFilter(r *run, v Value, c *call) Value {
	a := c.bind("old", "new", "count")
	count := int64(-1)
	if a[2] != nil {
		count = orInt(a[2], -1)
	}
	return r.replace(r.text(v), r.text(a[0]), r.text(a[1]), count)
}

func wordcountFilter(r *run, v Value, c *call) Value {
	c.need()
	s := r.text(v)
	r.spend(len(s))
	return int64(len(strings.FieldsFunc(s, func(c rune) bool { return !wordRune(c) })))
}

func wordRune(c rune) bool {
	return c == '_' || !space(c) && !strings.ContainsRune(`!"#$%&'()*+,-./:;<=>?@[\]^{|}~`, c)
}

// indentFilter puts spaces, or a text, before every line but the first, and not before empty ones.
func indentFilter(r *run, v Value, c *call) Value {
	a := c.bind("width", "first", "blank")
	first, blank := orTrue(a[1], false), orTrue(a[2], false)
	pad, isText := a[0].(string)
	if !isText {
		n := orInt(a[0], 4)
		pad = r.repeat(" ", n)
	}
	lines := strings.Split(r.text(v), "\n")
	r.entries(len(lines))
	for i, line := range lines {
		if i == 0 && first || i > 0 && (blank || line != "") {
			r.room(len(pad) + len(line))
			lines[i] = pad + line
		}
	}
	s := strings.Join(lines, "\n")
	r.room(len(s))
	return s
}

// truncateFilter shortens a text to a length, at a space unless killwords, with a leeway of 5.
func truncateFilter(r *run, v Value, c *call) Value {
	a := c.bind("length", "killwords", "end", "leeway")
	length, kill, end, leeway := orInt(a[0], 255), orTrue(a[1], false), orText(a[2], "..."), orInt(a[3], 5)
	s := r.text(v)
	r.spend(len(s))
	n := int64(utf8.RuneCountInString(s))
	tail := int64(utf8.RuneCountInString(end))
	if length < tail || leeway < 0 {
		fail("truncate: the length is %d and the leeway %d, want at least %d and 0", length, leeway, tail)
	}
	if n-length <= leeway {
		return s
	}
	cut := len(s)
	for i := range s {
		if length == tail {
			cut = i
			break
		}
		length--
	}
	s = s[:cut]
	if i := strings.LastIndexByte(s, ' '); i >= 0 && !kill {
		s = s[:i]
	}
	return s + end
}

func absFilter(r *run, v Value, c *call) Value {
	c.need()
	r.defined(v)
	i, f, isInt, ok := number(v)
	if !ok {
		fail("bad operand type for abs(): '%s'", typeName(v))
	}
	if isInt {
		if i == math.MinInt64 {
			fail("abs(%d) has more than 64 bits", i)
		}
		return max(i, -i)
	}
	return math.Abs(f)
}

func intFilter(r *run, v Value, c *call) Value {
	a := c.bind("default", "base")
	r.defined(v)
	i, f, isInt, ok := number(v)
	otherwise := orValue(a[0], int64(0))
	switch {
	case isInt:
		return i
	case ok && math.Abs(f) < 1<<63:
		return int64(f)
	}
	if s, ok := v.(string); ok {
		s = strings.ReplaceAll(strings.TrimFunc(s, space), "_", "")
		base := orInt(a[1], 10)
		if base < 0 || base == 1 || base > 36 {
			return otherwise
		}
		digits := strings.TrimLeft(s, "+-")
		if len(digits) > 2 && digits[0] == '0' &&
			digits[1]|32 == map[int64]byte{2: 'b', 8: 'o', 16: 'x'}[base] {
			base = 0
		}
		if i, err := strconv.ParseInt(s, int(base), 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<63 {
			return int64(f)
		}
	}
	return otherwise
}

func floatFilter(r *run, v Value, c *call) Value {
	a := c.bind("default")
	r.defined(v)
	if _, f, _, ok := number(v); ok {
		return f
	}
	if s, ok := v.(string); ok {
		f, err := strconv.ParseFloat(strings.TrimFunc(s, space), 64)
		if err == nil || errors.Is(err, strconv.ErrRange) {
			return f
		}
	}
	return orValue(a[0], 0.0)
}

func roundFilter(r *run, v Value, c *call) Value {
	a := c.bind("precision", "method")
	r.defined(v)
	i, f, isInt, ok := number(v)
	if !ok {
		fail("round: got %s, want a number", typeName(v))
	}
	precision, method := orInt(a[0], 0), orText(a[1], "common")
	if precision < -300 || precision > 300 {
		fail("round: the precision is %d, want -300 to 300", precision)
	}
	scale := math.Pow(10, float64(precision))
	switch method {
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	case "common":
	default:
		fail("round: the method is %s, want common, ceil or floor", method)
	}
	if isInt && precision >= 0 {
		return i
	}
	if precision > 0 {
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(precision), 64), 64)
		return f
	}
	f = math.RoundToEven(f*scale) / scale
	if isInt {
		return int64(f)
	}
	return f
}

// defaultFilter is another value for what is undefined, with boolean also for what is false.
func defaultFilter(r *run, v Value, c *call) Value {
	a := c.bind("default_value", "boolean")
	if _, no := v.(*undefined); no || orTrue(a[1], false) && !truth(v) {
		return orValue(a[0], "")
	}
	return v
}

func attrFilter(r *run, v Value, c *call) Value { return r.attr(v, orText(c.need("name")[0], "")) }

// tojson is Python's json.dumps, as the transformers library gives it to templates: not escaped for HTML.
func tojson(r *run, v Value, c *call) Value {
	a := c.bind("ensure_ascii", "indent", "separators", "sort_keys")
	s := &jsonStyle{ascii: orTrue(a[0], false), sorted: orTrue(a[3], false), itemSep: ", ", keySep: ": "}
	switch indent := a[1].(type) {
	case nil, absent:
	case string:
		s.lines, s.indent = true, indent
	default:
		s.lines, s.indent = true, r.repeat(" ", orInt(indent, 0))
	}
	if s.lines {
		s.itemSep = ","
	}
	if seps, ok := a[2].(*List); ok {
		if len(seps.Items) != 2 {
			fail("tojson: separators has %d texts, want 2", len(seps.Items))
		}
		s.itemSep, s.keySep = orText(seps.Items[0], ""), orText(seps.Items[1], "")
	}
	var b strings.Builder
	r.json(&b, v, s, 0)
	r.room(b.Len())
	return b.String()
}

// fromJSON reads JSON, keeping the order of its keys.
func fromJSON(r *run, v Value, c *call) Value {
	c.need()
	s, ok := v.(string)
	if !ok {
		r.defined(v)
		fail("%s: got %s, want a text", c.name, typeName(v))
	}
	r.spend(16 * len(s))
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	v, err := r.decode(d)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("text behind the value")
		}
	}
	if err != nil {
		fail("%s: %v", c.name, err)
	}
	return v
}

func (r *run) decode(d *json.Decoder) (v Value, err error) {
	defer r.deeper()()
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return i, nil
		}
		f, err := t.Float64()
		return f, err
	case json.Delim:
		if t == '[' {
			l := &List{}
			for d.More() && err == nil {
				v, err = r.decode(d)
				l.Items = append(l.Items, v)
			}
			if err == nil {
				_, err = d.Token()
			}
			return l, err
		}
		m := NewDict()
		for d.More() && err == nil {
			var key Value
			if key, err = r.decode(d); err == nil {
				v, err = r.decode(d)
				m.put(key, v)
			}
		}
		if err == nil {
			_, err = d.Token()
		}
		return m, err
	}
	return t, nil // a text, a bool or nil
}
