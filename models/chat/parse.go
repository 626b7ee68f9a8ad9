package chat

import "slices"

// parser turns tokens into statements.
type parser struct {
	tokens []token
	i      int
	nest   int // of blocks and brackets inside each other
	loops  int // that break and continue may mean
}

// maxNest bounds blocks and brackets inside each other in a source.
const maxNest = 100

func (p *parser) now() token {
	if p.i < len(p.tokens) {
		return p.tokens[p.i]
	}
	return token{}
}

func (p *parser) next() token {
	t := p.tokens[p.i]
	if t.kind != kindEnd {
		p.i++
	}
	return t
}

func (p *parser) is(k kind, text string) bool { return p.now().kind == k && p.now().text == text }

// skip takes a token if it comes next.
func (p *parser) skip(k kind, text string) bool {
	if p.is(k, text) {
		p.i++
		return true
	}
	return false
}

func (p *parser) want(k kind, text string) token {
	if !p.is(k, text) {
		fail("expected %q, got %q", text, p.now().text)
	}
	return p.next()
}

func (p *parser) name() string {
	if p.now().kind != kindName {
		fail("expected a name, got %q", p.now().text)
	}
	return p.next().text
}

func (p *parser) deeper() {
	if p.nest++; p.nest > maxNest {
		fail("more than %d blocks or brackets inside each other", maxNest)
	}
}

// block takes statements up to one of the tags that end it, which is taken up to its name; without ends, up to the
// end of the source.
func (p *parser) block(ends ...string) block {
	p.deeper()
	defer func() { p.nest-- }()
	b, begin := block{}, p.now().line
	for {
		t := p.next()
		switch t.kind {
		case kindEnd:
			if len(ends) > 0 {
				failAt(begin, "the block that begins here has no {%% %s %%}", ends[len(ends)-1])
			}
			return b
		case kindText:
			b = append(b, func(r *run) control { r.emit(t.text); return onward })
		case kindOpen:
			e := p.list()
			p.want(kindClose, "}}")
			b = append(b, func(r *run) control { r.emit(r.text(e(r))); return onward })
		case kindBegin:
			name := p.name()
			if slices.Contains(ends, name) {
				p.i--
				return b
			}
			b = append(b, p.statement(name))
		default:
			fail("unexpected %q", t.text)
		}
	}
}

func (p *parser) finish() { p.want(kindFinish, "%}") }

// end takes the rest of the tag that ends a block.
func (p *parser) end() {
	p.name()
	p.finish()
}

func (p *parser) statement(name string) stmt {
	switch name {
	case "if":
		return p.ifs()
	case "for":
		return p.fors()
	case "set":
		return p.set()
	case "macro":
		return p.macro()
	case "call":
		return p.callBlock()
	case "filter":
		return p.filterBlock()
	case "with":
		return p.with()
	case "break":
		return p.leave(breakLoop)
	case "continue":
		return p.leave(continueLoop)
	case "generation": // marks what the assistant said, for training
		p.finish()
		body := p.block("endgeneration")
		p.end()
		return body.exec
	}
	fail("unknown tag %q", name)
	return nil
}

func (p *parser) leave(c control) stmt {
	if p.loops == 0 {
		fail("break and continue need a loop around them")
	}
	p.finish()
	return func(*run) control { return c }
}

// bodyOf takes a block that break and continue cannot leave.
func (p *parser) bodyOf(end string) block {
	loops := p.loops
	p.loops = 0
	p.finish()
	body := p.block(end)
	p.end()
	p.loops = loops
	return body
}

// do is an expression as a statement.
func do(e expr) stmt { return func(r *run) control { e(r); return onward } }

func (p *parser) ifs() stmt {
	var conds []expr
	var bodies []block
	for {
		conds = append(conds, p.list())
		p.finish()
		bodies = append(bodies, p.block("elif", "else", "endif"))
		switch p.name() {
		case "elif":
			continue
		case "else":
			p.finish()
			bodies = append(bodies, p.block("endif"))
			p.name()
		}
		p.finish()
		return func(r *run) control {
			for i, cond := range conds {
				if truth(cond(r)) {
					return bodies[i].exec(r)
				}
			}
			if len(bodies) > len(conds) {
				return bodies[len(conds)].exec(r)
			}
			return onward
		}
	}
}

