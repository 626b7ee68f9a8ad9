package starlark

import (
	"fmt"
	"slices"
	"strings"

	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
)

// Tensor is a core.Tensor as a script sees it: the operations of core's table are its methods, and
// the arithmetic operators call them.
type Tensor struct{ *core.Tensor }

var (
	_ star.HasAttrs   = Tensor{}
	_ star.HasBinary  = Tensor{}
	_ star.HasUnary   = Tensor{}
	_ star.Comparable = Tensor{}
)

// Type is "tensor".
func (x Tensor) Type() string { return "tensor" }

// Freeze shares the tensor between interpreters: it can then be read everywhere and changed nowhere. One through
// which a gradient flows stays with its interpreter: the variables of a loaded module are to be trained.
func (x Tensor) Freeze() {
	if !x.Closed() && !x.Tracked() {
		x.Share()
	}
}

// Truth is always true, as Starlark gives it no way to fail; conditions never ask it, see Condition.
func (x Tensor) Truth() star.Bool { return true }

// Hash is that of the handle: two tensors are two keys, whatever they hold.
func (x Tensor) Hash() (uint32, error) {
	hint := "use x.item()"
	if x.Rank() > 0 {
		hint = "use str(x.tolist())"
	}
	return 0, &core.Error{Op: "hash", Msg: "a tensor cannot be a key, got " + x.Shape(), Hint: hint}
}

// Condition answers a tensor used as a condition, which the syntax-tree pass asks for: an error.
func (x Tensor) Condition(where string) (bool, error) {
	hint := "use x.item()"
	if x.Rank() > 0 {
		hint = "any() or all() of its elements: x.any().item()"
	}
	return false, &core.Error{Op: where, Msg: "a tensor has no truth value, got " + x.Shape(), Hint: hint}
}

// Scalar is the value of a tensor with one element and no axes, for fmt.
func (x Tensor) Scalar() (star.Value, bool) {
	if x.Rank() > 0 || x.Closed() {
		return nil, false
	}
	return number(x.Item()), true
}

