package chat

import (
	"math"
	"strconv"
)

// list takes expressions separated by commas: one, or a tuple.
func (p *parser) list() expr { return p.tuple(p.expression) }

func (p *parser) tuple(item func() expr) expr {
	line := p.now().line
	first := item()
	if !p.is(kindOp, ",") {
		return first
	}
	items := []expr{first}
	for p.skip(kindOp, ",") {
		if t := p.now(); t.kind == kindClose || t.kind == kindFinish || t.operator(")", "]", "=") {
			break
		}
		items = append(items, item())
	}
	return collect(line, items, true)
}

func collect(line int, items []expr, tuple bool) expr {
	return at(line, func(r *run) Value {
		r.entries(len(items))
		l := &List{Items: make([]Value, len(items)), Tuple: tuple}
		for i, e := range items {
			l.Items[i] = e(r)
		}
		return l
	})
}

// expression takes x if cond else y, or what binds tighter.
func (p *parser) expression() expr {
	p.deeper()
	defer func() { p.nest-- }()
	e := p.or()
	for p.is(kindName, "if") {
		line, then := p.next().line, e
		cond := p.or()
		otherwise := expr(func(*run) Value {
			return &undefined{"the inline if expression evaluated to false and no else section was defined"}
		})
		if p.skip(kindName, "else") {
			otherwise = p.expression()
		}
		e = at(line, func(r *run) Value {
			if truth(cond(r)) {
				return then(r)
			}
			return otherwise(r)
		})
	}
	return e
}

func (p *parser) or() expr {
	left := p.and()
	for p.is(kindName, "or") {
		line, a := p.next().line, left
		b := p.and()
		left = at(line, func(r *run) Value {
			if v := a(r); truth(v) {
				return v
			}
			return b(r)
		})
	}
	return left
}

func (p *parser) and() expr {
	left := p.not()
	for p.is(kindName, "and") {
		line, a := p.next().line, left
		b := p.not()
		left = at(line, func(r *run) Value {
			if v := a(r); !truth(v) {
				return v
			}
			return b(r)
		})
	}
	return left
}

func (p *parser) not() expr {
	if !p.is(kindName, "not") {
		return p.comparison()
	}
	p.deeper()
	defer func() { p.nest-- }()
	line := p.next().line
	e := p.not()
	return at(line, func(r *run) Value { return !truth(e(r)) })
}

// comparison takes a < b <= c, which is a < b and b <= c.
func (p *parser) comparison() expr {
	first := p.sum()
	var ops []string
	var others []expr
	line := p.now().line
	for {
		t := p.now()
		switch {
		case t.operator("==", "!=", "<", ">", "<=", ">="), t.kind == kindName && t.text == "in":
			p.next()
		case t.kind == kindName && t.text == "not" && p.i+1 < len(p.tokens) && p.tokens[p.i+1].text == "in":
			p.next()
			p.next()
			t.text = "not in"
		default:
			if len(ops) == 0 {
				return first
			}
			return at(line, func(r *run) Value {
				a := first(r)
				for i, op := range ops {
					b := others[i](r)
					if !r.holds(a, b, op) {
						return false
					}
					a = b
				}
				return true
			})
		}
		ops = append(ops, t.text)
		others = append(others, p.sum())
	}
}

func (r *run) holds(a, b Value, op string) bool {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		return !r.equal(a, b)
	case "<":
		return r.compare(a, b, op) < 0
	case "<=":
		return r.compare(a, b, op) <= 0
	case ">":
		return r.compare(a, b, op) > 0
	case ">=":
		return r.compare(a, b, op) >= 0
	case "in":
		return r.contains(b, a)
	}
	return !r.contains(b, a)
}

// binary takes a chain of operators that bind alike, from the left.
func (p *parser) binary(operand func() expr, compute func(r *run, op string, a, b Value) Value, ops ...string) expr {
	left := operand()
	for {
		op := ""
		for _, o := range ops {
			if p.is(kindOp, o) {
				op = o
			}
		}
		if op == "" {
			return left
		}
		line, a := p.next().line, left
		b := operand()
		left = at(line, func(r *run) Value {
			x := a(r)
			y := b(r)
			return compute(r, op, x, y)
		})
	}
}

func (p *parser) sum() expr { return p.binary(p.concat, arithmetic, "+", "-") }

