package starlark

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/lib/math"
	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// This file writes a call whose arguments do not fit its operation as it was probably meant, for the end of
// the message.

// hint is the call put right, or the operation's example if what was meant cannot be guessed.
func (c *call) hint() string {
	if code := c.ofNumber(); code != "" {
		return "of a number: " + code
	}
	if code, ok := c.corrected(); ok {
		return "as in: " + code
	}
	return c.info.AsIn()
}

// ofNumber is the call of math's function of the operation's name, if the operation was called with one number; or "".
func (c *call) ofNumber() string {
	if len(c.args) != 1 || len(c.kwargs) > 0 || c.self {
		return ""
	}
	_, isInt := c.args[0].(star.Int)
	_, isFloat := c.args[0].(star.Float)
	if !isInt && !isFloat || !math.Module.Members.Has(c.info.Name) {
		return ""
	}
	return fmt.Sprintf("math.%s(%s)", c.info.Name, c.args[0])
}

// argument is an argument as a message writes it.
type argument struct {
	field   int
	keyword string // "" by position
	text    string
}

// corrected writes the call with every argument in its place and of its kind.
func (c *call) corrected() (code string, ok bool) {
	var list []argument
	left := false // an argument has been left out
	c.next = 0
	if c.self {
		list = append(list, argument{text: c.info.Fields[0].Name})
		c.next = 1
	}
	for i := 0; i < len(c.args) && c.next < len(c.info.Fields); c.next++ {
		if numbers := c.ints(i); len(numbers) > 0 && c.info.Fields[c.next].Kind == core.KindSizes {
			list = append(list, c.namedSizes(c.next, numbers)...)
			break
		}
		v, n := c.args[i], c.group(i)
		if n > 1 {
			v = c.args[i : i+n]
		}
		if numbers := c.ints(i); len(numbers) > 1 && c.info.Fields[c.next].Kind == core.KindAxes {
			v, n = star.Tuple(numbers), len(c.args)-i
		}
		if d, ok := v.(star.IterableMapping); ok && c.info.Fields[c.next].Rest && c.restGiven() {
			list = append(list, keywordsOf(c.next, d)...)
			i++
			continue
		}
		text, ok := c.text(c.next, v)
		if !ok {
			return "", false
		}
		i += n
		if text == "" {
			left = true
			continue
		}
		a := argument{field: c.next, text: text}
		if left {
			a.keyword = c.info.Fields[c.next].Name
		}
		list = append(list, a)
	}
	for _, kw := range c.kwargs {
		name := string(kw[0].(star.String))
		i := c.meant(name)
		if i < 0 || slices.ContainsFunc(list, func(a argument) bool { return a.field == i && !c.info.Fields[i].Rest }) {
			continue
		}
		text, ok := c.text(i, kw[1])
		if f := &c.info.Fields[i]; f.Rest {
			text, ok = c.restText(i, name, kw[1])
		} else {
			name = f.Name
		}
		if !ok {
			return "", false
		}
		if text != "" {
			list = append(list, argument{i, name, text})
		}
	}
	return c.completed(list)
}

// restGiven tells whether the call has keywords that name no field.
func (c *call) restGiven() bool {
	return slices.ContainsFunc(c.kwargs, func(kw star.Tuple) bool { return c.field(string(kw[0].(star.String))) < 0 })
}

// keywordsOf is what a dict says of axes, as keywords.
func keywordsOf(field int, d star.IterableMapping) (list []argument) {
	for _, item := range d.Items() {
		if name, ok := star.AsString(item[0]); ok {
			list = append(list, argument{field, core.Keyword(name), brief(item[1])})
		}
	}
	return list
}

// completed writes the call with its arguments and those that it needs besides.
func (c *call) completed(list []argument) (code string, ok bool) {
	for i := range c.info.Fields {
		f := &c.info.Fields[i]
		if f.Optional || f.Rest || slices.ContainsFunc(list, func(a argument) bool { return a.field == i }) {
			continue
		}
		text, ok := c.invented(i, star.None)
		if !ok {
			return "", false
		}
		a := argument{i, f.Name, text}
		if i == len(list) && !slices.ContainsFunc(list, func(a argument) bool { return a.keyword != "" }) {
			a.keyword = ""
		}
		list = append(list, a)
	}
	args := make([]string, len(list))
	for i, a := range list {
		args[i] = a.text
		if a.keyword != "" {
			args[i] = a.keyword + "=" + a.text
		}
	}
	if isMethod(c.info) && args[0] == c.info.Fields[0].Name {
		return args[0] + "." + c.info.Name + "(" + strings.Join(args[1:], ", ") + ")", true
	}
	return c.info.Name + "(" + strings.Join(args, ", ") + ")", true
}

