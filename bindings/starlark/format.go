package starlark

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	star "go.starlark.net/starlark"
)

// Scalar is implemented by values that can stand for one number, string or bool where fmt has to show one.
// ok is false if this one, being larger, cannot.
type Scalar interface {
	Scalar() (v star.Value, ok bool)
}

// formatText is fmt(format, *args, **kwargs): Python's str.format without attributes and indices in the names.
// The language is described at https://docs.python.org/3/library/string.html#format-string-syntax.
func formatText(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if len(args) == 0 {
		return nil, errors.New("fmt: got no format")
	}
	format, ok := star.AsString(args[0])
	if !ok {
		return nil, fmt.Errorf("fmt: got a format of type %s, want string", args[0].Type())
	}
	f := formatter{kwargs: slices.Clone(kwargs)}
	for _, arg := range args[1:] {
		f.args = append(f.args, interpOf(t).shown(arg))
	}
	for i, kw := range kwargs {
		f.kwargs[i] = star.Tuple{kw[0], interpOf(t).shown(kw[1])}
	}
	s, err := f.expand(format)
	if err != nil {
		return nil, fmt.Errorf("fmt: %w", err)
	}
	return star.String(s), nil
}

// formatter has the arguments of one call.
type formatter struct {
	args   star.Tuple
	kwargs []star.Tuple
	next   int // the argument of the next {}
	mode   byte
}

const (
	automatic = 'a' // a {} was seen
	numbered  = 'n' // a {0} was seen
)

// expand replaces the placeholders in format.
func (f *formatter) expand(format string) (string, error) {
	var out strings.Builder
	for rest := format; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			out.WriteString(rest)
			break
		}
		out.WriteString(rest[:i])
		brace := rest[i]
		rest = rest[i+1:]
		if rest != "" && rest[0] == brace {
			out.WriteByte(brace)
			rest = rest[1:]
			continue
		}
		if brace == '}' {
			return "", fmt.Errorf("} without { in %q; a brace is written }}", format)
		}
		end := closing(rest)
		if end < 0 {
			return "", fmt.Errorf("{ without } in %q; a brace is written {{", format)
		}
		s, err := f.placeholder(rest[:end])
		if err != nil {
			return "", fmt.Errorf("placeholder {%s}: %w", rest[:end], err)
		}
		out.WriteString(s)
		rest = rest[end+1:]
	}
	return out.String(), nil
}

// closing returns the index of the brace that ends the placeholder s starts in, or -1.
func closing(s string) int {
	depth := 1
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// placeholder formats what stands between a pair of braces: name!conversion:spec.
func (f *formatter) placeholder(field string) (string, error) {
	name, options, _ := strings.Cut(field, ":")
	name, conversion, converts := strings.Cut(name, "!")
	v, err := f.argument(name)
	if err != nil {
		return "", err
	}
	if options, err = f.nested(options); err != nil {
		return "", err
	}
	if converts {
		switch conversion {
		case "r":
			v = star.String(v.String())
		case "s":
			v = star.String(text(v))
		default:
			return "", fmt.Errorf("unknown conversion !%s; there are !r and !s", conversion)
		}
	}
	spec, err := parseSpec(options)
	if err != nil {
		return "", err
	}
	return spec.format(v)
}

// nested expands the placeholders inside a spec, which are plain names.
func (f *formatter) nested(spec string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(spec, "{")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, _ := strings.Cut(rest, "}")
		v, err := f.argument(name)
		if err != nil {
			return "", err
		}
		out.WriteString(text(v))
		spec = after
	}
}

// argument returns the value a placeholder names: the next one, one by its number, or a keyword argument.
func (f *formatter) argument(name string) (star.Value, error) {
	i, err := strconv.Atoi(name)
	isNumber := err == nil && name[0] != '-' && name[0] != '+'
	switch {
	case name == "" && f.mode == numbered, isNumber && f.mode == automatic:
		return nil, errors.New("a format has either {} or {0}, not both")
	case name == "":
		f.mode = automatic
		i = f.next
		f.next++
	case isNumber:
		f.mode = numbered
	default:
		for _, pair := range f.kwargs {
			if string(pair[0].(star.String)) == name {
				return pair[1], nil
			}
		}
		if strings.ContainsAny(name, ".[") {
			return nil, fmt.Errorf("%q is not a name; pass the value itself: fmt(\"{}\", %s)", name, name)
		}
		return nil, fmt.Errorf("no argument is called %s", name)
	}
	if i >= len(f.args) {
		return nil, fmt.Errorf("got %d arguments, want at least %d", len(f.args), i+1)
	}
	return f.args[i], nil
}

// maxWidth bounds widths and precisions, which a mistake could make as large as the memory.
const maxWidth = 1 << 16

