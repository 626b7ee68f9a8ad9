package starlark

import (
	"errors"
	"fmt"
	"math"
	"strings"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/models/sample"
	"github.com/fucina-go/fucina/models/token"
)

// ownSettings parts the keywords that models/sample declares from the others.
func ownSettings(kwargs []star.Tuple) (settings, others []star.Tuple) {
	known := map[string]bool{}
	for _, set := range sample.List() {
		known[set.Name] = true
	}
	for _, kw := range kwargs {
		if known[text(kw[0])] {
			settings = append(settings, kw)
		} else {
			others = append(others, kw)
		}
	}
	return settings, others
}

// argumentNames is the names of the settings and of the arguments in pairs, as UnpackArgs takes them.
func argumentNames(pairs []any) (names []string) {
	for _, set := range sample.List() {
		names = append(names, set.Name)
	}
	for i := 0; i < len(pairs); i += 2 {
		names = append(names, strings.TrimRight(pairs[i].(string), "?"))
	}
	return names
}

// setSettings gives settings the values of keywords, and checks them all.
func setSettings(op string, s *sample.Settings, kwargs []star.Tuple) error {
	for _, kw := range kwargs {
		name, v := text(kw[0]), kw[1]
		for _, set := range sample.List() {
			if set.Name == name {
				if err := setSetting(op, set, s, v); err != nil {
					return err
				}
			}
		}
	}
	var refused *sample.SettingError
	if err := s.Check(); errors.As(err, &refused) {
		set := refused.Setting
		return &core.Error{Op: op, Msg: fmt.Sprintf("%s is %s", set.Name, refused.Got),
			Hint: fmt.Sprintf("want %s: %s", refused.Want, settingUsage(set))}
	}
	return nil
}

func setSetting(op string, set sample.Setting, s *sample.Settings, v star.Value) error {
	wrong := func(want string) error {
		return &core.Error{Op: op, Msg: fmt.Sprintf("%s: got %s, want %s", set.Name, v.Type(), want),
			Hint: fmt.Sprintf("as in: m.%s(\"once\", %s)", op, settingUsage(set))}
	}
	whole, isInt := v.(star.Int)
	switch p := set.In(s).(type) {
	case *float64:
		var ok bool
		if *p, ok = star.AsFloat(v); !ok {
			return wrong("a number")
		}
	case *int:
		if !isInt {
			return wrong("a whole number")
		}
		n, ok := whole.Int64()
		if *p = int(n); !ok || n > math.MaxInt32 || n < math.MinInt32 {
			return &core.Error{Op: op, Msg: fmt.Sprintf("%s is %s", set.Name, whole),
				Hint: "want a number of 32 bits: " + settingUsage(set)}
		}
	case *uint64:
		u, ok := whole.Uint64()
		if *p = u; !isInt || !ok {
			return wrong("a whole number of 0 or more, of 64 bits")
		}
	case *[]string:
		list, ok := v.(star.Iterable)
		if !ok {
			return wrong("a list of texts")
		}
		*p = nil
		for item := range star.Elements(list) {
			name, ok := star.AsString(item)
			if !ok {
				return wrong("a list of texts")
			}
			*p = append(*p, name)
		}
	}
	return nil
}

// settingUsage is name=default as a script writes it.
func settingUsage(set sample.Setting) string {
	var s sample.Settings
	if _, ok := set.In(&s).(*[]string); ok {
		return set.Name + `=["` + strings.Join(strings.Fields(set.Default), `", "`) + `"]`
	}
	return set.Name + "=" + set.Default
}

// settingsHelp lists the settings with their defaults.
func settingsHelp() string {
	var b strings.Builder
	b.WriteString("\nsettings:\n\n")
	for _, set := range sample.List() {
		b.WriteString(wrap("    ", settingUsage(set)+": "+set.Help))
	}
	return b.String()
}

// biases reads logit_bias: from ids, or texts, to what is added.
func (m *Model) biases(op string, v star.Value) ([]sample.Bias, error) {
	if v == star.None {
		return nil, nil
	}
	wrong := func(got string) error {
		return &core.Error{Op: op, Msg: "logit_bias: got " + got,
			Hint: `want a dict from ids or texts to numbers, or False: logit_bias={"the": -2.5, 17: False}`}
	}
	d, ok := v.(*star.Dict)
	if !ok {
		return nil, wrong(v.Type())
	}
	var biases []sample.Bias
	for _, item := range d.Items() {
		add, ok := star.AsFloat(item[1])
		if item[1] == star.False {
			add, ok = math.Inf(-1), true
		}
		if !ok || math.IsNaN(add) || math.IsInf(add, 1) {
			return nil, wrong(brief(item[1]) + " for " + brief(item[0]))
		}
		var ids []int32
		if s, isText := star.AsString(item[0]); isText {
			ids = m.tokens.Encode(s, token.Plain)
		} else {
			var err error
			if ids, err = m.ids(op, star.Tuple{item[0]}); err != nil {
				return nil, err
			}
		}
		for _, id := range ids {
			biases = append(biases, sample.Bias{ID: id, Add: float32(add)})
		}
	}
	return biases, nil
}

// breaks says of a token whether one of the texts is in it.
func (m *Model) breaks(texts []string) func(id int32) bool {
	known := map[int32]bool{}
	return func(id int32) bool {
		is, ok := known[id]
		if !ok {
			piece := m.tokens.Decode([]int32{id})
			for _, s := range texts {
				is = is || strings.Contains(piece, s)
			}
			known[id] = is
		}
		return is
	}
}