// comparisonOps are the operations behind the comparisons.
var comparisonOps = map[string]string{"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}

// Compare answers a comparison, which the syntax-tree pass asks for: an error, since the answer would
// have to be one bool, but for None.
func (x Tensor) Compare(op string, y star.Value, condition bool) (star.Value, error) {
	name := comparisonOps[op]
	if y == star.None && (op == "==" || op == "!=") {
		return star.Bool(op == "!="), nil
	}
	other, shapes := "y", "x is "+x.Shape()
	if isNumber(y) {
		other = y.String()
	} else if t, ok := y.(Tensor); ok {
		shapes = fmt.Sprintf("they are x%s and y%s", x.brackets(), t.brackets())
	}
	hint := fmt.Sprintf("compare by element: x.%s(%s)", name, other)
	switch {
	case x.Rank() == 0 && isNumber(y):
		hint = "compare its value: x.item()"
	case condition:
		hint += ".all().item()"
	}
	return nil, &core.Error{Op: name, Msg: fmt.Sprintf("x %s %s is no single True or False, %s", op, other, shapes),
		Hint: hint}
}

// brackets is x's axes and sizes: "[batch=8, seq=128]".
func (x Tensor) brackets() string {
	if x.Rank() == 0 {
		return "[]"
	}
	return strings.TrimPrefix(x.Shape(), x.DType().String())
}

// CompareSameType answers Starlark itself, when it sorts tensors or looks for one in a list.
func (x Tensor) CompareSameType(op syntax.Token, y star.Value, _ int) (bool, error) {
	if op == syntax.EQL || op == syntax.NEQ {
		_, err := x.Compare(op.String(), y, true)
		return false, err
	}
	return false, &unordered{x: x, op: op}
}

func isNumber(v star.Value) bool {
	switch v.(type) {
	case star.Int, star.Float, star.Bool:
		return true
	}
	return false
}

// Attr is a property or a method by name.
func (x Tensor) Attr(name string) (star.Value, error) {
	if info := x.Env().Lookup(name); info != nil && isMethod(info) {
		return &opFunc{info: info, self: x.Tensor}, nil
	}
	if p, ok := properties[name]; ok {
		return p(x)
	}
	if m, ok := methods[name]; ok {
		return m.BindReceiver(x), nil
	}
	return nil, x.unknownAttr(name)
}

// AttrNames is every property and method.
func (x Tensor) AttrNames() []string {
	var names []string
	for _, info := range core.All() {
		if isMethod(info) {
			names = append(names, info.Name)
		}
	}
	for name := range properties {
		names = append(names, name)
	}
	for name := range methods {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// properties are the attributes that are values.
var properties = map[string]func(Tensor) (star.Value, error){
	"axes":          tensorAxes,
	"dtype":         tensorDType,
	"grad":          tensorGrad,
	"requires_grad": tensorRequiresGrad,
	"shape":         tensorShape,
}

// tensorAxes is x.axes: the names of the axes, in order, as a tuple.
func tensorAxes(x Tensor) (star.Value, error) {
	names := make(star.Tuple, x.Rank())
	for i, n := range x.Axes().Names() {
		names[i] = star.String(n)
	}
	return names, nil
}

// tensorDType is x.dtype: the name of the type of the elements, such as "f32"; x.cast("f64") has another.
func tensorDType(x Tensor) (star.Value, error) { return star.String(x.DType().String()), nil }

// tensorRequiresGrad is x.requires_grad: whether x is a variable or was computed from one, so that backward and
// grad reach it. variable(x) makes one.
func tensorRequiresGrad(x Tensor) (star.Value, error) { return star.Bool(x.Tracked()), nil }

// tensorShape is x.shape: the size of each axis, as a dict by name. x.size("a") is one of them.
func tensorShape(x Tensor) (star.Value, error) {
	sizes := star.NewDict(x.Rank())
	for i, n := range x.Axes().Names() {
		if err := sizes.SetKey(star.String(n), star.MakeInt(x.Sizes()[i])); err != nil {
			return nil, err
		}
	}
	return sizes, nil
}

// methods are the attributes that are functions but no operations of the table.
var methods = map[string]*star.Builtin{
	"after_grad": star.NewBuiltin("after_grad", tensorAfterGrad),
	"detach":     star.NewBuiltin("detach", tensorDetach),
	"free":       star.NewBuiltin("free", tensorFree),
	"item":       star.NewBuiltin("item", tensorItem),
	"on_grad":    star.NewBuiltin("on_grad", tensorOnGrad),
	"size":       star.NewBuiltin("size", tensorSize),
	"tolist":     star.NewBuiltin("tolist", tensorToList),
	"unbind":     star.NewBuiltin("unbind", tensorUnbind),
	"zero_grad":  star.NewBuiltin("zero_grad", tensorZeroGrad),
}

// tensorFree is x.free(): gives the memory back at once. x may not be used afterwards.
func tensorFree(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	x := b.Receiver().(Tensor)
	if x.Env() == nil {
		return nil, &core.Error{Op: "free", Msg: x.Shape() + " is shared and has no owner",
			Hint: "it goes when nobody uses it, so instead: pass"}
	}
	x.Free()
	return star.None, nil
}

// tensorItem is x.item(): the one element of a scalar as a number.
func tensorItem(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	x := b.Receiver().(Tensor)
	if len(args) == 1 && x.Rank() == 1 {
		return nil, &core.Error{Op: b.Name(), Msg: "takes no place, got " + x.Shape(),
			Hint: fmt.Sprintf("a place goes by axis name: x.at(%s).item()", x.place(x.Axes().At(0), args[0]))}
	}
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	if it := interpOf(t); it.paths != nil && x.Len() == 1 && !x.Closed() {
		return unknown{it}, nil
	}
	return number(x.Item()), nil
}

// number is a Go number or bool as Starlark's.
func number(v any) star.Value {
	switch v := v.(type) {
	case float64:
		return star.Float(v)
	case int64:
		return star.MakeInt64(v)
	case bool:
		return star.Bool(v)
	}
	panic(fmt.Sprintf("no number: %T", v))
}

// tensorSize is x.size(axis=None): of one axis, or the number of elements.
func tensorSize(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	x := b.Receiver().(Tensor)
	var name string
	if len(args) == 1 && args[0] != star.None && !isString(args[0]) && x.Rank() > 0 {
		return nil, &core.Error{Op: b.Name(),
			Msg:  fmt.Sprintf("axis: got %s, want an axis name of %s", args[0].Type(), x.Shape()),
			Hint: fmt.Sprintf("as in: x.size(%q)", axisAt(x.Tensor, args[0]))}
	}
	if err := star.UnpackArgs(b.Name(), args, kwargs, "axis??", &name); err != nil {
		return nil, err
	}
	if name == "" {
		return star.MakeInt(x.Len()), nil
	}
	n := x.Size(name)
	if n < 0 {
		hint := "without a name all its elements are counted: x.size()"
		if near := x.Axes().Nearest(name); near != "" {
			hint = fmt.Sprintf("did you mean x.size(%q)?", near)
		} else if x.Rank() > 0 {
			names := x.Axes().Names()
			hint = fmt.Sprintf("its axes are %s: x.size(%q)", strings.Join(names, ", "), names[0])
		}
		return nil, &core.Error{Op: "size", Msg: fmt.Sprintf("no axis %q in %s", name, x.Shape()), Hint: hint}
	}
	return star.MakeInt(n), nil
}

// tensorToList is x.tolist(): nested lists of numbers, or a number for a scalar.
func tensorToList(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	x, it := b.Receiver().(Tensor), interpOf(t)
	sizes, elements := x.Sizes(), x.Elements()
	if k := slices.Index(sizes, 0); k >= 0 { // what holds the lists of nothing is there
		sizes = sizes[:k]
		elements = func(yield func(any) bool) {
			for yield(nil) {
			}
		}
	}
	bytes, n := 0.0, 1.0
	for _, size := range sizes {
		bytes += n * listBytes
		n *= float64(size)
	}
	if err := it.room("a list", uint64(min(bytes+n*(itemBytes+8), 1<<62))); err != nil {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("%v; got %s", err, x.Shape()),
			Hint: "take a part of it, as in: x.slice(" + x.Axes().At(0) + "=(0, 10)).tolist()"}
	}
	made, open := 0, make([][]star.Value, len(sizes)) // the lists that are not full yet
	for e := range elements {
		if made++; made%pieceLen == 0 {
			if err := it.spend(pieceLen / stepItems); err != nil {
				return nil, err
			}
		}
		if v = star.NewList(nil); e != nil {
			v = number(e)
		}
		k := len(sizes) - 1
		for ; k >= 0; k-- {
			if open[k] == nil {
				open[k] = make([]star.Value, 0, sizes[k])
			}
			if open[k] = append(open[k], v); len(open[k]) < sizes[k] {
				break
			}
			v, open[k] = star.NewList(open[k]), nil
		}
		if k < 0 {
			break
		}
	}
	return v, nil
}

// tensorUnbind is x.unbind(axis): a list of x.at(axis=0), x.at(axis=1), …; as many views as the axis has places.
func tensorUnbind(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var name string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "axis", &name); err != nil {
		return nil, err
	}
	x := b.Receiver().(Tensor)
	it := interpOf(t)
	if err := it.room("a list of views", uint64(max(0, x.Size(name)))*viewBytes); err != nil {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("%v; got %s", err, x.Shape()),
			Hint: fmt.Sprintf("go through a part of it, as in: x.slice(%s=(0, 10)).unbind(%[1]q)", name)}
	}
	var views []star.Value
	for view := range x.Unbind(name) {
		if err := it.spend(1); err != nil {
			return nil, err
		}
		views = append(views, Tensor{view})
	}
	return star.NewList(views), nil
}