// formatSpec is a parsed format specification.
type formatSpec struct {
	fill      rune
	align     byte // one of <>=^, 0: the type's own
	sign      byte // one of +-space, 0: -
	alternate bool // #
	width     int
	group     byte // , or _, 0: none
	precision int  // -1: the type's own
	kind      byte // 0: the value's own
	empty     bool
}

// parseSpec reads [[fill]align][sign][#][0][width][grouping][.precision][type].
func parseSpec(s string) (formatSpec, error) {
	spec := formatSpec{fill: ' ', precision: -1, empty: s == ""}
	isAlign := func(i int) bool { return i < len(s) && strings.IndexByte("<>=^", s[i]) >= 0 }
	filled := false
	if fill, size := utf8.DecodeRuneInString(s); size > 0 && isAlign(size) {
		spec.fill, spec.align, s, filled = fill, s[size], s[size+1:], true
	} else if isAlign(0) {
		spec.align, s = s[0], s[1:]
	}
	take := func(set string) byte {
		if s == "" || strings.IndexByte(set, s[0]) < 0 {
			return 0
		}
		c := s[0]
		s = s[1:]
		return c
	}
	spec.sign = take("+- ")
	spec.alternate = take("#") != 0
	if !filled && take("0") != 0 {
		spec.fill = '0'
		if spec.align == 0 {
			spec.align = '0'
		}
	}
	var err error
	if spec.width, s, err = takeNumber(s, "width"); err != nil {
		return spec, err
	}
	spec.width = max(spec.width, 0)
	spec.group = take(",_")
	if take(".") != 0 {
		if spec.precision, s, err = takeNumber(s, "precision"); err != nil {
			return spec, err
		}
		if spec.precision < 0 {
			return spec, errors.New("there is no precision after the point")
		}
	}
	spec.kind = take("bdoxXeEfFgGs%")
	if s != "" {
		return spec, fmt.Errorf("cannot read %q; want fill, align <>=^, sign, #, 0, width, grouping, .precision and "+
			"one of b d o x X e E f F g G %% s, in this order", s)
	}
	return spec, nil
}

// takeNumber cuts a number off the front of s; it is -1 if there is none.
func takeNumber(s, what string) (int, string, error) {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	if n == 0 {
		return -1, s, nil
	}
	number, err := strconv.Atoi(s[:n])
	if err != nil || number > maxWidth {
		return 0, s, fmt.Errorf("%s %s is too large, the limit is %d", what, s[:n], maxWidth)
	}
	return number, s[n:], nil
}

// format returns v as the specification asks.
func (p formatSpec) format(v star.Value) (string, error) {
	if s, ok := v.(Scalar); ok {
		if one, ok := s.Scalar(); ok {
			v = one
		}
	}
	if p.empty {
		if f, ok := v.(star.Float); ok {
			return shortestFloat(float64(f)), nil
		}
		return text(v), nil
	}
	switch v := v.(type) {
	case star.Bool:
		n := 0
		if v {
			n = 1
		}
		return p.formatInt(star.MakeInt(n))
	case star.Int:
		return p.formatInt(v)
	case star.Float:
		return p.formatFloat(float64(v), "float")
	}
	return p.formatString(text(v), v.Type())
}

func (p formatSpec) formatString(s, typ string) (string, error) {
	switch {
	case p.kind != 0 && p.kind != 's':
		return "", fmt.Errorf("got %s, want a number for %c", typ, p.kind)
	case p.sign != 0 || p.alternate || p.group != 0 || p.align == '=':
		return "", fmt.Errorf("got %s, want a number for a sign, #, grouping or =", typ)
	}
	if p.precision >= 0 {
		if runes := []rune(s); len(runes) > p.precision {
			s = string(runes[:p.precision])
		}
	}
	return p.pad("", s, '<'), nil
}

// intBases are the bases of the integer types.
var intBases = map[byte]int{0: 10, 'd': 10, 'b': 2, 'o': 8, 'x': 16, 'X': 16}

func (p formatSpec) formatInt(v star.Int) (string, error) {
	base, ok := intBases[p.kind]
	switch {
	case p.kind == 's':
		return "", errors.New("got int, want string for s; use {} or !s")
	case !ok:
		f := float64(v.Float())
		if math.IsInf(f, 0) {
			return "", fmt.Errorf("int too large to be shown as a float")
		}
		return p.formatFloat(f, "int")
	case p.precision >= 0:
		return "", errors.New("got int, which has no precision; use f for digits after the point")
	case p.group == ',' && base != 10:
		return "", fmt.Errorf("grouping %c groups with _, not with a comma", p.kind)
	}
	n := v.BigInt()
	prefix := p.signOf(n.Sign() < 0)
	if p.alternate && base != 10 {
		prefix += "0" + string(p.kind)
	}
	digits := new(big.Int).Abs(n).Text(base)
	if p.kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	size := 3
	if base != 10 {
		size = 4
	}
	return p.number(prefix, digits, "", size), nil
}

