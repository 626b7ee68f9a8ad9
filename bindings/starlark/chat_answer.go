package starlark

import (
	"fmt"
	"regexp"
	"slices"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/models/token"
)

// modelChat is m.chat(messages, tools=None, chat_template=None, max_tokens=None, stop=[], cache=None, callback=None,
// **settings): the answer to a talk, a list of dicts: {"role": "user", "content": "hello"}. It is as m.generate of
// m.chat_prompt(messages, tools=tools), an iterable of pieces of text, with all of its arguments and settings; any
// other argument is the template's, such as enable_thinking=False. The answer ends at the model's end of a turn. With
// cache, of m.cache(), the next turn evaluates only what is new.
func modelChat(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	m := b.Receiver().(*Model)
	r := request{op: b.Name()}
	settings, kwargs := ownSettings(kwargs)
	tmpl, kwargs, err := m.chatTemplate(b.Name(), kwargs)
	if err != nil {
		return nil, err
	}
	pairs := r.pairs()
	var own, extra []star.Tuple
	for _, kw := range kwargs {
		if slices.Contains(pairs, any(text(kw[0])+"?")) {
			own = append(own, kw)
			continue
		}
		extra = append(extra, kw)
		if err := checkExtra(b.Name(), text(kw[0]), m.template, pairs); err != nil {
			return nil, err
		}
	}
	if err := star.UnpackArgs(b.Name(), nil, own, pairs...); err != nil {
		return nil, err
	}
	prompt, err := interpOf(t).render(b.Name(), tmpl, args, extra)
	if err != nil {
		return nil, err
	}
	ids, err := m.talk(interpOf(t), b.Name(), string(prompt.(star.String)))
	if err != nil {
		return nil, err
	}
	return r.begin(t, m, ids, settings)
}

// checkExtra refuses an argument that the template does not read if it is nearly the name of another argument.
func checkExtra(op, name, template string, pairs []any) error {
	if regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(template) {
		return nil
	}
	known := append(argumentNames(pairs), "messages", "tools", "chat_template")
	if near := nearArgument(name, known); near != "" && near != name {
		return &core.Error{Op: op, Msg: fmt.Sprintf("got %s, which neither it nor the template reads", name),
			Hint: fmt.Sprintf("did you mean %s?", near)}
	}
	return nil
}

// talk is the tokens of a rendered template: those it spells, and the one that begins a text, if the model wants it and
// the template leaves it out.
func (m *Model) talk(it *Interp, op, prompt string) ([]int32, error) {
	if prompt == "" {
		return nil, &core.Error{Op: op, Msg: "the template makes an empty prompt of the messages"}
	}
	ids, err := m.tokens.EncodeUntil(prompt, token.ParseSpecial, it.stopper(op))
	if err != nil {
		return nil, err
	}
	around := m.tokens.Encode("", token.AddSpecial)
	if bos := m.tokens.BOS(); bos >= 0 && slices.Contains(around[:min(1, len(around))], bos) &&
		(len(ids) == 0 || ids[0] != bos) {
		ids = slices.Insert(ids, 0, bos)
	}
	return ids, nil
}
