package core

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fucina-go/fucina/core/axis"
)

// shownOperands is up to how many operands a message describes all of them, and not only those it is about.
const shownOperands = 4

// Misuse is the *Error of a call with the arguments in op, which may be incomplete. A message about an
// operation on several tensors describes each of them: those that msg does not mention are added.
func (i *Info) Misuse(op Op, msg, hint string) *Error {
	var rest []string
	count := 0
	operands := i.operands(op)
	for k, t := range operands {
		if t == nil || t.number || slices.Contains(operands[:k], t) {
			continue
		}
		count++
		if text := i.describe(op, t); !strings.Contains(msg, text) {
			rest = append(rest, text)
		}
	}
	if 1 < count && count <= shownOperands && len(rest) > 0 {
		msg += " (with " + strings.Join(rest, ", ") + ")"
	}
	return &Error{Op: i.Name, Msg: msg, Hint: hint}
}

// fail panics with an *Error of the running operation.
func (c *call) fail(msg, hint string) { panic(c.info.Misuse(c.op, msg, hint)) }

// param is what an operation calls its operand t.
func (i *Info) param(op Op, t *Tensor) string {
	for _, k := range i.tensors {
		f := &i.Fields[k]
		if f.Kind == KindTensor {
			if *(**Tensor)(f.At(op)) == t {
				return f.Name
			}
			continue
		}
		for n, x := range *(*[]*Tensor)(f.At(op)) {
			if x == t {
				return fmt.Sprintf("%s[%d]", f.Name, n)
			}
		}
	}
	return "x"
}

func (c *call) param(t *Tensor) string { return c.info.param(c.op, t) }

// describe is an operand's name and shape: `x[batch=8, seq=128]`.
func (i *Info) describe(op Op, t *Tensor) string {
	if t.number {
		return i.param(op, t) + ", a number,"
	}
	return i.param(op, t) + shapeText(t.axes, t.sizes)
}

func (c *call) describe(t *Tensor) string { return c.info.describe(c.op, t) }

// remedy is a way to put a call right.
type remedy struct {
	words string    // what it does; "" asks whether it was meant
	code  string    // what to write instead of the call, or of the operand it begins with
	op    func() Op // the call put right
}

// hint offers the first of the remedies that helps. The message that it is for may be seen by helps alone:
// then there is none.
func (c *call) hint(remedies ...remedy) string {
	if len(remedies) == 0 || c.env.trying {
		return ""
	}
	for _, r := range remedies {
		if c.helps(r.op) {
			return r.String()
		}
	}
	return remedies[0].String() // a step on the way, if there is more than one mistake
}

func (r remedy) String() string {
	if r.words == "" {
		return "did you mean " + r.code + "?"
	}
	return r.words + ": " + r.code
}

// helps tries whether the operation that op makes would pass the rules by names and sizes.
func (c *call) helps(op func() Op) (ok bool) {
	e := c.env
	was := e.shapeOnly
	e.trying, e.shapeOnly = true, true
	s := e.Open()
	defer func() {
		s.Close()
		e.trying, e.shapeOnly = false, was
		if recover() != nil {
			ok = false
		}
	}()
	c.info.Run(e, op(), nil)
	return true
}

// recall is the remedy of calling with other arguments.
func (c *call) recall(words string, op Op) remedy {
	return remedy{words, c.info.script(op), func() Op { return op }}
}

// refit is the hint of calling with another value of one argument.
func refit[V any](c *call, words, field string, v V) string {
	op := c.info.clone(c.op)
	for k := range c.info.Fields {
		if f := &c.info.Fields[k]; f.Name == field {
			*(*V)(f.At(op)) = v
		}
	}
	return c.hint(c.recall(words, op))
}

// along is the remedies of naming an axis of x, from the last, in the argument axis or axes.
func (c *call) along(x *Tensor) (tries []remedy) {
	for _, name := range slices.Backward(x.axes.Names()) {
		op := c.info.clone(c.op)
		for k := range c.info.Fields {
			switch f := &c.info.Fields[k]; f.Name {
			case "axis":
				*(*string)(f.At(op)) = name
			case "axes":
				*(*Axes)(f.At(op)) = axisList(name)
			}
		}
		tries = append(tries, c.recall("name one", op))
	}
	return tries
}

// unstrided is the call of a convolution or a pooling with windows, strides and dilations of 1.
func (c *call) unstrided() Op {
	op := c.info.clone(c.op)
	for k := range c.info.Fields {
		switch f := &c.info.Fields[k]; f.Name {
		case "stride", "dilation":
			*(*PerAxis)(f.At(op)) = Every(1)
		case "kernel":
			m := (*Map[int])(f.At(op))
			m.Values = slices.Repeat([]int{1}, len(m.Values))
		}
	}
	return op
}

// instead is the remedy of putting something else in the place of operand t: code, in which %s stands for t's
// name, and what change makes of t.
func (c *call) instead(words string, t *Tensor, code string, change func(*Tensor) *Tensor) remedy {
	return remedy{words, fmt.Sprintf(code, c.param(t)), func() Op {
		op := c.info.clone(c.op)
		operands := slices.Clone(c.info.operands(op))
		for k := range operands {
			if operands[k] == t {
				operands[k] = change(t)
			}
		}
		c.info.setOperands(op, operands)
		return op
	}}
}

