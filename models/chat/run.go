package chat

import (
	"context"
	"strings"
)

// run is one rendering.
type run struct {
	t     *Template
	ctx   context.Context
	scope *scope
	out   *output
	line  int   // being evaluated
	depth int   // of evaluations inside each other
	left  int   // work that may still be done
	poll  int   // work until the context is asked again
	piped Value // see there
}

// output is text being made: the prompt, or what a macro or a block returns.
type output struct {
	text strings.Builder
	max  int
}

// scope is names and values; one that is not there is looked for further up.
type scope struct {
	up   *scope
	vars map[string]Value
}

// maxDepth bounds evaluations inside each other: an expression's parts, blocks, calls of macros. A call takes about
// five.
const maxDepth = 4000

// pollEvery is the work after which the context is asked; it takes well under a millisecond.
const pollEvery = 1 << 16

// spend counts work: n bytes made, or n/16 steps.
func (r *run) spend(n int) {
	r.left -= n
	if r.left < 0 || n < 0 {
		fail("the template does more work than is allowed; an endless loop?")
	}
	if r.poll -= n; r.poll <= 0 {
		r.poll = pollEvery
		if err := r.ctx.Err(); err != nil {
			panic(stopped{err})
		}
	}
}

// room spends what a text of n bytes takes, before it is made.
func (r *run) room(n int) {
	if n > r.out.max {
		fail("a text of %d bytes is longer than the %d allowed", n, r.out.max)
	}
	r.spend(n)
}

// entries spends what a list of n entries takes, before it is made.
func (r *run) entries(n int) {
	if n > r.left/16 {
		fail("a list of %d entries is more than is allowed", n)
	}
	r.spend(16 * n)
}

// deeper counts a level of depth; call what it returns to leave it.
func (r *run) deeper() func() {
	if r.depth++; r.depth > maxDepth {
		fail("too deep: more than %d evaluations inside each other; a macro that calls itself without end?", maxDepth)
	}
	return r.shallower
}

func (r *run) shallower() { r.depth-- }

func (r *run) emit(s string) {
	if r.out.text.Len()+len(s) > r.out.max {
		fail("the text is longer than the %d bytes allowed", r.out.max)
	}
	r.spend(len(s))
	r.out.text.WriteString(s)
}

// capture returns what f emits.
func (r *run) capture(f func()) string {
	outer := r.out
	r.out = &output{max: outer.max}
	f()
	text := r.out.text.String()
	r.out = outer
	return text
}

// inner runs f in a scope inside s.
func (r *run) inner(s *scope, f func()) {
	r.spend(96)
	outer := r.scope
	r.scope = &scope{up: s, vars: map[string]Value{}}
	f()
	r.scope = outer
}

func (r *run) lookup(name string) Value {
	for s := r.scope; s != nil; s = s.up {
		if v, ok := s.vars[name]; ok {
			return v
		}
	}
	return &undefined{"'" + name + "' is undefined"}
}

// defined refuses to compute with what has no value.
func (r *run) defined(v Value) {
	if u, ok := v.(*undefined); ok {
		fail("%s", u.why)
	}
}

// expr is an expression, ready to be evaluated.
type expr func(r *run) Value

// at makes an expression of a line, which counts its steps and its depth.
func at(line int, f expr) expr {
	return func(r *run) Value {
		if r.depth++; r.depth > maxDepth {
			r.depth--
			r.deeper()
		}
		r.spend(16)
		outer := r.line
		r.line = line
		v := f(r)
		r.line = outer
		r.depth--
		return v
	}
}

// control says how a statement ended.
type control int

const (
	onward control = iota
	breakLoop
	continueLoop
)

// stmt is a statement, ready to be executed.
type stmt func(r *run) control

type block []stmt

func (b block) exec(r *run) control {
	defer r.deeper()()
	for _, s := range b {
		r.spend(16)
		if c := s(r); c != onward {
			return c
		}
	}
	return onward
}

// call is the arguments of a call.
type call struct {
	name  string
	pos   []Value
	names []string
	named []Value
}

// bind returns the arguments in the order of the parameters' names, absent{} for those not given.
func (c *call) bind(params ...string) []Value {
	if len(c.pos) > len(params) {
		fail("%s takes at most %d arguments, got %d", c.name, len(params), len(c.pos))
	}
	got := make([]Value, len(params))
	for i := range got {
		got[i] = absent{}
	}
	copy(got, c.pos)
next:
	for i, name := range c.names {
		for j, p := range params {
			if p == name {
				if _, free := got[j].(absent); !free {
					fail("%s got two values for %s", c.name, name)
				}
				got[j] = c.named[i]
				continue next
			}
		}
		fail("%s has no parameter %s", c.name, name)
	}
	return got
}

// need is bind for parameters that must all be given.
func (c *call) need(params ...string) []Value {
	got := c.bind(params...)
	for i, v := range got {
		if _, missing := v.(absent); missing {
			fail("%s misses its argument %s", c.name, params[i])
		}
	}
	return got
}

// invoke calls f.
func (r *run) invoke(f Value, c *call) Value {
	r.defined(f)
	if o, ok := f.(*object); ok && o.call != nil {
		return o.call(r, c)
	}
	fn, ok := f.(*function)
	if !ok {
		fail("'%s' object is not callable", typeName(f))
	}
	if c.name == "" {
		c.name = fn.name
	}
	return fn.call(r, c)
}

// orElse is v, or a default if it was not given.
func orElse[T any](v Value, otherwise T, what string) T {
	switch v := v.(type) {
	case absent:
		return otherwise
	case T:
		return v
	}
	fail("got %s, want %s", typeName(v), what)
	return otherwise
}

func orValue(v, otherwise Value) Value {
	if _, missing := v.(absent); missing {
		return otherwise
	}
	return v
}

func orInt(v Value, otherwise int64) int64 {
	if b, ok := v.(bool); ok {
		v, _, _, _ = number(b)
	}
	return orElse(v, otherwise, "an integer")
}

func orText(v Value, otherwise string) string { return orElse(v, otherwise, "a text") }

func orTrue(v Value, otherwise bool) bool {
	if _, missing := v.(absent); missing {
		return otherwise
	}
	return truth(v)
}