// binaryOps are the operations behind the operators.
var binaryOps = map[syntax.Token]string{
	syntax.PLUS: "add", syntax.MINUS: "sub", syntax.STAR: "mul", syntax.SLASH: "div", syntax.SLASHSLASH: "floordiv",
	syntax.PERCENT: "mod", syntax.AMP: "bitwise_and", syntax.PIPE: "bitwise_or", syntax.CIRCUMFLEX: "bitwise_xor",
}

// operators are the operations behind the operators, by token: an operator is the hottest call a script makes.
var operators = func() (infos [64]*core.Info) {
	for op, name := range binaryOps {
		infos[op] = core.Lookup(name)
	}
	return infos
}()

// Binary is x op y or y op x, where y is a tensor or a number.
func (x Tensor) Binary(op syntax.Token, y star.Value, side star.Side) (v star.Value, err error) {
	info := operators[op]
	if info == nil {
		return nil, x.noOperator(op, y)
	}
	defer rescue(&err)
	if w, ok := y.(*weighed); ok {
		y = w.Value
	}
	other, err := operand(x.Env(), y)
	if err != nil {
		return nil, &core.Error{Op: info.Name, Msg: err.Error() + ", got " + x.Shape(),
			Hint: "a float can be as large: float(y)"}
	}
	if other == nil {
		return nil, x.noOperand(info.Name, y)
	}
	env := x.Env()
	if e := other.Env(); e != nil && e != env {
		env = nil // they will not go together, and one of the two may be at work
	}
	a := env.Take(info)
	first, second := x.Tensor, other
	if side == star.Right {
		first, second = second, first
	}
	*(**core.Tensor)(info.Fields[0].At(a)) = first
	*(**core.Tensor)(info.Fields[1].At(a)) = second
	result := info.Run1(nil, a)
	env.Give(info, a)
	return Tensor{result}, nil
}

