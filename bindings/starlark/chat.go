package starlark

import (
	"context"
	"errors"
	"fmt"
	"time"

	startime "go.starlark.net/lib/time"
	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/models/chat"
)

// chatTemplate is a chat template as a script sees it.
type chatTemplate struct{ *chat.Template }

var _ star.HasAttrs = chatTemplate{}

func (chatTemplate) String() string        { return "<chat_template>" }
func (chatTemplate) Type() string          { return "chat_template" }
func (chatTemplate) Freeze()               {}
func (chatTemplate) Truth() star.Bool      { return true }
func (chatTemplate) Hash() (uint32, error) { return 0, errors.New("unhashable: chat_template") }

// HoldsNothing marks that no tensor of a script can be reached through it.
func (chatTemplate) HoldsNothing() {}

var chatRender = star.NewBuiltin("render", renderChat)

// Attr is the method.
func (c chatTemplate) Attr(name string) (star.Value, error) {
	if name == "render" {
		return chatRender.BindReceiver(c), nil
	}
	return nil, nil
}

// AttrNames is every attribute.
func (chatTemplate) AttrNames() []string { return []string{"render"} }

// newChatTemplate is chat_template(source, bos_token="", eos_token="", now=None): a chat template, written in Jinja, as
// models bring them. now is the time that strftime_now tells, as time.time(year=2025) makes one; None: the time it is.
func newChatTemplate(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var source, bos, eos string
	var now star.Value = star.None
	err := star.UnpackArgs(b.Name(), args, kwargs, "source", &source, "bos_token?", &bos, "eos_token?", &eos,
		"now?", &now)
	if err != nil {
		return nil, err
	}
	t, err := chat.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	t.BOS, t.EOS = bos, eos
	switch at := now.(type) {
	case star.NoneType:
	case startime.Time:
		t.Now = func() time.Time { return time.Time(at) }
	default:
		return nil, &core.Error{Op: b.Name(), Msg: "now: got " + now.Type() + ", want a time",
			Hint: "as in: chat_template(source, now=time.time(year=2025))"}
	}
	return chatTemplate{t}, nil
}

// renderChat is c.render(messages, tools=None, add_generation_prompt=True, **extra): the prompt as text. messages is a
// list of dicts: {"role": "user", "content": "hello"}; tools one of descriptions, as JSON schemas; extra whatever else
// the template reads, such as enable_thinking=False. The order of keys is kept.
func renderChat(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	return interpOf(t).render(b.Name(), b.Receiver().(chatTemplate).Template, args, kwargs)
}

// modelChatPrompt is m.chat_prompt(messages, tools=None, add_generation_prompt=True, chat_template=None, **extra): what
// the template in the model's file, or chat_template, makes of messages, a list of dicts: {"role": "user", "content":
// "hello"}. extra is whatever else the template reads, such as enable_thinking=False.
func modelChatPrompt(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	tmpl, kwargs, err := b.Receiver().(*Model).chatTemplate(b.Name(), kwargs)
	if err != nil {
		return nil, err
	}
	return interpOf(t).render(b.Name(), tmpl, args, kwargs)
}

// chatTemplate takes chat_template out of the arguments, and is that or the template in the file.
func (m *Model) chatTemplate(op string, kwargs []star.Tuple) (*chat.Template, []star.Tuple, error) {
	source, name := m.template, m.name
	var rest []star.Tuple
	for _, kw := range kwargs {
		if text(kw[0]) != "chat_template" {
			rest = append(rest, kw)
			continue
		}
		switch v := kw[1].(type) {
		case star.NoneType:
		case star.String:
			source, name = string(v), "chat_template"
		case chatTemplate:
			return v.Template, append(rest, kwargs[len(rest)+1:]...), nil
		default:
			return nil, nil, &core.Error{Op: op, Msg: "chat_template: got " + v.Type() + ", want a text",
				Hint: `as in: chat_template=read_text("template.jinja")`}
		}
	}
	if source == "" {
		return nil, nil, &core.Error{Op: op, Msg: m.name + " has no chat template (tokenizer.chat_template)",
			Hint: `give one: chat_template=read_text("template.jinja")`}
	}
	tmpl, err := chat.Parse(source)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s: %w", op, name, err)
	}
	if id := m.tokens.BOS(); id >= 0 {
		tmpl.BOS = m.tokens.Piece(id)
	}
	if id := m.tokens.EOS(); id >= 0 {
		tmpl.EOS = m.tokens.Piece(id)
	}
	return tmpl, rest, nil
}

// running is done when the run has to stop.
type running struct {
	context.Context
	it *Interp
}

// Err is why the run has to stop.
func (r running) Err() error {
	if why := r.it.stopped.Load(); why != nil {
		return why
	}
	return nil
}

