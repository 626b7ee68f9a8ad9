package starlark

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// opFunc is an operation of core's table as a function, or as a method of a tensor when self is
// set. It fills the argument struct by position and keyword and runs it; there is one of it for
// every operation, and no code for any single one.
type opFunc struct {
	info *core.Info
	self *core.Tensor
	it   *Interp // whose function it is; nil for a method
}

var _ star.Callable = (*opFunc)(nil)

// isMethod tells whether the operation is a method of tensors: its first argument is one.
func isMethod(info *core.Info) bool {
	return len(info.Fields) > 0 && info.Fields[0].Kind == core.KindTensor
}

func (f *opFunc) Name() string          { return f.info.Name }
func (f *opFunc) String() string        { return "<operation " + f.info.Name + ">" }
func (f *opFunc) Type() string          { return "builtin_function_or_method" }
func (f *opFunc) Freeze()               {}
func (f *opFunc) Truth() star.Bool      { return true }
func (f *opFunc) Hash() (uint32, error) { return star.String(f.info.Name).Hash() }

// CallInternal runs the operation on a script's arguments. It is one of the doors that recover
// core's errors.
func (f *opFunc) CallInternal(t *star.Thread, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	it := f.it
	if it == nil || it.thread != t {
		it = interpOf(t)
	}
	c := it.frame()
	*c = call{info: f.info, op: it.env.Take(f.info), env: it.env, written: &it.written, self: f.self != nil, args: args,
		kwargs: kwargs}
	if f.self != nil {
		*(**core.Tensor)(f.info.Fields[0].At(c.op)) = f.self
		c.next, c.given = 1, 1
	}
	if err := c.positional(args); err != nil {
		return nil, err
	}
	if err := c.keywords(kwargs); err != nil {
		return nil, err
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	outs := f.info.Run(c.env, c.op, c.room[:0])
	if len(outs) == 1 {
		v = Tensor{outs[0]}
	} else {
		many := make(star.Tuple, len(outs))
		for i, t := range outs {
			many[i] = Tensor{t}
		}
		v = many
	}
	it.env.Give(f.info, c.op)
	*c = call{}
	it.frames = append(it.frames, c)
	return v, nil
}

// frame is a call for reuse: calls that fail keep theirs, for their messages.
func (it *Interp) frame() *call {
	n := len(it.frames)
	if n == 0 {
		return new(call)
	}
	c := it.frames[n-1]
	it.frames[n-1] = nil // or the list would keep what a failed call holds
	it.frames = it.frames[:n-1]
	return c
}

// call is an argument struct being filled.
type call struct {
	info    *core.Info
	op      core.Op
	env     *core.Env
	written *axisTexts // nil: there are none
	next    int        // the field of the next positional argument
	given   uint64     // bit i: field i has been given

	self    bool // the first field has been given by the method's receiver
	args    star.Tuple
	kwargs  []star.Tuple
	probing bool            // errors are not looked at
	room    [4]*core.Tensor // for the outputs
}

var errProbe = errors.New("does not fit")

// fail is an error with a hint how to write the call.
func (c *call) fail(msg string) error {
	if c.probing {
		return errProbe
	}
	return c.info.Misuse(c.op, msg, c.hint())
}

// usage is the call as a script writes it, for hints.
func (c *call) usage() string {
	var parts []string
	for i := range c.info.Fields {
		f := &c.info.Fields[i]
		switch {
		case f.Rest && f.Kind == core.KindSizes:
			parts = append(parts, "axis=size, …")
		case f.Rest && f.Kind == core.KindRanges:
			parts = append(parts, "axis=(start, stop), …")
		case f.Rest && f.Kind == core.KindPairs:
			parts = append(parts, "axis=(before, after), …")
		case f.Rest && f.Kind == core.KindRename:
			parts = append(parts, `old="new", …`)
		case f.Rest:
			parts = append(parts, `new="axis axis", …`)
		case f.Default != "":
			parts = append(parts, f.Name+"="+defaultText(f))
		case f.Optional:
			parts = append(parts, "["+f.Name+"]")
		default:
			parts = append(parts, f.Name)
		}
	}
	if isMethod(c.info) && len(parts) > 0 {
		return parts[0] + "." + c.info.Name + "(" + strings.Join(parts[1:], ", ") + ")"
	}
	return c.info.Name + "(" + strings.Join(parts, ", ") + ")"
}

// defaultText is an argument's default as a script writes it.
func defaultText(f *core.Field) string {
	switch f.Kind {
	case core.KindBool:
		return strings.ToUpper(f.Default[:1]) + f.Default[1:]
	case core.KindAxis, core.KindAxes, core.KindEnum, core.KindDType:
		return strconv.Quote(f.Default)
	}
	return f.Default
}

// positional fills fields in order. Where tensors or axis names are listed, the arguments that
// follow belong to the list too.
func (c *call) positional(args star.Tuple) error {
	for i := 0; i < len(args); {
		if c.next >= len(c.info.Fields) {
			much := "one argument"
			if n := len(args) - i; n > 1 {
				much = fmt.Sprintf("%d arguments", n)
			}
			return c.fail(fmt.Sprintf("got %s too many, want %s", much, c.usage()))
		}
		n := c.group(i)
		var err error
		switch {
		case n == 1:
			err = c.set(c.next, args[i])
		case c.info.Fields[c.next].Kind == core.KindTensors:
			c.given |= 1 << c.next
			err = c.setTensorList(c.info.Fields[c.next].At(c.op), &c.info.Fields[c.next], args[i:i+n])
		default:
			err = c.set(c.next, args[i:i+n])
		}
		if err != nil {
			return err
		}
		i += n
		c.next++
	}
	return nil
}

// without is the call but for one keyword.
func (c *call) without(kwargs []star.Tuple, name string) string {
	var parts []string
	for _, v := range c.args {
		parts = append(parts, brief(v))
	}
	for _, kw := range kwargs {
		if key, _ := star.AsString(kw[0]); key != name {
			parts = append(parts, key+"="+brief(kw[1]))
		}
	}
	return c.info.Name + "(" + strings.Join(parts, ", ") + ")"
}

// group is of how many arguments the value is made that positional argument i begins.
func (c *call) group(i int) (n int) {
	args := c.args
	n = 1
	switch c.info.Fields[c.next].Kind {
	case core.KindTensors:
		for i+n < len(args) && isTensor(args[i]) && isTensor(args[i+n]) {
			n++
		}
	case core.KindAxes:
		for i+n < len(args) && isString(args[i]) && isString(args[i+n]) && !c.wordNext() {
			n++
		}
	}
	return n
}

// wordNext tells whether the field after the next one takes a string, so that a string following
// an axis list is not one more axis.
func (c *call) wordNext() bool {
	if c.next+1 >= len(c.info.Fields) {
		return false
	}
	switch c.info.Fields[c.next+1].Kind {
	case core.KindAxis, core.KindAxes, core.KindEnum, core.KindDType:
		return true
	}
	return false
}

func isTensor(v star.Value) bool { _, ok := v.(Tensor); return ok }
func isString(v star.Value) bool { _, ok := v.(star.String); return ok }

// keywords fills fields by name; what names no field goes to the field that takes the rest. A
// reserved word is written with one underscore behind it.
func (c *call) keywords(kwargs []star.Tuple) error {
	if len(kwargs) == 0 {
		return nil
	}
	rest := c.rest()
	var names []string
	var values []star.Value
	for _, kw := range kwargs {
		name, v := string(kw[0].(star.String)), kw[1]
		i := c.field(name)
		if name == "requires_grad" && i < 0 {
			return &core.Error{Op: c.info.Name, Msg: "got requires_grad, but a variable is made, not marked",
				Hint: "instead: variable(" + c.without(kwargs, name) + ")"}
		}
		given := i >= 0 && c.given&(1<<i) != 0
		// An operand that is there already leaves its name to an axis: image.slice(x=(0, 8)).
		toAxis := given && rest >= 0 && c.info.Fields[i].Kind == core.KindTensor
		if i >= 0 && i != rest && !toAxis {
			if given {
				return c.fail(fmt.Sprintf("got %s twice, by position and by keyword", name))
			}
			if err := c.set(i, v); err != nil {
				return err
			}
			continue
		}
		if rest < 0 {
			return c.fail(fmt.Sprintf("got an unknown keyword %s, want %s", name, c.usage()))
		}
		if word, ok := strings.CutSuffix(name, "_"); ok && core.Reserved(word) {
			name = word
		}
		names, values = append(names, name), append(values, v)
	}
	if len(names) == 0 {
		return nil
	}
	if c.given&(1<<rest) != 0 {
		return c.fail("got axes both in a dict and by keyword, want one of the two")
	}
	keys, err := axis.Of(names...)
	if err != nil {
		return c.fail(err.Error())
	}
	c.given |= 1 << rest
	return c.setMap(&c.info.Fields[rest], keys, values)
}

// rest is the field that takes the keywords that name no other; -1 if there is none.
func (c *call) rest() int {
	return slices.IndexFunc(c.info.Fields, func(f core.Field) bool { return f.Rest })
}

func (c *call) field(name string) int {
	for i := range c.info.Fields {
		if c.info.Fields[i].Name == name {
			return i
		}
	}
	return -1
}

// complete insists that every argument without a default was given.
func (c *call) complete() error {
	if c.info.Complete(c.given) {
		return nil
	}
	for i := range c.info.Fields {
		f := &c.info.Fields[i]
		if c.given&(1<<i) == 0 && !f.Optional && !f.Rest {
			return c.fail("got no " + f.Name + ", want " + c.usage())
		}
	}
	return nil
}

// set converts v into field i. None stands for an argument left out.
func (c *call) set(i int, v star.Value) error {
	f := &c.info.Fields[i]
	c.given |= 1 << i
	if v == star.None && f.Optional {
		return nil
	}
	p := f.At(c.op)
	ok := true
	switch f.Kind {
	case core.KindTensor:
		return c.setTensor(f, p, v)
	case core.KindTensors:
		return c.setTensors(f, p, v)
	case core.KindAxis:
		var s string
		s, ok = star.AsString(v)
		if ok && !axis.Valid(s) {
			return c.fail(fmt.Sprintf("%s: got %q, want one axis name", f.Name, s))
		}
		*(*core.Axis)(p) = core.Axis(s)
	case core.KindAxes:
		l, err := c.written.names(v)
		if err != nil {
			return c.fail(f.Name + ": " + err.Error())
		}
		*(*core.Axes)(p) = l
	case core.KindInt:
		n, err := star.AsInt32(v)
		ok = err == nil
		*(*int)(p) = n
	case core.KindFloat:
		*(*float64)(p), ok = star.AsFloat(v)
	case core.KindBool:
		var b star.Bool
		b, ok = v.(star.Bool)
		*(*bool)(p) = bool(b)
	case core.KindEnum:
		return c.setEnum(f, p, v)
	case core.KindPerAxis:
		return c.setPerAxis(f, v)
	case core.KindDType:
		s, _ := star.AsString(v)
		if *(*dtype.Type)(p), ok = dtype.Parse(s); !ok {
			names := strings.Join(dtypeNames(c.op), " ")
			return c.fail(fmt.Sprintf("%s: got %s, want a dtype: %s", f.Name, brief(v), names))
		}
	case core.KindNested:
		n, err := nested(c.env, v)
		if err != nil {
			return c.fail(f.Name + ": " + err.Error())
		}
		*(*core.Nested)(p) = n
	default:
		return c.setDict(f, v)
	}
	if !ok {
		return c.fail(fmt.Sprintf("%s: got %s, want %s", f.Name, v.Type(), kindText[f.Kind]))
	}
	return nil
}

// kindText is what messages call the kinds.
var kindText = map[core.Kind]string{
	core.KindTensor: "a tensor", core.KindTensors: "tensors", core.KindAxis: "an axis name",
	core.KindInt: "an integer of 32 bits", core.KindFloat: "a number", core.KindBool: "True or False",
	core.KindSizes: "axis=size pairs or a dict", core.KindRanges: "axis=(start, stop) pairs or a dict",
	core.KindRename: `old="new" pairs or a dict`, core.KindGroups: `new="axis axis" pairs or a dict`,
	core.KindPairs:   "axis=(before, after) pairs or a dict",
	core.KindPerAxis: "an integer or a dict of axis names",
}

func (c *call) setTensor(f *core.Field, p unsafe.Pointer, v star.Value) error {
	t, ok := v.(Tensor)
	if ok {
		*(**core.Tensor)(p) = t.Tensor
		return nil
	}
	want := kindText[f.Kind]
	if f.Number {
		n, err := operand(c.env, v)
		if err != nil {
			return c.fail(f.Name + ": " + err.Error())
		}
		if n != nil {
			*(**core.Tensor)(p) = n
			return nil
		}
		want += " or a number"
	}
	return c.fail(fmt.Sprintf("%s: got %s, want %s", f.Name, v.Type(), want))
}

func (c *call) setTensors(f *core.Field, p unsafe.Pointer, v star.Value) error {
	if t, ok := v.(Tensor); ok {
		*(*[]*core.Tensor)(p) = []*core.Tensor{t.Tensor}
		return nil
	}
	items, ok := v.(star.Tuple)
	if !ok {
		seq, ok := v.(star.Iterable)
		if !ok {
			return c.fail(fmt.Sprintf("%s: got %s, want a list of tensors", f.Name, v.Type()))
		}
		items = leadingTensors(seq)
	}
	return c.setTensorList(p, f, items)
}

func (c *call) setTensorList(p unsafe.Pointer, f *core.Field, items star.Tuple) error {
	list := make([]*core.Tensor, len(items))
	for i, item := range items {
		t, ok := item.(Tensor)
		if !ok {
			return c.fail(fmt.Sprintf("%s: got %s in the list, want tensors", f.Name, item.Type()))
		}
		list[i] = t.Tensor
	}
	*(*[]*core.Tensor)(p) = list
	return nil
}

// leadingTensors is the elements of seq up to the first that is no tensor.
func leadingTensors(seq star.Iterable) (items star.Tuple) {
	for item := range star.Elements(seq) {
		if items = append(items, item); !isTensor(item) {
			break
		}
	}
	return items
}

func (c *call) setEnum(f *core.Field, p unsafe.Pointer, v star.Value) error {
	s, _ := star.AsString(v)
	for _, word := range f.Enum {
		if word == s {
			*(*string)(p) = word
			return nil
		}
	}
	return c.fail(fmt.Sprintf("%s: got %s, want one of %s", f.Name, brief(v), strings.Join(f.Enum, ", ")))
}