// targets takes what a loop or an assignment gives values to: names, separated by commas.
func (p *parser) targets() (names []string, tuple bool) {
	paren := p.skip(kindOp, "(")
	for {
		names = append(names, p.name())
		if !p.skip(kindOp, ",") {
			break
		}
		tuple = true
		if p.now().kind != kindName || p.is(kindName, "in") {
			break
		}
	}
	if paren {
		p.want(kindOp, ")")
	}
	return names, tuple
}

// assign gives v to the names, one by one if they are a tuple.
func (r *run) assign(names []string, tuple bool, v Value) {
	if !tuple {
		r.scope.vars[names[0]] = v
		return
	}
	items := r.items(v)
	if len(items) != len(names) {
		fail("%d values for %d names", len(items), len(names))
	}
	for i, name := range names {
		r.scope.vars[name] = items[i]
	}
}

// loop is a for statement.
type loop struct {
	names     []string
	tuple     bool
	over      expr
	filter    expr // nil: all
	recursive bool
	body      block
	none      block // else
}

func (p *parser) fors() stmt {
	l := &loop{}
	line := p.now().line
	l.names, l.tuple = p.targets()
	p.want(kindName, "in")
	l.over = p.tuple(p.or)
	if p.skip(kindName, "if") {
		l.filter = p.expression()
	}
	l.recursive = p.skip(kindName, "recursive")
	p.finish()
	p.loops++
	l.body = p.block("else", "endfor")
	p.loops--
	if p.name() == "else" {
		p.finish()
		l.none = p.block("endfor")
		p.name()
	}
	p.finish()
	return func(r *run) (c control) {
		at(line, func(r *run) Value { c = l.exec(r, r.scope, l.over(r), 1); return nil })(r)
		return c
	}
}

// exec is onward, unless the else block leaves a loop around this one.
func (l *loop) exec(r *run, s *scope, over Value, depth int) control {
	items := r.items(over)
	if l.filter != nil {
		var kept []Value
		for _, item := range items {
			r.inner(s, func() {
				r.assign(l.names, l.tuple, item)
				if truth(l.filter(r)) {
					r.entries(1)
					kept = append(kept, item)
				}
			})
		}
		items = kept
	}
	if len(items) == 0 && l.none != nil {
		ended := onward
		r.inner(s, func() { ended = l.none.exec(r) })
		return ended
	}
	state := &loopState{l: l, s: s, items: items, depth: int64(depth)}
	self := state.value()
	for i, item := range items {
		state.at(self, i)
		ended := onward
		r.inner(s, func() {
			r.assign(l.names, l.tuple, item)
			r.scope.vars["loop"] = self
			ended = l.body.exec(r)
		})
		if ended == breakLoop {
			break
		}
	}
	return onward
}

func (p *parser) set() stmt {
	line := p.now().line
	if p.i+1 < len(p.tokens) && p.tokens[p.i+1].text == "." && p.tokens[p.i+1].kind == kindOp {
		space := p.name()
		p.next()
		field := p.name()
		p.want(kindOp, "=")
		e := p.list()
		p.finish()
		return do(at(line, func(r *run) Value {
			v := e(r)
			o, ok := r.lookup(space).(*object)
			if !ok || !o.open {
				fail("cannot assign attribute on non-namespace object %s", space)
			}
			o.attr[field] = v
			return nil
		}))
	}
	names, tuple := p.targets()
	if p.skip(kindOp, "=") {
		e := p.list()
		p.finish()
		return do(at(line, func(r *run) Value { r.assign(names, tuple, e(r)); return nil }))
	}
	filtered := p.filters(piped)
	body := p.bodyOf("endset")
	return func(r *run) control {
		v := r.pipe(body, filtered)
		r.assign(names, tuple, v)
		return onward
	}
}