func (p formatSpec) formatFloat(f float64, typ string) (string, error) {
	if p.kind != 0 && strings.IndexByte("eEfFgG%", p.kind) < 0 {
		if p.kind == 's' {
			return "", fmt.Errorf("got %s, want string for s; use {} or !s", typ)
		}
		return "", fmt.Errorf("got %s, want an int for %c; use int(x) or {:.0f}", typ, p.kind)
	}
	prefix := p.signOf(math.Signbit(f) && !math.IsNaN(f))
	digits := p.floatDigits(math.Abs(f))
	if p.kind == 'E' || p.kind == 'F' || p.kind == 'G' {
		digits = strings.ToUpper(digits)
	}
	whole := 0
	for whole < len(digits) && '0' <= digits[whole] && digits[whole] <= '9' {
		whole++
	}
	return p.number(prefix, digits[:whole], digits[whole:], 3), nil
}

// floatDigits returns f, which is not negative, in lower case without padding.
func (p formatSpec) floatDigits(f float64) string {
	percent := ""
	if p.kind == '%' {
		f, percent = f*100, "%"
	}
	switch {
	case math.IsInf(f, 0):
		return "inf" + percent
	case math.IsNaN(f):
		return "nan" + percent
	}
	precision := p.precision
	if precision < 0 {
		precision = 6
	}
	switch p.kind {
	case 'f', 'F', '%':
		return p.point(strconv.FormatFloat(f, 'f', precision, 64)) + percent
	case 'e', 'E':
		return p.point(strconv.FormatFloat(f, 'e', precision, 64))
	case 'g', 'G':
		precision = max(precision, 1)
		return p.point(p.general(f, precision, precision))
	}
	if p.precision < 0 {
		return p.point(shortestFloat(f))
	}
	// Without a type the exponent comes one digit earlier, and a whole number keeps a digit after the point.
	precision = max(precision, 1)
	s := p.general(f, precision, precision-1)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return p.point(s)
}

// general returns f with so many significant digits, and with an exponent if that is below -4 or at least limit.
func (p formatSpec) general(f float64, digits, limit int) string {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', digits-1, 64), "e")
	x, _ := strconv.Atoi(exponent)
	fixed := -4 <= x && x < limit
	if fixed {
		mantissa = strconv.FormatFloat(f, 'f', max(digits-1-x, 0), 64)
	}
	if !p.alternate && strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if fixed {
		return mantissa
	}
	return mantissa + "e" + exponent
}

// point adds the decimal point that # asks for.
func (p formatSpec) point(s string) string {
	if !p.alternate || strings.Contains(s, ".") {
		return s
	}
	if i := strings.IndexByte(s, 'e'); i >= 0 {
		return s[:i] + "." + s[i:]
	}
	return s + "."
}

// shortestFloat returns the fewest digits that read back as f, in Python's form.
func shortestFloat(f float64) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	if x, _ := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:]); x < -4 || x >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func (p formatSpec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case p.sign == '+' || p.sign == ' ':
		return string(p.sign)
	}
	return ""
}

// number puts the parts of a number together, with grouping and zeros in front of the digits.
func (p formatSpec) number(prefix, digits, rest string, size int) string {
	zeros := 0
	if p.fill == '0' && (p.align == '=' || p.align == '0') {
		zeros = p.width - utf8.RuneCountInString(prefix+rest)
	}
	if p.group != 0 && digits != "" {
		digits = group(digits, string(p.group), size, zeros)
	}
	return p.pad(prefix, digits+rest, '>')
}

// group puts a separator between every size digits, counted from the right, and zeros before them until they
// are at least width long.
func group(digits, separator string, size, width int) string {
	out := ""
	for {
		n := min(size, max(len(digits), width, 1))
		chunk := digits[max(len(digits)-n, 0):]
		digits = digits[:len(digits)-len(chunk)]
		out = strings.Repeat("0", n-len(chunk)) + chunk + out
		width -= n
		if digits == "" && width <= 0 {
			return out
		}
		out = separator + out
		width--
	}
}

// pad brings prefix and s together up to the width.
func (p formatSpec) pad(prefix, s string, own byte) string {
	align := p.align
	if align == 0 {
		align = own
	}
	if align == '0' { // the flag 0 without an alignment
		align = '='
		if own == '<' {
			align = '<'
		}
	}
	missing := max(p.width-utf8.RuneCountInString(prefix+s), 0)
	left := 0
	switch align {
	case '>':
		left = missing
	case '^':
		left = missing / 2
	case '=':
		return prefix + strings.Repeat(string(p.fill), missing) + s
	}
	fill := string(p.fill)
	return strings.Repeat(fill, left) + prefix + s + strings.Repeat(fill, missing-left)
}
