// Package chat renders the chat templates that come with language models: messages in, the text of the prompt out.
//
// Here lives the template language, Jinja as Python's jinja2 3.1 runs it for these templates (trim_blocks,
// lstrip_blocks and break and continue on), with limits on what a template may use, because a template comes with a
// file from anywhere. Not here: turning the text into tokens (models/token), and HTML, includes and inheritance, for
// which a chat template has no use.
package chat

import (
	"context"
	"fmt"
	"time"
)

// Error is what is wrong with a template, or what a template has to say against its input.
type Error struct {
	Line   int // of the template, the first is 1; 0: not about a line
	Msg    string
	Raised bool // the template itself refused: Msg is what it passed to raise_exception
}

func (e *Error) Error() string {
	where := "chat template"
	if e.Line > 0 {
		where = fmt.Sprintf("chat template, line %d", e.Line)
	}
	if e.Raised {
		return where + ": the template refuses: " + e.Msg
	}
	return where + ": " + e.Msg
}

// fail ends parsing or rendering; the line is added where it is recovered.
func fail(format string, args ...any) { failAt(0, format, args...) }

func failAt(line int, format string, args ...any) {
	panic(&Error{Line: line, Msg: fmt.Sprintf(format, args...)})
}

// caught turns a panic of fail into *err. Any other panic goes on.
func caught(err *error, line func() int) {
	switch p := recover().(type) {
	case nil:
	case *Error:
		if p.Line == 0 {
			p.Line = line()
		}
		*err = p
	case stopped:
		*err = p.error
	default:
		panic(p)
	}
}

// stopped is the panic of a rendering that its context ends.
type stopped struct{ error }

// Template is a parsed template. It may be rendered by many goroutines at once.
type Template struct {
	// BOS and EOS are bos_token and eos_token to the template: the texts of those tokens.
	BOS, EOS string
	// Now tells strftime_now the time; nil: time.Now.
	Now func() time.Time
	// MaxOutput bounds the text, in bytes; 0: 16 MiB.
	MaxOutput int
	// MaxWork bounds what a rendering does: every byte of text made counts 1, every entry of a list and every step
	// of evaluation 16, a turn of a loop 96; 0: 256 Mi, at most a few seconds.
	MaxWork int

	body block
}

// Parse reads a template. The error is an *Error.
func Parse(source string) (t *Template, err error) {
	p := &parser{}
	defer caught(&err, func() int { return p.now().line })
	p.tokens = lex(source)
	return &Template{body: p.block()}, nil
}

// Render returns the text that the template makes of vars, of which it may change nothing: messages (a list of
// dictionaries), tools, add_generation_prompt and whatever else it reads. A name without a value is undefined, as is
// one whose value is *Undefined. The error is an *Error, or ctx's.
func (t *Template) Render(ctx context.Context, vars *Dict) (text string, err error) {
	if ctx == nil {
		ctx = context.Background()
	}
	r := &run{t: t, ctx: ctx, left: t.MaxWork, out: &output{max: t.MaxOutput}}
	if r.left == 0 {
		r.left = 256 << 20
	}
	if r.out.max == 0 {
		r.out.max = 16 << 20
	}
	defer caught(&err, func() int { return r.line })
	root := &scope{vars: globals}
	r.scope = &scope{up: root, vars: map[string]Value{"bos_token": t.BOS, "eos_token": t.EOS}}
	if vars == nil {
		vars = NewDict()
	}
	for i, k := range vars.keys {
		name, ok := k.(string)
		if !ok {
			fail("a variable's name is %s, want a text", r.text(k))
		}
		r.scope.vars[name] = r.own(vars.vals[i])
	}
	t.body.exec(r)
	return r.out.text.String(), nil
}
