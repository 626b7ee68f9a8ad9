package starlark

import (
	"fmt"
	"slices"
	"strings"

	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/fucina-go/fucina/core"
)

// This file answers what Starlark, or a habit from NumPy or PyTorch, does with a tensor and a tensor does not
// do. An operation that is called wrongly answers for itself, in core and in correct.go.

var (
	_ star.Mapping   = Tensor{}
	_ star.HasSetKey = Tensor{}

	_ star.HasSetField = Tensor{}
	_ Refuser          = Tensor{}
)

// each is the list of x's parts along its first axis.
func (x Tensor) each() string {
	if x.Rank() == 0 {
		return "[x.item()]"
	}
	first := x.Axes().At(0)
	return fmt.Sprintf("[x.at(%s=i) for i in range(x.size(%q))]", core.Keyword(first), first)
}

// Refuse answers a tensor in a place where Starlark would ask for a sequence, which the syntax-tree pass asks
// for: an error.
func (x Tensor) Refuse(where string) error {
	bounds, sliced := strings.CutPrefix(where, "[:]")
	switch {
	case sliced && x.Rank() == 0:
		return &core.Error{Op: "slice", Msg: "a scalar has no axes to slice, got " + x.Shape(),
			Hint: "use x.item() instead"}
	case sliced:
		return &core.Error{Op: "slice", Msg: "a slice has to name its axis, got " + x.Shape(),
			Hint: fmt.Sprintf("instead: x.slice(%s=%s)", core.Keyword(x.Axes().At(0)), bounds)}
	}
	if where == "=" {
		where = "assignment"
	}
	return &core.Error{Op: where, Msg: "a tensor is not iterable, got " + x.Shape(), Hint: "use " + x.each()}
}

// Get answers x[k]: an error that says how to name the axis.
func (x Tensor) Get(k star.Value) (star.Value, bool, error) {
	return nil, false, &core.Error{Op: "index",
		Msg:  fmt.Sprintf("x[%s] does not name an axis of %s", asIndex(k), x.Shape()),
		Hint: "instead: " + x.indexed(k)}
}

// indexed is x[k] as it has to be written.
func (x Tensor) indexed(k star.Value) string {
	if x.Rank() == 0 {
		return "x.item()"
	}
	first := x.Axes().At(0)
	switch k := k.(type) {
	case Tensor:
		if k.DType().IsInt() {
			return fmt.Sprintf("x.gather(k, %q)", first)
		}
		return "x.masked_select(k)"
	case star.Tuple:
		var places []string
		for i, v := range k[:min(len(k), x.Rank())] {
			places = append(places, x.place(x.Axes().At(i), v))
		}
		return "x.at(" + strings.Join(places, ", ") + ")"
	case star.String:
		if name := string(k); x.Axes().Has(name) {
			return fmt.Sprintf("x.at(%s=0)", core.Keyword(name))
		}
	case star.IterableMapping:
		for _, item := range k.Items() {
			name, _ := star.AsString(item[0])
			if _, isRange := item[1].(star.Tuple); isRange && x.Axes().Has(name) {
				return fmt.Sprintf("x.slice(%s=%s)", core.Keyword(name), brief(item[1]))
			}
			if x.Axes().Has(name) {
				return "x.at(" + x.place(name, item[1]) + ")"
			}
		}
	}
	return "x.at(" + x.place(first, k) + ")"
}

// place is the keyword of at for place v of the axis, or the nearest that there is.
func (x Tensor) place(name string, v star.Value) string {
	i, _ := star.AsInt32(v)
	n := x.Size(name)
	return fmt.Sprintf("%s=%d", core.Keyword(name), max(-n, min(i, n-1)))
}

// asIndex is k as a message shows it between brackets.
func asIndex(k star.Value) string {
	if _, ok := k.(star.Tuple); ok {
		return strings.TrimSuffix(strings.Trim(brief(k), "()"), ",")
	}
	return brief(k)
}

// SetKey answers x[k] = v: an error that says what to call.
func (x Tensor) SetKey(k, _ star.Value) error {
	i, _ := star.AsInt32(k)
	hint := "instead: x = v"
	if x.Rank() > 0 {
		hint = fmt.Sprintf("instead: x.set(v, %s=(%d, %d))", core.Keyword(x.Axes().At(0)), i, i+1)
	}
	return &core.Error{Op: "index", Msg: fmt.Sprintf("x[%s] = v does not name an axis of %s", asIndex(k), x.Shape()),
		Hint: hint}
}