// piped is the text on its way into the filters of a block.
func piped(r *run) Value { return r.piped }

// pipe is what filters make of a block's text.
func (r *run) pipe(body block, filtered expr) Value {
	r.piped = r.capture(func() { r.inner(r.scope, func() { body.exec(r) }) })
	return filtered(r)
}

func (p *parser) filterBlock() stmt {
	filtered := p.filters(p.filter(piped))
	body := p.bodyOf("endfilter")
	return func(r *run) control {
		r.emit(r.text(r.pipe(body, filtered)))
		return onward
	}
}

func (p *parser) with() stmt {
	var names []string
	var values []expr
	for !p.is(kindFinish, "%}") {
		if len(names) > 0 {
			p.want(kindOp, ",")
		}
		names = append(names, p.name())
		p.want(kindOp, "=")
		values = append(values, p.expression())
	}
	p.finish()
	body := p.block("endwith")
	p.end()
	return func(r *run) (c control) {
		given := make([]Value, len(values))
		for i, e := range values {
			given[i] = e(r)
		}
		r.inner(r.scope, func() {
			for i, name := range names {
				r.scope.vars[name] = given[i]
			}
			c = body.exec(r)
		})
		return c
	}
}

// signature is the parameters of a macro or a call block.
type signature struct {
	names    []string
	defaults []expr // nil: none
}

func (p *parser) signature() *signature {
	s := &signature{}
	p.want(kindOp, "(")
	for !p.skip(kindOp, ")") {
		if len(s.names) > 0 {
			p.want(kindOp, ",")
		}
		s.names = append(s.names, p.name())
		var otherwise expr
		if p.skip(kindOp, "=") {
			otherwise = p.expression()
		}
		s.defaults = append(s.defaults, otherwise)
	}
	return s
}

// function is a block as a function: its text, with the parameters in a scope inside the one it was defined in.
func (s *signature) function(r *run, name string, body block) *function {
	home := r.scope
	return &function{name, func(r *run, c *call) Value {
		if len(c.pos) > len(s.names) {
			fail("macro '%s' takes not more than %d argument(s)", name, len(s.names))
		}
		r.spend(128)
		vars := map[string]Value{}
		for i, v := range c.pos {
			vars[s.names[i]] = v
		}
		for i, n := range c.names {
			if n != "caller" && !slices.Contains(s.names, n) {
				fail("macro '%s' takes no keyword argument '%s'", name, n)
			}
			vars[n] = c.named[i]
		}
		outer := r.scope
		r.scope = &scope{up: home, vars: vars}
		for i, n := range s.names {
			if _, given := vars[n]; given {
				continue
			}
			vars[n] = &undefined{"parameter '" + n + "' was not provided"}
			if s.defaults[i] != nil {
				vars[n] = s.defaults[i](r)
			}
		}
		text := r.capture(func() { body.exec(r) })
		r.scope = outer
		return text
	}}
}

func (p *parser) macro() stmt {
	name := p.name()
	s := p.signature()
	body := p.bodyOf("endmacro")
	return func(r *run) control {
		r.scope.vars[name] = s.function(r, name, body)
		return onward
	}
}

// callBlock is {% call(x) macro(…) %}: the macro gets the block as caller.
func (p *parser) callBlock() stmt {
	s := &signature{}
	if p.is(kindOp, "(") {
		s = p.signature()
	}
	line := p.now().line
	called := p.primary()
	for !p.is(kindOp, "(") {
		called = p.postfix(called)
	}
	args := p.arguments()
	body := p.bodyOf("endcall")
	text := at(line, func(r *run) Value {
		c := args(r)
		c.names = append(c.names, "caller")
		c.named = append(c.named, s.function(r, "caller", body))
		return r.invoke(called(r), c)
	})
	return func(r *run) control {
		r.emit(r.text(text(r)))
		return onward
	}
}
