package core

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// script writes the operation as a script would call it, with operands under the names of their parameters
// and defaults left out. Messages show corrected calls this way.
func (i *Info) script(op Op) string {
	var args []string
	rest := -1
	positional := true
	for k := range i.Fields {
		f := &i.Fields[k]
		if f.Rest {
			rest = k
			continue
		}
		text := f.script(op)
		if f.Optional && text == f.script(i.blank) {
			positional = false
			continue
		}
		if !positional || f.Optional && f.Kind != KindAxes {
			text = f.Name + "=" + text
		}
		args = append(args, text)
	}
	if rest >= 0 {
		args = append(args, i.restScript(op, &i.Fields[rest])...)
	}
	if len(i.Fields) > 0 && i.Fields[0].Kind == KindTensor && args[0] == i.Fields[0].Name {
		return args[0] + "." + i.Name + "(" + strings.Join(args[1:], ", ") + ")"
	}
	return i.Name + "(" + strings.Join(args, ", ") + ")"
}

// restScript is the keywords that a field filled from the rest of them was given by; a dict if one of the keys
// would be taken for another argument.
func (i *Info) restScript(op Op, f *Field) []string {
	keys, values := f.entries(op)
	for k := range i.Fields {
		if keys.Has(i.Fields[k].Name) {
			return []string{dictScript(keys, values)}
		}
	}
	args := make([]string, keys.Len())
	for k, name := range keys.Names() {
		args[k] = Keyword(name) + "=" + values[k]
	}
	return args
}

func dictScript(keys *axis.List, values []string) string {
	items := make([]string, keys.Len())
	for k, name := range keys.Names() {
		items[k] = fmt.Sprintf("%q: %s", name, values[k])
	}
	return "{" + strings.Join(items, ", ") + "}"
}

// script is the field's value as a script writes it.
func (f *Field) script(op Op) string {
	p := f.At(op)
	switch f.Kind {
	case KindTensor:
		return (*(**Tensor)(p)).script(f.Name)
	case KindAxis, KindEnum:
		return fmt.Sprintf("%q", *(*string)(p))
	case KindAxes:
		if l := *(*Axes)(p); l != nil {
			return fmt.Sprintf("%q", l)
		}
		return "None"
	case KindInt:
		return strconv.Itoa(*(*int)(p))
	case KindFloat:
		return floatScript(*(*float64)(p))
	case KindBool:
		if *(*bool)(p) {
			return "True"
		}
		return "False"
	case KindDType:
		return fmt.Sprintf("%q", *(*dtype.Type)(p))
	case KindPerAxis:
		switch v := (*PerAxis)(p); {
		case v.Word != "":
			return fmt.Sprintf("%q", v.Word)
		case v.Each.Keys == nil:
			return strconv.Itoa(v.All)
		}
	case KindTensors, KindNested:
		return f.Name
	}
	return dictScript(f.entries(op))
}

// script is an operand: a plain number itself, else the parameter's name; None if it was left out.
func (t *Tensor) script(name string) string {
	switch {
	case t == nil:
		return "None"
	case !t.number:
		return name
	}
	switch v := t.element(0).(type) {
	case float64:
		return floatScript(v)
	case bool:
		if v {
			return "1"
		}
		return "0"
	default:
		return fmt.Sprint(v)
	}
}