func (p *parser) concat() expr {
	return p.binary(p.product, func(r *run, _ string, a, b Value) Value {
		x, y := r.text(a), r.text(b)
		r.room(len(x) + len(y))
		return x + y
	}, "~")
}

func (p *parser) product() expr { return p.binary(p.power, arithmetic, "*", "/", "//", "%") }

func (p *parser) power() expr {
	return p.binary(func() expr { return p.unary(true) }, arithmetic, "**")
}

func (p *parser) unary(filters bool) expr {
	p.deeper()
	defer func() { p.nest-- }()
	t := p.now()
	var e expr
	if p.skip(kindOp, "-") || p.skip(kindOp, "+") {
		operand := p.unary(false)
		e = at(t.line, func(r *run) Value {
			v := operand(r)
			r.defined(v)
			i, f, isInt, ok := number(v)
			switch {
			case !ok:
				fail("bad operand type for unary %s: '%s'", t.text, typeName(v))
			case t.text == "+" && isInt:
				return i
			case t.text == "+":
				return f
			case isInt && i == math.MinInt64:
				fail("-(%d) has more than 64 bits", i)
			case isInt:
				return -i
			}
			return -f
		})
	} else {
		e = p.primary()
	}
	for p.now().operator(".", "[", "(") {
		e = p.postfix(e)
	}
	if filters {
		e = p.filters(e)
	}
	return e
}

func constant(v Value) expr { return func(*run) Value { return v } }

func (p *parser) primary() expr {
	t := p.next()
	switch t.kind {
	case kindName:
		switch t.text {
		case "true", "True":
			return constant(true)
		case "false", "False":
			return constant(false)
		case "none", "None":
			return constant(nil)
		}
		return at(t.line, func(r *run) Value { return r.lookup(t.text) })
	case kindString:
		for p.now().kind == kindString {
			t.text += p.next().text
		}
		return constant(t.text)
	case kindInt:
		i, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			fail("the number %.30s has more than 64 bits", t.text)
		}
		return constant(i)
	case kindFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			fail("the number %.30s is too large", t.text)
		}
		return constant(f)
	case kindOp:
		switch t.text {
		case "(":
			if p.skip(kindOp, ")") {
				return collect(t.line, nil, true)
			}
			e := p.list()
			p.want(kindOp, ")")
			return e
		case "[":
			return collect(t.line, p.sequence("]"), false)
		case "{":
			return p.dict(t.line)
		}
	}
	p.i--
	fail("unexpected %q", t.text)
	return nil
}

// sequence takes expressions separated by commas up to a bracket.
func (p *parser) sequence(end string) []expr {
	var items []expr
	for !p.skip(kindOp, end) {
		if len(items) > 0 {
			p.want(kindOp, ",")
			if p.skip(kindOp, end) {
				break
			}
		}
		items = append(items, p.expression())
	}
	return items
}

func (p *parser) dict(line int) expr {
	var keys, vals []expr
	for !p.skip(kindOp, "}") {
		if len(keys) > 0 {
			p.want(kindOp, ",")
			if p.skip(kindOp, "}") {
				break
			}
		}
		keys = append(keys, p.expression())
		p.want(kindOp, ":")
		vals = append(vals, p.expression())
	}
	return at(line, func(r *run) Value {
		r.entries(2 * len(keys))
		d := NewDict()
		for i := range keys {
			k := keys[i](r)
			d.put(k, vals[i](r))
		}
		return d
	})
}

// postfix takes .name, .0, […] or (…) behind e.
func (p *parser) postfix(e expr) expr {
	t := p.next()
	switch t.text {
	case ".":
		switch name := p.next(); name.kind {
		case kindName:
			return at(t.line, func(r *run) Value { return r.attr(e(r), name.text) })
		case kindInt:
			i, err := strconv.ParseInt(name.text, 10, 64)
			if err != nil {
				fail("the number %.30s has more than 64 bits", name.text)
			}
			return at(t.line, func(r *run) Value { return r.item(e(r), i) })
		}
		p.i--
		fail("expected a name behind the dot, got %q", p.now().text)
	case "[":
		return p.subscript(t.line, e)
	}
	p.i--
	args := p.arguments()
	return at(t.line, func(r *run) Value {
		f := e(r)
		return r.invoke(f, args(r))
	})
}

