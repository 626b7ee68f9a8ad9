package core

import (
	"fmt"
	"strings"
)

// fail panics with an *Error of the running operation.
func (c *call) fail(msg, hint string) {
	panic(&Error{Op: c.info.Name, Msg: msg, Hint: hint})
}

// param is what the operation calls operand t.
func (c *call) param(t *Tensor) string {
	for _, k := range c.info.tensors {
		f := &c.info.Fields[k]
		if f.Kind == KindTensor {
			if *(**Tensor)(f.At(c.op)) == t {
				return f.Name
			}
			continue
		}
		for i, x := range *(*[]*Tensor)(f.At(c.op)) {
			if x == t {
				return fmt.Sprintf("%s[%d]", f.Name, i)
			}
		}
	}
	return "x"
}

// describe is an operand's name and shape: `x[batch=8, seq=128]`.
func (c *call) describe(t *Tensor) string {
	if t.weak {
		return c.param(t) + ", a number,"
	}
	return c.param(t) + shapeText(t.axes, t.sizes)
}

// noAxis fails because operand t lacks the axis: with the nearest name, or with the other
// operand's axis of that name and size when a rename is what was forgotten.
func (c *call) noAxis(t *Tensor, name string) {
	for _, other := range c.in {
		if other == nil || other == t {
			continue
		}
		n := other.Size(name)
		if n < 0 {
			continue
		}
		msg := fmt.Sprintf("%q is not in %s", name, c.describe(t))
		for k, have := range t.axes.Names() {
			if t.sizes[k] == n && !other.axes.Has(have) {
				c.fail(msg, fmt.Sprintf("%s has %q of the same size: %s.rename(%s=%q)",
					c.param(t), have, c.param(t), keyword(have), name))
			}
		}
		c.fail(msg, "axes of "+c.param(t)+": "+orNone(t.axes.Names()))
	}
	msg, hint := unknownAxis(name, c.param(t), t.axes, t.sizes)
	c.fail(msg, hint)
}

// sizeConflict fails because an axis has two sizes.
func (c *call) sizeConflict(a, b *Tensor, name string) {
	x, y := a.Size(name), b.Size(name)
	long, short := a, b
	if x < y {
		long, short = b, a
	}
	n := min(x, y)
	hint := fmt.Sprintf("slice one of them: %s.slice(%s=(0, %d))", c.param(long), keyword(name), n)
	if n == 1 {
		hint = fmt.Sprintf("size 1 does not stretch: %s.at(%s=0)", c.param(short), keyword(name))
	}
	c.fail(fmt.Sprintf("axis %q is %d in %s but %d in %s", name, x, c.describe(a), y, c.describe(b)), hint)
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
	hint := "pass outer=True for every combination"
	for _, n := range theirs.Names() {
		for _, m := range mine.Names() {
			if x.Size(m) == y.Size(n) {
				c.fail(msg, fmt.Sprintf("if %q is meant to be %q: %s.rename(%s=%q); else %s",
					n, m, c.param(y), keyword(n), m, hint))
			}
		}
	}
	c.fail(msg, hint)
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

// keyword is an axis name as a script writes it before "=".
func keyword(name string) string {
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
