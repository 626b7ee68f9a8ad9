package optim

import (
	"cmp"
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/fucina-go/fucina/core"
)

// sources is this package's own text, in which the documentation of optimizers and schedules stands.
//
//go:embed *.go
var sources embed.FS

// Info is what is known of an optimizer or a schedule without making one.
type Info struct {
	Name   string // as scripts spell it
	LR     float64
	Fields []Field

	file  string
	blank any // a pointer to the struct with every default set
}

// Field is one hyperparameter. The struct's tag is `arg:"name"`, or `arg:"name=default"` for one that may be left out;
// an `enum:"a b"` tag lists the words that a string may be.
type Field struct {
	Name     string
	Required bool
	Default  any // a float64, int, bool, string or [2]float64
	Enum     []string
	index    int
}

var rules, schedules []*Info

// Rules is every optimizer, by name.
func Rules() []*Info { return rules }

// Schedules is every schedule, by name.
func Schedules() []*Info { return schedules }

// declareRule enters an optimizer whose learning rate is lr unless something else is asked for. It is called once for
// each, from a package variable.
func declareRule[T any, P interface {
	*T
	Rule
}](name string, lr float64) *Info {
	i := describe(name, P(new(T)))
	i.LR = lr
	rules = enter(rules, i)
	return i
}

// declareSchedule enters a schedule.
func declareSchedule[T any, P interface {
	*T
	Schedule
}](name string) *Info {
	i := describe(name, P(new(T)))
	schedules = enter(schedules, i)
	return i
}

func enter(list []*Info, i *Info) []*Info {
	_, file, _, _ := runtime.Caller(2)
	i.file = filepath.Base(file)
	list = append(list, i)
	slices.SortFunc(list, func(a, b *Info) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// describe reads the tags of a struct and sets its defaults.
func describe(name string, blank any) *Info {
	i := &Info{Name: name, blank: blank}
	v := reflect.ValueOf(blank).Elem()
	for k := range v.NumField() {
		tag, ok := v.Type().Field(k).Tag.Lookup("arg")
		if !ok {
			continue
		}
		f := Field{index: k, Enum: strings.Fields(v.Type().Field(k).Tag.Get("enum"))}
		var text string
		f.Name, text, ok = strings.Cut(tag, "=")
		f.Required = !ok
		if ok {
			setText(name, v.Field(k), text)
		}
		f.Default = v.Field(k).Interface()
		i.Fields = append(i.Fields, f)
	}
	return i
}

// setText gives a field the value that a tag spells.
func setText(name string, v reflect.Value, text string) {
	var err error
	switch v.Interface().(type) {
	case float64:
		var x float64
		x, err = strconv.ParseFloat(text, 64)
		v.SetFloat(x)
	case int:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		v.SetInt(n)
	case bool:
		var is bool
		is, err = strconv.ParseBool(text)
		v.SetBool(is)
	case string:
		v.SetString(text)
	case [2]float64:
		var pair [2]float64
		_, err = fmt.Sscan(text, &pair[0], &pair[1])
		v.Set(reflect.ValueOf(pair))
	default:
		err = fmt.Errorf("no default for a %s", v.Type())
	}
	if err != nil {
		panic(fmt.Sprintf("optim: %s: %v", name, err))
	}
}

// Lookup is the Info called name, or nil.
func Lookup(list []*Info, name string) *Info {
	for _, i := range list {
		if i.Name == name {
			return i
		}
	}
	return nil
}

// NewRule is the optimizer's rule with every default set.
func (i *Info) NewRule() Rule { return i.clone(i.blank).(Rule) }

// NewSchedule is the schedule with every default set.
func (i *Info) NewSchedule() Schedule { return i.clone(i.blank).(Schedule) }

// Clone is a copy of a rule, to be given other hyperparameters.
func (i *Info) Clone(r Rule) Rule { return i.clone(r).(Rule) }

func (i *Info) clone(x any) any {
	v := reflect.New(reflect.TypeOf(x).Elem())
	v.Elem().Set(reflect.ValueOf(x).Elem())
	return v.Interface()
}

// Set gives the hyperparameter of a rule or schedule a value of its Default's type.
func (f *Field) Set(x, value any) {
	reflect.ValueOf(x).Elem().Field(f.index).Set(reflect.ValueOf(value))
}

// Field is the hyperparameter called name, or nil.
func (i *Info) Field(name string) *Field {
	for k := range i.Fields {
		if i.Fields[k].Name == name {
			return &i.Fields[k]
		}
	}
	return nil
}

// Usage is the hyperparameters with their defaults, as a script writes them.
func (i *Info) Usage() string {
	var parts []string
	for _, f := range i.Fields {
		text := f.Name
		if !f.Required {
			text += "=" + literal(f.Default)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// literal is a value as a script writes it.
func literal(v any) string {
	switch v := v.(type) {
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case string:
		return strconv.Quote(v)
	case [2]float64:
		return fmt.Sprintf("(%v, %v)", v[0], v[1])
	}
	return fmt.Sprint(v)
}

// Doc is the comment on the struct, as text. The one source file is parsed now, never at start.
func (i *Info) Doc() (string, error) {
	src, err := sources.ReadFile(i.file)
	if err != nil {
		return "", err
	}
	f, err := parser.ParseFile(token.NewFileSet(), i.file, src, parser.ParseComments)
	if err != nil {
		return "", err
	}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if ok && g.Tok == token.TYPE && g.Specs[0].(*ast.TypeSpec).Name.Name == reflect.TypeOf(i.blank).Elem().Name() {
			return g.Doc.Text(), nil
		}
	}
	return "", fmt.Errorf("optim: %s has no comment on its struct", i.Name)
}

// checks collects what is wrong with hyperparameters; the first finding counts.
type checks struct{ msg string }

func (c *checks) want(ok bool, name string, got any, want string) {
	if !ok && c.msg == "" {
		c.msg = fmt.Sprintf("%s is %s, want %s", name, literal(got), want)
	}
}

// atLeast0 refuses a negative number and NaN.
func (c *checks) atLeast0(name string, v float64) { c.want(v >= 0, name, v, "a number of at least 0") }

// fraction refuses what is not in [0, 1).
func (c *checks) fraction(name string, vs ...float64) {
	for i, v := range vs {
		if len(vs) > 1 {
			c.want(v >= 0 && v < 1, fmt.Sprintf("%s[%d]", name, i), v, "a number from 0 to below 1")
		} else {
			c.want(v >= 0 && v < 1, name, v, "a number from 0 to below 1")
		}
	}
}

func (c *checks) oneOf(name, v, words string) {
	c.want(slices.Contains(strings.Fields(words), v), name, v, "one of "+strings.Join(strings.Fields(words), ", "))
}

// panics with the finding, if there is one.
func (c *checks) panics(op string) {
	if c.msg != "" {
		panic(&core.Error{Op: op, Msg: c.msg})
	}
}