// renamed is the remedy of renaming axes of operand t.
func (c *call) renamed(words string, t *Tensor, from, to []string) remedy {
	var pairs []string
	for k := range from {
		pairs = append(pairs, fmt.Sprintf("%s=%q", Keyword(from[k]), to[k]))
	}
	return c.instead(words, t, "%s.rename("+strings.Join(pairs, ", ")+")", func(t *Tensor) *Tensor {
		return rename.In(c.env, Rename{X: t, To: Map[string]{axisList(from...), to}})
	})
}

// repeated is the remedy of repeating operand t along axes that other has.
func (c *call) repeated(t, other *Tensor, names *axis.List) remedy {
	return c.instead("repeat "+c.param(t), t, "%s.expand("+sizesScript(other, names)+")", func(t *Tensor) *Tensor {
		return expand.In(c.env, Expand{X: t, Axes: other.sized(names)})
	})
}

// sizesScript is axes with their sizes in t as expand takes them.
func sizesScript(t *Tensor, names *axis.List) string {
	pairs := make([]string, names.Len())
	for k, n := range names.Names() {
		pairs[k] = fmt.Sprintf("%s=%d", Keyword(n), t.Size(n))
	}
	return strings.Join(pairs, ", ")
}

// oneAxis is the hint for operand t, which must have one axis, as x has it.
func (c *call) oneAxis(words string, t, x *Tensor) string {
	var tries []remedy
	for _, name := range slices.Backward(t.axes.Names()) {
		tries = append(tries, c.taken(words, t, t.axes.Without(axisList(name))))
	}
	for _, name := range slices.Backward(x.axes.Names()) {
		tries = append(tries, c.repeated(t, x, axisList(name)))
	}
	return c.hint(tries...)
}

// unlessEmpty is the hint to call only if an axis of the first operand has elements.
func (c *call) unlessEmpty(name string) string {
	call := c.info.script(c.op)
	return fmt.Sprintf("there is nothing to choose from: %s if %s.size(%q) else None", call, c.param(c.in[0]), name)
}

// indexRange is the hint for an index, operand t, into an axis of n places.
func (c *call) indexRange(t *Tensor, n int) string {
	name := c.param(t)
	if n == 0 {
		return fmt.Sprintf("the axis is empty, look nothing up: %s.masked_select(%s.lt(0))", name, name)
	}
	return fmt.Sprintf("indices are 0 … %d: %s.clamp(0, %d)", n-1, name, n-1)
}

// freshNames is a name for each that is in none of the lists, made by adding a number.
func freshNames(names *axis.List, taken ...*axis.List) []string {
	fresh := make([]string, names.Len())
	for k, name := range names.Names() {
		fresh[k] = name
		free := func() bool {
			return !slices.ContainsFunc(taken, func(l *axis.List) bool { return l.Has(fresh[k]) }) &&
				!slices.Contains(fresh[:k], fresh[k])
		}
		for n := 2; !free(); n++ {
			fresh[k] = fmt.Sprintf("%s_%d", name, n)
		}
	}
	return fresh
}

// cut is the remedy of taking the first n places of an axis of operand t.
func (c *call) cut(t *Tensor, name string, n int) remedy {
	decode := ""
	if t.stored() {
		decode = ".dequantize()"
	}
	return c.instead("slice one of them", t, fmt.Sprintf("%%s%s.slice(%s=(0, %d))", decode, Keyword(name), n),
		func(t *Tensor) *Tensor {
			if t.stored() {
				t = dequantize.In(c.env, Dequantize{X: t})
			}
			return sliceOp.In(c.env, Slice{X: t, Ranges: Map[Range]{axisList(name), []Range{{Stop: &n}}}})
		})
}

// taken is the remedy of taking one place along axes of operand t.
func (c *call) taken(words string, t *Tensor, names *axis.List) remedy {
	return c.instead(words, t, "%s.at("+strings.Join(places(names), ", ")+")", func(t *Tensor) *Tensor {
		return at.In(c.env, At{X: t, Places: Map[int]{names, make([]int, names.Len())}})
	})
}

// places is the first place of each axis as at takes them.
func places(names *axis.List) []string {
	args := make([]string, names.Len())
	for k, n := range names.Names() {
		args[k] = Keyword(n) + "=0"
	}
	return args
}