// operand is v as an operand: a tensor or a plain number; nil for anything else.
func operand(env *core.Env, v star.Value) (*core.Tensor, error) {
	switch v := v.(type) {
	case Tensor:
		return v.Tensor, nil
	case star.Float:
		return core.Number(env, float64(v), 0, false), nil
	case star.Int:
		i, ok := v.Int64()
		if !ok {
			return nil, fmt.Errorf("the integer %s is too large for a tensor", v)
		}
		return core.Number(env, 0, i, true), nil
	}
	return nil, nil
}

// Unary is -x, +x or ~x.
func (x Tensor) Unary(op syntax.Token) (v star.Value, err error) {
	defer rescue(&err)
	name := map[syntax.Token]string{syntax.MINUS: "neg", syntax.TILDE: "bitwise_not"}[op]
	if op == syntax.PLUS {
		return x, nil
	}
	info := core.Lookup(name)
	if info == nil {
		return nil, nil
	}
	a := info.New()
	*(**core.Tensor)(info.Fields[0].At(a)) = x.Tensor
	var out [1]*core.Tensor
	return Tensor{info.Run(nil, a, out[:0])[0]}, nil
}

// axisNames is a list of axes as a script may write it: "a b", or a tuple or list of names.
func axisNames(v star.Value) (*axis.List, error) {
	switch v := v.(type) {
	case star.String:
		return axis.Parse(string(v))
	case star.Sequence:
		return axisNamesOf(v)
	}
	return nil, fmt.Errorf("got %s, want axis names such as \"batch seq\"", v.Type())
}

// axisTexts is lists by their texts. Calls write the same few again and again, and the table of all lists is behind a
// lock and far more memory.
type axisTexts [16]struct {
	text string
	list *axis.List
}

// longestAxisText is how long texts may be that an axisTexts keeps alive.
const longestAxisText = 64

// names is axisNames.
func (a *axisTexts) names(v star.Value) (*axis.List, error) {
	s, ok := v.(star.String)
	n := len(s)
	if a == nil || !ok || n == 0 || n > longestAxisText {
		return axisNames(v)
	}
	have := &a[(n+int(s[0])+3*int(s[n-1]))%len(a)]
	if have.text == string(s) {
		return have.list, nil
	}
	l, err := axis.Parse(string(s))
	if err == nil {
		have.text, have.list = string(s), l
	}
	return l, err
}

// axisNamesOf is a tuple or list of names. It is a function of its own because its loop moves what it returns to
// the heap.
func axisNamesOf(v star.Sequence) (*axis.List, error) {
	if n := v.Len(); n > 1000 {
		return nil, fmt.Errorf("got a list of %d axis names", n)
	}
	names := make([]string, 0, v.Len())
	for item := range star.Elements(v) {
		s, ok := star.AsString(item)
		if !ok {
			return nil, fmt.Errorf("got %s among the axis names, want strings", item.Type())
		}
		names = append(names, s)
	}
	return axis.Of(names...)
}