func (p *parser) subscript(line int, e expr) expr {
	var items []expr
	for !p.skip(kindOp, "]") {
		if len(items) > 0 {
			p.want(kindOp, ",")
		}
		var part [3]expr
		n, sliced := 0, false
		for !p.is(kindOp, "]") && !p.is(kindOp, ",") {
			if p.skip(kindOp, ":") {
				sliced = true
				if n++; n > 2 {
					fail("a slice has at most three parts")
				}
			} else {
				if part[n] != nil {
					fail("unexpected %q", p.now().text)
				}
				part[n] = p.expression()
			}
		}
		if !sliced && part[0] == nil {
			fail("unexpected %q", p.now().text)
		}
		if !sliced {
			items = append(items, part[0])
			continue
		}
		items = append(items, nil)
		if len(items) > 1 || !p.is(kindOp, "]") {
			fail("a slice stands alone in its brackets")
		}
		p.next()
		return at(line, func(r *run) Value {
			v := e(r)
			var bound [3]Value
			for i, b := range part {
				if b != nil {
					bound[i] = b(r)
				}
			}
			return r.slice(v, bound)
		})
	}
	if len(items) == 1 {
		key := items[0]
		return at(line, func(r *run) Value {
			v := e(r)
			return r.item(v, key(r))
		})
	}
	key := collect(line, items, true)
	return at(line, func(r *run) Value {
		v := e(r)
		return r.item(v, key(r))
	})
}

// arguments takes those of a call, in brackets.
func (p *parser) arguments() func(r *run) *call {
	p.want(kindOp, "(")
	var pos, named []expr
	var names []string
	for n := 0; !p.skip(kindOp, ")"); n++ {
		if n > 0 {
			p.want(kindOp, ",")
			if p.skip(kindOp, ")") {
				break
			}
		}
		if p.now().kind == kindName && p.i+1 < len(p.tokens) && p.tokens[p.i+1].kind == kindOp &&
			p.tokens[p.i+1].text == "=" {
			names = append(names, p.name())
			p.next()
			named = append(named, p.expression())
			continue
		}
		if len(named) > 0 {
			fail("an argument without a name stands behind one with")
		}
		pos = append(pos, p.expression())
	}
	return func(r *run) *call {
		r.entries(len(pos) + len(named))
		c := &call{pos: make([]Value, len(pos)), named: make([]Value, len(named))}
		c.names = append(c.names, names...)
		for i, e := range pos {
			c.pos[i] = e(r)
		}
		for i, e := range named {
			c.named[i] = e(r)
		}
		return c
	}
}

// filters takes | filters, is tests and calls behind e.
func (p *parser) filters(e expr) expr {
	for {
		switch {
		case p.skip(kindOp, "|"):
			e = p.filter(e)
		case p.is(kindName, "is"):
			e = p.test(e)
		case p.is(kindOp, "("):
			e = p.postfix(e)
		default:
			return e
		}
	}
}

func (p *parser) dotted() string {
	name := p.name()
	for p.skip(kindOp, ".") {
		name += "." + p.name()
	}
	return name
}

func (p *parser) filter(e expr) expr {
	line := p.now().line
	name := p.dotted()
	args := func(*run) *call { return &call{} }
	if p.is(kindOp, "(") {
		args = p.arguments()
	}
	return at(line, func(r *run) Value {
		v := e(r)
		return r.filter(name, v, args(r))
	})
}

func (r *run) filter(name string, v Value, c *call) Value {
	f, ok := filters[name]
	if !ok {
		fail("no filter named '%s'", name)
	}
	c.name = name
	return f(r, v, c)
}

func (p *parser) test(e expr) expr {
	line := p.next().line
	negated := p.skip(kindName, "not")
	name := p.dotted()
	args := func(*run) *call { return &call{} }
	switch t := p.now(); {
	case p.is(kindOp, "("):
		args = p.arguments()
	case t.kind == kindName && t.text != "else" && t.text != "or" && t.text != "and",
		t.kind == kindString, t.kind == kindInt, t.kind == kindFloat, t.operator("[", "{"):
		arg := p.primary()
		for p.now().operator(".", "[", "(") {
			arg = p.postfix(arg)
		}
		args = func(r *run) *call { return &call{pos: []Value{arg(r)}} }
	}
	return at(line, func(r *run) Value {
		v := e(r)
		return r.test(name, v, args(r)) != negated
	})
}

func (r *run) test(name string, v Value, c *call) bool {
	f, ok := tests[name]
	if !ok {
		fail("no test named '%s'", name)
	}
	c.name = name
	return f(r, v, c)
}