// synonyms are the keywords of NumPy and PyTorch for what our operations call otherwise.
var synonyms = map[string][]string{
	"dim": {"axis", "axes"}, "dims": {"axes", "axis"}, "axis": {"axes"}, "axes": {"axis"}, "input": {"x", "xs"},
	"a": {"x"}, "b": {"y", "w"}, "other": {"y", "w"}, "dim0": {"axis"}, "epsilon": {"eps"},
}

// meant is the field that a keyword was probably meant for; -1 if none.
func (c *call) meant(name string) int {
	if i := c.field(name); i >= 0 && !c.info.Fields[i].Rest {
		return i
	}
	for _, word := range synonyms[name] {
		if i := c.field(word); i >= 0 && !c.info.Fields[i].Rest {
			return i
		}
	}
	var names []string
	for i := range c.info.Fields {
		if !c.info.Fields[i].Rest {
			names = append(names, c.info.Fields[i].Name)
		}
	}
	near := nearest(name, names)
	if rest := c.rest(); rest >= 0 && (near == "" || len(name) < 4) {
		return rest
	}
	return c.field(near)
}

// text is v as the value of field i: as the script has it if it fits, else what was probably meant; "" to leave
// it out.
func (c *call) text(i int, v star.Value) (string, bool) {
	f := &c.info.Fields[i]
	probe := call{info: c.info, op: c.info.New(), env: c.env, probing: true}
	if err := probe.set(i, v); err != nil {
		return c.invented(i, v)
	}
	switch f.Kind {
	case core.KindTensor:
		if !isTensor(v) {
			return brief(v), true
		}
		return f.Name, true
	case core.KindTensors, core.KindNested:
		return f.Name, true
	}
	return brief(v), true
}

// restText is v as the value of one keyword of those that field i takes.
func (c *call) restText(i int, name string, v star.Value) (string, bool) {
	probe := call{info: c.info, op: c.info.New(), env: c.env, probing: true}
	f := &probe.info.Fields[i]
	keys, err := axis.Of(strings.TrimSuffix(name, "_"))
	if err == nil && probe.setMap(f, keys, []star.Value{v}) == nil {
		return brief(v), true
	}
	n, isNumber := star.AsFloat(v)
	if t, ok := v.(Tensor); ok && t.Len() == 1 {
		return "int(" + name + ".item())", f.Kind == core.KindSizes
	}
	switch {
	case f.Kind == core.KindSizes && isNumber:
		return fmt.Sprint(max(1, int(n))), true
	case f.Kind == core.KindRanges && isNumber:
		return fmt.Sprintf("(%d, %d)", int(n), int(n)+1), true
	}
	return "", false
}

// invented is a value that field i takes: what v was probably meant to be, or any if v is None.
func (c *call) invented(i int, v star.Value) (string, bool) {
	f := &c.info.Fields[i]
	x := c.firstTensor()
	if shared := c.sharedAxes(); x != nil && shared.Len() > 0 && (v == star.None || !shared.Has(axisAt(x, v))) {
		v = star.MakeInt(x.Axes().Index(shared.At(shared.Len() - 1)))
	}
	n, isNumber := star.AsFloat(v)
	if !isNumber {
		n = 1
	}
	word, _ := star.AsString(v)
	switch f.Kind {
	case core.KindAxis:
		if x != nil && x.Rank() > 0 {
			return fmt.Sprintf("%q", axisAt(x, v)), true
		}
		return `"row"`, true
	case core.KindAxes:
		return fmt.Sprintf("%q", strings.Join(c.axesFor(x, v), " ")), true
	case core.KindInt:
		if t, ok := v.(Tensor); ok && t.Len() == 1 {
			return "int(" + f.Name + ".item())", true
		}
		if !isNumber && f.Optional {
			return "", true
		}
		return fmt.Sprint(int(n)), true
	case core.KindFloat:
		if t, ok := v.(Tensor); ok && t.Len() == 1 {
			return f.Name + ".item()", true
		}
		if !isNumber && f.Optional {
			return "", true
		}
		return fmt.Sprint(n), true
	case core.KindBool:
		return map[bool]string{true: "True", false: "False"}[!isNumber || n != 0], true
	case core.KindEnum:
		if near := nearest(word, f.Enum); near != "" {
			return fmt.Sprintf("%q", near), true
		}
		return fmt.Sprintf("%q", f.Enum[0]), true
	case core.KindDType:
		return fmt.Sprintf("%q", dtypeMeant(word, dtypeNames(c.op))), true
	}
	return "", false
}