// SetField answers x.name = v: an error that says what to call.
func (x Tensor) SetField(name string, _ star.Value) error {
	e := &core.Error{Op: name, Msg: "a tensor's attributes are not assigned, got " + x.Shape()}
	switch name {
	case "grad":
		e.Hint = "instead: x.zero_grad()"
	case "requires_grad":
		e.Hint = "instead: variable(x)"
	}
	return e
}

// noOperator answers an operator that tensors do not have; nil for Starlark to answer if y may.
func (x Tensor) noOperator(op syntax.Token, y star.Value) error {
	code := map[syntax.Token]string{syntax.LTLT: "x.mul(pow(2, y))", syntax.GTGT: "x.floordiv(pow(2, y))"}[op]
	if _, may := y.(star.HasBinary); may && !isTensor(y) || code == "" {
		return nil
	}
	return &core.Error{Op: op.String(), Msg: "tensors have no " + op.String() + ", got " + x.Shape(),
		Hint: "instead: " + code}
}

// noOperand answers an operator between x and a value that is neither a tensor nor a number; nil if that value
// may have an answer of its own.
func (x Tensor) noOperand(op string, y star.Value) error {
	e := &core.Error{Op: op, Msg: fmt.Sprintf("got %s and %s, want tensors or numbers", x.Shape(), y.Type())}
	switch y := y.(type) {
	case star.String:
		e.Hint = "for a text: str(x)"
		if op == "mod" {
			e.Hint = "instead: fmt(\"{}\", x)"
		}
	case star.Bool:
		e.Hint = "as a number: int(y)"
	case star.NoneType:
		e.Hint = "instead: x"
	case star.Sequence:
		e.Hint = "as a tensor: tensor(y, " + x.levels(y) + ")"
	case star.HasBinary:
		return nil
	default:
		e.Hint = "instead: x"
	}
	return e
}

// levels is names for the axes of a tensor made of nested lists: x's last.
func (x Tensor) levels(y star.Sequence) string {
	depth := 0
	for v := star.Value(y); ; depth++ {
		seq, ok := v.(star.Sequence)
		if !ok || seq.Len() == 0 {
			break
		}
		for v = range star.Elements(seq) {
			break
		}
	}
	names := append(slices.Clone(usualAxes), x.Axes().Names()...)
	return fmt.Sprintf("%q", strings.Join(names[len(names)-min(max(depth, 1), len(names)):], " "))
}

// inBuiltins is what to give Starlark's own functions in the place of a tensor.
func (x Tensor) inBuiltins(name string) (hint string) {
	value := "x.item()"
	if x.Len() != 1 {
		value = "x.sum().item()"
	}
	switch name {
	case "len":
		if x.Rank() == 0 {
			return "instead: x.size()"
		}
		return fmt.Sprintf("instead: x.size(%q)", x.Axes().At(0))
	case "float", "int":
		return "use " + value
	case "chr", "range":
		return "use int(" + value + ")"
	case "dict", "enumerate", "list", "reversed", "set", "sorted", "tuple", "zip":
		return "use " + x.each()
	}
	return ""
}

// forTensors words the error of one of Starlark's own functions that got tensors, or tensors in a list.
func forTensors(name string, args star.Tuple, err error) error {
	for _, arg := range args {
		if list, ok := arg.(star.Sequence); ok && slices.Contains([]string{"max", "min", "sorted"}, name) {
			for v := range star.Elements(list) {
				if x, ok := v.(Tensor); ok {
					return (&unordered{x: x}).by(name)
				}
			}
		}
		if x, ok := arg.(Tensor); ok {
			if hint := x.inBuiltins(name); hint != "" {
				return &core.Error{Op: name, Msg: "does not take a tensor, got " + x.Shape(), Hint: hint}
			}
		}
	}
	return err
}

// unordered is what comparing x with another tensor gives where Starlark wants one bool.
type unordered struct {
	x  Tensor
	op syntax.Token
}

func (u *unordered) Error() string { return u.by(comparisonOps[u.op.String()]).Error() }

// by is the error of a function that wanted to order tensors.
func (u *unordered) by(name string) error {
	value := "x.item()"
	if u.x.Len() != 1 {
		value = "x.mean().item()"
	}
	return &core.Error{Op: name, Msg: "tensors have no order, got " + u.x.Shape(),
		Hint: fmt.Sprintf("order them by a number: %s(xs, key=lambda x: %s)", name, value)}
}