// wantMessages is how messages are given.
const wantMessages = `as in: [{"role": "user", "content": "hello"}]`

// render fills a template's variables from the arguments of a call.
func (it *Interp) render(op string, t *chat.Template, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	vars := chat.NewDict()
	names := []string{"messages", "tools", "add_generation_prompt"}
	vars.Set("add_generation_prompt", true)
	if len(args) > len(names) {
		return nil, &core.Error{Op: op, Msg: fmt.Sprintf("got %d arguments by position, want at most 3", len(args)),
			Hint: "the others go by name: enable_thinking=False"}
	}
	for i, arg := range args {
		kwargs = append([]star.Tuple{{star.String(names[i]), arg}}, kwargs...)
	}
	given := map[string]star.Value{}
	for _, kw := range kwargs {
		name := text(kw[0])
		if given[name] != nil {
			return nil, &core.Error{Op: op, Msg: "got " + name + " twice"}
		}
		given[name] = kw[1]
		if name == "tools" && kw[1] == star.None {
			continue // a template asks whether there are any
		}
		v, err := it.chatValue(op, name, kw[1], 0)
		if err != nil {
			return nil, err
		}
		vars.Set(name, v)
	}
	if err := checkMessages(op, given["messages"]); err != nil {
		return nil, err
	}
	out, err := t.Render(running{context.Background(), it}, vars)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return star.String(out), it.spend(len(out) / stepBytes)
}

// checkMessages refuses what is no list of dicts with a role.
func checkMessages(op string, v star.Value) error {
	if v == nil {
		return &core.Error{Op: op, Msg: "got no messages", Hint: wantMessages}
	}
	list, ok := v.(star.Sequence)
	if _, isDict := v.(star.Mapping); !ok || isDict {
		return &core.Error{Op: op, Msg: "messages: got " + v.Type() + ", want a list of dicts", Hint: wantMessages}
	}
	i := 0
	for item := range star.Elements(list) {
		d, ok := item.(star.Mapping)
		if !ok {
			return &core.Error{Op: op, Msg: fmt.Sprintf("messages[%d] is %s, want a dict", i, item.Type()),
				Hint: wantMessages}
		}
		role, found, err := d.Get(star.String("role"))
		if _, isText := role.(star.String); err != nil || !found || !isText {
			return &core.Error{Op: op, Msg: fmt.Sprintf("messages[%d] has no role that is a text", i),
				Hint: wantMessages}
		}
		i++
	}
	return nil
}

// chatDepth bounds lists and dicts inside each other.
const chatDepth = 200

// chatValue is v as a template sees it; where says what it is part of.
func (it *Interp) chatValue(op, where string, v star.Value, depth int) (chat.Value, error) {
	if err := it.spend(1); err != nil {
		return nil, err
	}
	if depth > chatDepth {
		return nil, &core.Error{Op: op, Msg: fmt.Sprintf("%s has more than %d lists and dicts inside each other", where,
			chatDepth)}
	}
	entry := func(d *chat.Dict, name string, v star.Value) error {
		made, err := it.chatValue(op, fmt.Sprintf("%s[%q]", where, name), v, depth+1)
		if err == nil {
			d.Set(name, made)
		}
		return err
	}
	switch v := v.(type) {
	case star.NoneType:
		return nil, nil
	case star.Bool:
		return bool(v), nil
	case star.Int:
		i, ok := v.Int64()
		if !ok {
			return nil, &core.Error{Op: op, Msg: where + " has more than 64 bits", Hint: "give it as a text"}
		}
		return i, nil
	case star.Float:
		return float64(v), nil
	case star.String:
		return string(v), wholeText(op, where, string(v))
	case *star.Dict:
		d := chat.NewDict()
		for _, item := range v.Items() {
			name, ok := star.AsString(item[0])
			if !ok {
				return nil, &core.Error{Op: op, Msg: where + " has the key " + brief(item[0]) + ", want texts"}
			}
			if err := entry(d, name, item[1]); err != nil {
				return nil, err
			}
		}
		return d, nil
	case *starlarkstruct.Struct:
		d := chat.NewDict()
		for _, name := range v.AttrNames() {
			field, err := v.Attr(name)
			if err == nil {
				err = entry(d, name, field)
			}
			if err != nil {
				return nil, err
			}
		}
		return d, nil
	case star.Sequence: // a list, a tuple, a range
		l := &chat.List{}
		for item := range star.Elements(v) {
			made, err := it.chatValue(op, fmt.Sprintf("%s[%d]", where, len(l.Items)), item, depth+1)
			if err != nil {
				return nil, err
			}
			l.Items = append(l.Items, made)
		}
		return l, nil
	}
	return nil, &core.Error{Op: op, Msg: fmt.Sprintf("%s is %s, want texts, numbers, lists and dicts", where, v.Type()),
		Hint: "as a text: str(x)"}
}