// dtypeNames is the dtypes that an operation can be given: those of plain numbers, or the quantized ones.
func dtypeNames(op core.Op) []string {
	if q, ok := op.(core.Quantizing); ok {
		if _, named := q.Quantized(); named {
			return dtype.QuantizedNames()
		}
	}
	return dtype.Names()
}

// dtypeMeant is the dtype that NumPy or PyTorch calls word, or that of the names that looks like it, or the first.
func dtypeMeant(word string, names []string) string {
	for _, pair := range [][2]string{
		{"bfloat", "bf"}, {"float", "f"}, {"uint", "u"}, {"int", "i"}, {"half", "f16"}, {"double", "f64"},
		{"long", "i64"},
	} {
		if rest, ok := strings.CutPrefix(word, pair[0]); ok {
			for _, bits := range []string{rest, "32", ""} {
				if dt, ok := dtype.Parse(pair[1] + bits); ok && slices.Contains(names, dt.String()) {
					return dt.String()
				}
			}
		}
	}
	word = strings.ToLower(word)
	if slices.Contains(names, word) {
		return word
	}
	if near := nearest(word, names); near != "" {
		return near
	}
	return names[0]
}

// axisAt is the axis of x that a number counts, or else its last.
func axisAt(x *core.Tensor, v star.Value) string {
	k := x.Rank() - 1
	if n, err := star.AsInt32(v); err == nil && -x.Rank() <= n && n < x.Rank() {
		k = (n + x.Rank()) % x.Rank()
	}
	return x.Axes().At(k)
}

// maxAxesMeant is how long a list may be that is taken for one entry per axis.
const maxAxesMeant = 16

// usualAxes are names for axes that have none yet.
var usualAxes = []string{"batch", "row", "col"}

// axesFor is the axis names that v was probably meant to be: of x, if there is one.
func (c *call) axesFor(x *core.Tensor, v star.Value) []string {
	if x != nil && x.Rank() > 0 {
		seq, ok := v.(star.Sequence)
		if !ok || seq.Len() > maxAxesMeant {
			return []string{axisAt(x, v)}
		}
		var names []string
		for item := range star.Elements(seq) {
			if name := axisAt(x, item); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names
	}
	levels := 1
	for i := range c.info.Fields {
		if f := &c.info.Fields[i]; f.Kind == core.KindNested {
			levels = min(len((*core.Nested)(f.At(c.op)).Sizes), len(usualAxes))
		}
	}
	return usualAxes[len(usualAxes)-levels:]
}

// ints is the integers that the call gives from argument i on, as one list or one by one; nil if there is
// anything else.
func (c *call) ints(i int) []star.Value {
	items := c.args[i:]
	if seq, ok := items[0].(star.Sequence); ok && len(items) == 1 {
		if seq.Len() > maxAxesMeant {
			return nil
		}
		items = nil
		for item := range star.Elements(seq) {
			items = append(items, item)
		}
	}
	for _, v := range items {
		if _, ok := v.(star.Int); !ok {
			return nil
		}
	}
	return items
}

// namedSizes is sizes, or places, that were given without names, with the names of the axes they would count.
func (c *call) namedSizes(field int, numbers []star.Value) []argument {
	names := usualAxes
	if x := c.firstTensor(); x != nil {
		names = x.Axes().Names()
	}
	numbers = numbers[:min(len(numbers), len(names))]
	if c.firstTensor() == nil {
		names = names[len(names)-len(numbers):]
	}
	list := make([]argument, len(numbers))
	for i, v := range numbers {
		list[i] = argument{field, names[i], brief(v)}
	}
	return list
}

// sharedAxes is the axes that all operands given so far have.
func (c *call) sharedAxes() *axis.List {
	shared := axis.Empty
	for i := range c.info.Fields {
		f := &c.info.Fields[i]
		if f.Kind != core.KindTensor {
			continue
		}
		switch t := *(**core.Tensor)(f.At(c.op)); {
		case t == nil:
		case i == 0:
			shared = t.Axes()
		default:
			shared = shared.Shared(t.Axes())
		}
	}
	return shared
}

// firstTensor is the first operand that the call has been given, or nil.
func (c *call) firstTensor() *core.Tensor {
	for i := range c.info.Fields {
		f := &c.info.Fields[i]
		switch p := f.At(c.op); f.Kind {
		case core.KindTensor:
			if t := *(**core.Tensor)(p); t != nil {
				return t
			}
		case core.KindTensors:
			if list := *(*[]*core.Tensor)(p); len(list) > 0 {
				return list[0]
			}
		}
	}
	return nil
}