// unknownAttr answers an attribute that tensors do not have.
func (x Tensor) unknownAttr(name string) error {
	if say, code := x.habit(name); code != "" {
		return &core.Error{Op: name, Msg: say + ", got " + x.Shape(), Hint: "instead: " + code}
	}
	msg := fmt.Sprintf("tensors have no %s, got %s", name, x.Shape())
	names := x.AttrNames()
	if plain := strings.TrimRight(name, "_"); plain != name && slices.Contains(names, plain) {
		return &core.Error{Op: name, Msg: msg, Hint: fmt.Sprintf("did you mean x.%s?", plain)}
	}
	if near := nearest(name, names); near != "" {
		return &core.Error{Op: name, Msg: msg, Hint: fmt.Sprintf("did you mean x.%s?", near)}
	}
	if info := core.Lookup(name); info != nil {
		return &core.Error{Op: name, Msg: fmt.Sprintf("%s is a function, not a method, got %s", name, x.Shape()),
			Hint: info.AsIn()}
	}
	return &core.Error{Op: name, Msg: msg, Hint: "see what there is instead: dir(x)"}
}

// dtypeMethods are PyTorch's methods that convert.
var dtypeMethods = map[string]string{
	"bfloat16": "bf16", "bool": "bool", "byte": "u8", "char": "i8", "double": "f64", "float": "f32", "half": "f16",
	"int": "i32", "long": "i64", "short": "i16",
	"astype": "f32", "type": "f32",
}

// habit is what there is instead of an attribute of NumPy's or PyTorch's tensors; code is "" for others.
func (x Tensor) habit(name string) (say, code string) {
	if dt, ok := dtypeMethods[name]; ok {
		return "a dtype is changed by cast", fmt.Sprintf("x.cast(%q)", dt)
	}
	axes := x.Axes().Names()
	last := "row"
	if len(axes) > 0 {
		last = axes[len(axes)-1]
	}
	switch name {
	case "T", "H", "mT", "t", "moveaxis", "movedim", "permute", "swapaxes", "swapdims", "transpose":
		back := slices.Clone(axes)
		slices.Reverse(back)
		return "axes go by name, whatever their order", fmt.Sprintf("x.order(%q)", strings.Join(back, " "))
	case "flatten", "ravel", "reshape", "resize", "view", "view_as":
		if len(axes) < 2 {
			return "axes are split and merged by name", fmt.Sprintf("x.insert(%q)", x.freshAxis("row"))
		}
		return "axes are split and merged by name", fmt.Sprintf("x.merge(%s=%q)", x.freshAxis("flat"),
			strings.Join(axes, " "))
	case "unflatten":
		return "axes are split and merged by name", fmt.Sprintf("x.split(%q, %s=1, %s=-1)", last,
			x.freshAxis("outer"), x.freshAxis("inner"))
	case "unsqueeze", "expand_dims":
		return "an axis comes with its name", fmt.Sprintf("x.insert(%q)", x.freshAxis("batch"))
	case "broadcast_to", "expand_as":
		return "axes are repeated by name", fmt.Sprintf("x.expand(%s=2)", x.freshAxis("batch"))
	case "numpy", "data", "values":
		return "values come as lists", "x.tolist()"
	case "ndim", "dim", "ndimension":
		return "axes are listed by name", "len(x.axes)"
	case "numel", "nelement":
		return "sizes go by axis name", "x.size()"
	case "clone", "contiguous":
		return "tensors have copy", "x.copy()"
	case "cpu", "cuda":
		return "all tensors are where they are needed", "x"
	case "to":
		return "all tensors are on the CPU, and a dtype is changed by cast", `x.cast("f32")`
	case "matmul", "mm", "bmm", "mv", "inner":
		return "a product names the axis it sums over", "x.dot(w, x.axes[-1])"
	case "backward":
		return "the way back is a function", "backward(x)"
	case "requires_grad_":
		return "a variable is made, not marked", "variable(x)"
	case "fill_", "zero_":
		return "tensors are changed by set", "x.set(0)"
	case "median", "nanmedian":
		return "it is a quantile", fmt.Sprintf("x.quantile(0.5, %q)", last)
	case "clip":
		return "bounds are set by clamp", "x.clamp(0, 1)"
	}
	return "", ""
}

// freshAxis is name, or with a number if x has an axis of that name.
func (x Tensor) freshAxis(name string) string {
	fresh := name
	for n := 2; x.Axes().Has(fresh); n++ {
		fresh = fmt.Sprintf("%s_%d", name, n)
	}
	return fresh
}