func floatScript(v float64) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return fmt.Sprintf("float(\"%v\")", v)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// entries is what a field with one value per axis says, value by value as a script writes it.
func (f *Field) entries(op Op) (keys *axis.List, values []string) {
	p := f.At(op)
	if f.Kind == KindPerAxis {
		each := (*PerAxis)(p).Each
		for _, v := range each.Values {
			if v[0] == v[1] && !f.Pairs {
				values = append(values, strconv.Itoa(v[0]))
			} else {
				values = append(values, fmt.Sprintf("(%d, %d)", v[0], v[1]))
			}
		}
		return orEmpty(each.Keys), values
	}
	switch f.Kind {
	case KindSizes:
		for _, n := range (*Map[int])(p).Values {
			values = append(values, strconv.Itoa(n))
		}
	case KindPairs:
		for _, v := range (*Map[[2]int])(p).Values {
			values = append(values, fmt.Sprintf("(%d, %d)", v[0], v[1]))
		}
	case KindRanges:
		for _, r := range (*Map[Range])(p).Values {
			values = append(values, r.script())
		}
	case KindRename:
		for _, s := range (*Map[string])(p).Values {
			values = append(values, fmt.Sprintf("%q", s))
		}
	case KindGroups:
		for _, l := range (*Map[Axes])(p).Values {
			values = append(values, fmt.Sprintf("%q", l))
		}
	}
	return orEmpty(*(*Axes)(p)), values // a map begins with its keys
}

func orEmpty(l *axis.List) *axis.List {
	if l == nil {
		return axis.Empty
	}
	return l
}

// script is the range as a script writes it: (start, stop) or (start, stop, step).
func (r Range) script() string {
	place := func(p *int) string {
		if p == nil {
			return "None"
		}
		return strconv.Itoa(*p)
	}
	text := "(" + place(r.Start) + ", " + place(r.Stop)
	if r.Step != nil && *r.Step != 1 {
		text += ", " + place(r.Step)
	}
	return text + ")"
}

// respelled is a copy of op that says name wherever an argument names the axis old.
func (i *Info) respelled(op Op, old, name string) Op {
	op = i.clone(op)
	i.eachList(op, func(l *Axes) {
		if !(*l).Has(old) {
			return
		}
		if other, err := (*l).Rename(axisList(old), []string{name}); err == nil {
			*l = other
		}
	})
	for k := range i.Fields {
		f := &i.Fields[k]
		switch p := f.At(op); f.Kind {
		case KindAxis:
			if *(*string)(p) == old {
				*(*string)(p) = name
			}
		case KindRename:
			m := (*Map[string])(p)
			m.Values = slices.Clone(m.Values)
			if at := slices.Index(m.Values, old); at >= 0 {
				m.Values[at] = name
			}
		}
	}
	return op
}

// eachList calls change with every list of axes among the arguments of op, which is a copy, keys included.
func (i *Info) eachList(op Op, change func(l *Axes)) {
	for k := range i.Fields {
		f := &i.Fields[k]
		var l *Axes
		switch p := f.At(op); f.Kind {
		case KindAxes, KindSizes, KindRanges, KindRename, KindPairs:
			l = (*Axes)(p) // a map begins with its keys
		case KindPerAxis:
			l = &(*PerAxis)(p).Each.Keys
		case KindGroups:
			groups := (*Map[Axes])(p)
			groups.Values = slices.Clone(groups.Values)
			for k := range groups.Values {
				change(&groups.Values[k])
			}
			continue
		}
		if l != nil && *l != nil {
			change(l)
		}
	}
}

// leaveOut takes an axis out of the lists and the keys among the arguments of op, which is a copy.
func (i *Info) leaveOut(op Op, name string) {
	for k := range i.Fields {
		f := &i.Fields[k]
		switch p := f.At(op); f.Kind {
		case KindAxes:
			if l := (*Axes)(p); *l != nil && (*l).Has(name) {
				*l = (*l).Without(axisList(name))
			}
		case KindSizes:
			(*Map[int])(p).leaveOut(name)
		case KindRanges:
			(*Map[Range])(p).leaveOut(name)
		case KindRename:
			(*Map[string])(p).leaveOut(name)
		case KindPairs:
			(*Map[[2]int])(p).leaveOut(name)
		case KindPerAxis:
			(*PerAxis)(p).Each.leaveOut(name)
		}
	}
}

func (m *Map[V]) leaveOut(name string) {
	if m.Keys == nil || !m.Keys.Has(name) {
		return
	}
	at := m.Keys.Index(name)
	m.Keys, m.Values = m.Keys.Without(axisList(name)), slices.Delete(slices.Clone(m.Values), at, at+1)
}