// noAxis fails because operand t lacks the axis.
func (c *call) noAxis(t *Tensor, name string) {
	msg := fmt.Sprintf("no axis %q in %s", name, c.describe(t))
	if hint := c.keptAsBatch(t, name); hint != "" {
		c.fail(msg, hint)
	}
	var tries, last []remedy
	for _, other := range c.in {
		if other == nil || other == t || !other.axes.Has(name) {
			continue
		}
		msg = fmt.Sprintf("%q is not in %s but in %s", name, c.describe(t), c.describe(other))
		for k, have := range t.axes.Names() {
			if n := t.sizes[k]; n == other.Size(name) && (!other.axes.Has(have) || n != other.Size(have)) {
				words := fmt.Sprintf("%s has %q of the same size", c.param(t), have)
				tries = append(tries, c.renamed(words, t, []string{have}, []string{name}))
			}
		}
		last = append(last, c.repeated(t, other, axisList(name)))
		break
	}
	if near := t.axes.Nearest(name); near != "" {
		tries = append(tries, c.recall("", c.info.respelled(c.op, name, near)))
	}
	tries = append(tries, last...)
	if t.Rank() == 0 {
		tries = append(tries, c.instead("a scalar has no axes", t, fmt.Sprintf("%%s.expand(%s=1)", Keyword(name)),
			func(t *Tensor) *Tensor {
				return expand.In(c.env, Expand{X: t, Axes: Map[int]{axisList(name), []int{1}}})
			}))
	}
	words := "its axes are " + strings.Join(t.axes.Names(), ", ")
	for _, have := range slices.Backward(t.axes.Names()) {
		r := c.recall(words, c.info.respelled(c.op, name, have))
		if r.code == c.info.script(c.op) { // no argument names it: the operation wants it of the operand
			r = c.renamed(words, t, []string{have}, []string{name})
		}
		tries = append(tries, r)
	}
	all, without := c.info.clone(c.op), c.info.clone(c.op)
	for k := range c.info.Fields {
		if f := &c.info.Fields[k]; f.Kind == KindAxes {
			if l := (*Axes)(f.At(all)); *l != nil && (*l).Has(name) {
				*l = t.axes
			}
		}
	}
	c.info.leaveOut(without, name)
	c.fail(msg, c.hint(append(tries, c.recall(words, all), c.recall("leave it out", without))...))
}

// sizeConflict fails because an axis has two sizes.
func (c *call) sizeConflict(a, b *Tensor, name string) {
	x, y := a.Size(name), b.Size(name)
	long, short := a, b
	if x < y {
		long, short = b, a
	}
	tries := []remedy{c.cut(long, name, min(x, y))}
	if min(x, y) == 1 {
		tries = append([]remedy{c.taken("size 1 does not stretch", short, axisList(name))}, tries...)
	}
	c.fail(fmt.Sprintf("axis %q is %d in %s but %d in %s", name, x, c.describe(a), y, c.describe(b)), c.hint(tries...))
}

// disjoint fails because no operand has all the axes of the others.
func (c *call) disjoint(ts []*Tensor) {
	x, y := ts[0], ts[len(ts)-1]
	for _, t := range ts {
		if t != nil && t != x && !x.axes.HasAll(t.axes) && !t.axes.HasAll(x.axes) {
			y = t
			break
		}
	}
	mine, theirs := x.axes.Without(y.axes), y.axes.Without(x.axes)
	msg := fmt.Sprintf("%s alone has %s and %s alone has %s", c.describe(x), quoted(mine.Names()),
		c.describe(y), quoted(theirs.Names()))
	var from, to []string
	for _, n := range theirs.Names() {
		for _, m := range mine.Names() {
			if x.Size(m) == y.Size(n) && !slices.Contains(to, m) {
				from, to = append(from, n), append(to, m)
				break
			}
		}
	}
	var tries []remedy
	outer := c.outer()
	if len(from) > 0 {
		words := fmt.Sprintf("if %s is meant to be %s", quoted(from), quoted(to))
		if outer != nil {
			words = "outer=True gives every combination, or " + words
		}
		tries = append(tries, c.renamed(words, y, from, to))
	}
	if outer != nil {
		tries = append(tries, c.recall("for every combination", outer))
	}
	c.fail(msg, c.hint(append(tries, c.repeated(y, x, mine))...))
}

// outer is the call with outer=True; nil if the operation has no such argument.
func (c *call) outer() Op {
	for k := range c.info.Fields {
		if f := &c.info.Fields[k]; f.Name == "outer" && f.Kind == KindBool {
			op := c.info.clone(c.op)
			*(*bool)(f.At(op)) = true
			return op
		}
	}
	return nil
}

// reserved are Starlark's reserved words that could be axis names; scripts append an underscore.
var reserved = map[string]bool{
	"and": true, "break": true, "continue": true, "def": true, "elif": true, "else": true, "for": true, "if": true,
	"in": true, "lambda": true, "load": true, "not": true, "or": true, "pass": true, "return": true, "while": true,
	"as": true, "assert": true, "async": true, "await": true, "class": true, "del": true, "except": true,
	"finally": true, "from": true, "global": true, "import": true, "is": true, "nonlocal": true, "raise": true,
	"try": true, "with": true, "yield": true,
}

// Reserved tells whether a script cannot use name as a keyword argument and writes name_ instead.
func Reserved(name string) bool { return reserved[name] }

// Keyword is an axis name as a script writes it before "=".
func Keyword(name string) string {
	if reserved[name] {
		return name + "_"
	}
	return name
}

func quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(q, ", ")
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none, it is a scalar"
	}
	return strings.Join(names, ", ")
}
