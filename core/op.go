package core

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/qdot"
)

// Op is an operation: a struct whose tagged fields are its arguments. Names is the rule by axis
// names. How the values come about is said by Evaluator, Viewer or Composer.
type Op interface {
	Names(p *Plan)
}

// Evaluator is an operation that computes its outputs: one kernel call over rows.
type Evaluator interface{ Eval(c *Ctx) }

// Viewer is an operation whose output shares the bytes of an operand. View lays it out; it reports
// false where that cannot be done, and the operation's Eval then copies instead.
type Viewer interface{ View(v *View) bool }

// Composer is an operation written as a few others; it needs no gradient of its own. Its Names and Sizes
// only check: the others say what the output is like.
type Composer interface{ Compose() *Tensor }

// Composers is a Composer with several outputs.
type Composers interface{ Compose() []*Tensor }

// Sizer is an operation whose sizes do not follow from equal names alone.
type Sizer interface{ Sizes(s *Sizes) }

// InPlace is an operation that changes the bytes of its first tensor operand and returns it. It is not stopped halfway.
type InPlace interface{ InPlace() }

// Preparing is an InPlace that does a part of its work before it changes anything: until Eval begins it can be stopped.
type Preparing interface{ Prepare(c *Ctx) }

// Chooser is an operation whose first operand only chooses among the others: plain numbers take the dtype
// of those.
type Chooser interface{ Chooses() }

// Quantizing is an operation that takes quantized tensors: as the operands whose bits are set, by their place among
// all tensor operands, and, if its dtype argument may be quantized, named is true. All others are refused.
type Quantizing interface {
	Quantized() (operands uint64, named bool)
}

// Axis is an argument that names one axis.
type Axis string

// Axes is an argument that names several axes, in any of the forms "a b", ("a", "b"). A nil Axes
// was not given.
type Axes = *axis.List

// Map is an argument with one value per axis name, in the order given.
type Map[V any] struct {
	Keys   *axis.List
	Values []V
}

// PerAxis is an argument with one whole number for all of some axes, or one for each of those listed in
// Each: an amount before and one after, equal unless the field takes pairs. A field with an enum tag takes
// one of its words instead.
type PerAxis struct {
	Word string
	All  int
	Each Map[[2]int]
}

// Every is a PerAxis of one number for all axes.
func Every(n int) PerAxis { return PerAxis{All: n} }

// At is the amounts for the named axis; one that is not listed has absent.
func (v PerAxis) At(name string, absent int) (before, after int) {
	if v.Each.Keys == nil {
		return v.All, v.All
	}
	if i := v.Each.Keys.Index(name); i >= 0 {
		return v.Each.Values[i][0], v.Each.Values[i][1]
	}
	return absent, absent
}

// Range is a slice of an axis as Python's start:stop:step; a missing start or stop is nil.
type Range struct{ Start, Stop, Step *int }

// Kind is the kind of an argument: how scripts spell it.
type Kind uint8

// The kinds of arguments.
const (
	KindTensor  Kind = iota + 1 // *Tensor
	KindTensors                 // []*Tensor: the remaining positional arguments, or a list
	KindAxis                    // Axis
	KindAxes                    // Axes
	KindInt                     // int
	KindFloat                   // float64
	KindBool                    // bool
	KindEnum                    // string, one of a fixed set
	KindDType                   // dtype.Type
	KindSizes                   // Map[int]
	KindRanges                  // Map[Range]
	KindRename                  // Map[string]
	KindGroups                  // Map[Axes]
	KindNested                  // Nested: numbers in lists
	KindPerAxis                 // PerAxis
	KindPairs                   // Map[[2]int]
)

var kinds = map[reflect.Type]Kind{
	reflect.TypeFor[*Tensor]():     KindTensor,
	reflect.TypeFor[[]*Tensor]():   KindTensors,
	reflect.TypeFor[Axis]():        KindAxis,
	reflect.TypeFor[Axes]():        KindAxes,
	reflect.TypeFor[int]():         KindInt,
	reflect.TypeFor[float64]():     KindFloat,
	reflect.TypeFor[bool]():        KindBool,
	reflect.TypeFor[string]():      KindEnum,
	reflect.TypeFor[dtype.Type]():  KindDType,
	reflect.TypeFor[Map[int]]():    KindSizes,
	reflect.TypeFor[Map[Range]]():  KindRanges,
	reflect.TypeFor[Map[string]](): KindRename,
	reflect.TypeFor[Map[Axes]]():   KindGroups,
	reflect.TypeFor[Nested]():      KindNested,
	reflect.TypeFor[PerAxis]():     KindPerAxis,
	reflect.TypeFor[Map[[2]int]](): KindPairs,
}

// Field is one argument of an operation.
//
// The tag is `arg:"name"`, optionally followed by "?" for an argument that may be left out, "=v"
// for one with a default, and by the words "number" (a tensor argument that also takes a plain
// number), "pairs" (a PerAxis that takes two numbers per axis) and "rest" (a map filled from the keywords
// that name no other argument), after commas.
// An `enum:"a b"` tag lists the words an enum argument takes.
type Field struct {
	Name     string
	Kind     Kind
	Optional bool
	Default  string // as Go writes the value; "" for the zero value of an optional argument
	Number   bool
	Rest     bool
	Pairs    bool
	Enum     []string
	offset   uintptr
}

// Info is an operation's entry in the table: what is known of it without calling it.
type Info struct {
	Name   string // as scripts spell it
	Fields []Field
	File   string    // the source file that declares it, for its documentation
	New    func() Op // an argument struct with every default set
	clone  func(Op) Op
	reset  func(Op)
	place  int                 // in the table, from 1; 0 if it is in none
	sample func(m *Maker) []Op // nil: the operation has no Samples of its own

	blank      Op // what New copies
	inPlace    bool
	made       bool       // of others: a Composer or Composers
	typed      bool       // it has a dtype argument
	fieldLines int        // of memory that calls look at: those of the first fields
	must       uint64     // the fields that have to be given, bit by bit; none of those from 64 on
	evals      Evaluator  // blank, for as; nil if it is none
	sizes      Sizer      // the same
	views      Viewer     // the same
	blocks     Quantizing // the same
	tensors    []int
	keyed      []int
	maps       []int // the fields that are a Map
	plans      planCache
}

// Decl is a declared operation whose argument struct is T.
type Decl[T any] struct {
	Info
	op func(*T) Op
}

// usualFields is how many arguments calls have that are made again and again.
const usualFields = 4

var registry = map[string]*Info{}

// All is every declared operation, by name.
func All() []*Info {
	list := make([]*Info, 0, len(registry))
	for _, info := range registry {
		list = append(list, info)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// Lookup is the operation that scripts call name, or nil.
func Lookup(name string) *Info { return registry[name] }

// Lookup is the operation that scripts of e's interpreter call name, or nil: of the table, else of e.Ops. e may be nil.
// What was asked for before is found without the table, which is far more memory.
func (e *Env) Lookup(name string) *Info {
	if e == nil || name == "" {
		return Lookup(name)
	}
	recent := &e.recent[(5*len(name)+int(name[0]))%len(e.recent)]
	if *recent != nil && (*recent).Name == name {
		return *recent
	}
	info := Lookup(name)
	if info == nil {
		return e.Ops[name]
	}
	*recent = info
	return info
}

// Declare enters the operation with argument struct T into the table. It is called once per
// operation, from a package variable.
func Declare[T any, P interface {
	*T
	Op
}](name string) *Decl[T] {
	d := Define[T, P](name)
	if registry[name] != nil {
		panic("core: operation " + name + " is declared twice")
	}
	registry[name] = &d.Info
	d.place = len(registry)
	return d
}

// Define makes an operation that is in no table: for the programs that bring operations of their own. Its
// documentation is what its method Doc() string returns, if it has one.
func Define[T any, P interface {
	*T
	Op
}](name string) *Decl[T] {
	_, file, _, _ := runtime.Caller(2)
	d := &Decl[T]{op: func(a *T) Op { return P(a) }}
	d.Info = Info{Name: name, File: file, blank: P(new(T))}
	d.inPlace, d.made = Is[InPlace](&d.Info), Is[Composer](&d.Info) || Is[Composers](&d.Info)
	d.evals, _ = d.blank.(Evaluator)
	d.sizes, _ = d.blank.(Sizer)
	d.views, _ = d.blank.(Viewer)
	d.blocks, _ = d.blank.(Quantizing)
	d.readFields(reflect.TypeFor[T](), 0)
	d.fieldLines = (min(len(d.Fields), usualFields)*int(unsafe.Sizeof(Field{})) + qdot.Line - 1) / qdot.Line
	d.setDefaults(d.blank)
	blank := (*T)(pointerOf(d.blank))
	d.New = func() Op {
		a := new(T)
		*a = *blank
		return P(a)
	}
	d.reset = func(op Op) { *op.(P) = *blank }
	d.clone = func(op Op) Op {
		a := *op.(P)
		return P(&a)
	}
	if s, ok := d.blank.(interface{ Samples(*Maker) []T }); ok {
		d.sample = func(m *Maker) []Op {
			list := s.Samples(m)
			ops := make([]Op, len(list))
			for i := range list {
				ops[i] = P(&list[i])
			}
			return ops
		}
	}
	return d
}

// Take is i.New, of memory that Give has given back if there is some.
func (e *Env) Take(i *Info) Op {
	if e != nil && i.place > 0 && i.place < len(e.spare) {
		if op := e.spare[i.place]; op != nil {
			e.spare[i.place] = nil
			return op
		}
	}
	return i.New()
}

// Give lets Take use op again, which has run to its end. Nobody may hold it: what is recorded for gradients is a copy.
func (e *Env) Give(i *Info, op Op) {
	if e == nil || i.place == 0 {
		return
	}
	if i.place >= len(e.spare) {
		e.spare = slices.Grow(e.spare, len(registry)+1)[:len(registry)+1]
	}
	i.reset(op)
	e.spare[i.place] = op
}

func (i *Info) readFields(t reflect.Type, base uintptr) {
	for f := range t.NumField() {
		sf := t.Field(f)
		tag, ok := sf.Tag.Lookup("arg")
		if !ok {
			if sf.Anonymous && sf.Type.Kind() == reflect.Struct {
				i.readFields(sf.Type, base+sf.Offset)
			}
			continue
		}
		spec, words, _ := strings.Cut(tag, ",")
		field := Field{Kind: kinds[sf.Type], offset: base + sf.Offset}
		if field.Kind == 0 {
			panic(fmt.Sprintf("core: %s: field %s has no argument kind", i.Name, sf.Name))
		}
		field.Name, field.Default, field.Optional = strings.Cut(spec, "=")
		if name, ok := strings.CutSuffix(field.Name, "?"); ok {
			field.Name, field.Optional = name, true
		}
		for word := range strings.FieldsSeq(strings.ReplaceAll(words, ",", " ")) {
			switch word {
			case "number":
				field.Number = true
			case "rest":
				field.Rest = true
			case "pairs":
				field.Pairs = true
			default:
				panic(fmt.Sprintf("core: %s: unknown word %q in the tag of %s", i.Name, word, sf.Name))
			}
		}
		field.Enum = strings.Fields(sf.Tag.Get("enum"))
		index := len(i.Fields)
		switch field.Kind {
		case KindTensor, KindTensors:
			i.tensors = append(i.tensors, index)
		case KindInt, KindFloat, KindNested, KindPerAxis:
		default:
			i.typed = i.typed || field.Kind == KindDType
			i.keyed = append(i.keyed, index)
		}
		switch field.Kind {
		case KindSizes, KindRanges, KindRename, KindGroups, KindPairs:
			i.maps = append(i.maps, index)
		}
		if !field.Optional && !field.Rest && index < 64 {
			i.must |= 1 << index
		}
		i.Fields = append(i.Fields, field)
	}
}

// Complete tells whether no argument without a default is missing: bit k of given says that field k is there.
func (i *Info) Complete(given uint64) bool { return i.must&^given == 0 && len(i.Fields) <= 64 }

// Is tells whether operations of this kind have the power P, such as Viewer.
func Is[P any](i *Info) bool {
	_, ok := i.blank.(P)
	return ok
}

// as is op with the power that blank, of the same operation, has: without a search for its methods, which goes through
// memory that is in no cache between two products.
func as[P any](blank P, op Op) P {
	(*[2]unsafe.Pointer)(unsafe.Pointer(&blank))[1] = pointerOf(op)
	return blank
}

// At is the address of the field's value in an operation's argument struct.
func (f *Field) At(op Op) unsafe.Pointer {
	return unsafe.Add(pointerOf(op), f.offset)
}

// pointerOf is the data word of an interface that holds a pointer.
func pointerOf(op Op) unsafe.Pointer {
	return (*[2]unsafe.Pointer)(unsafe.Pointer(&op))[1]
}

// setDefaults gives every argument with a default its value.
func (i *Info) setDefaults(op Op) {
	for k := range i.Fields {
		f := &i.Fields[k]
		p := f.At(op)
		if f.Rest {
			*(*Axes)(p) = axis.Empty // a map begins with its keys
		}
		if f.Default == "" {
			continue
		}
		var err error
		switch f.Kind {
		case KindInt:
			*(*int)(p), err = strconv.Atoi(f.Default)
		case KindFloat:
			*(*float64)(p), err = strconv.ParseFloat(f.Default, 64)
		case KindBool:
			*(*bool)(p), err = strconv.ParseBool(f.Default)
		case KindAxis:
			*(*Axis)(p) = Axis(f.Default)
		case KindAxes:
			*(*Axes)(p), err = axis.Parse(f.Default)
		case KindEnum:
			*(*string)(p) = f.Default
		case KindPerAxis:
			(*PerAxis)(p).All, err = strconv.Atoi(f.Default)
		case KindDType:
			*(*dtype.Type)(p), _ = dtype.Parse(f.Default)
		default:
			err = fmt.Errorf("an argument of this kind can have no default")
		}
		if err != nil {
			panic(fmt.Sprintf("core: %s: default of %s: %v", i.Name, f.Name, err))
		}
	}
}

// Nested is numbers as a script writes them: flat, row by row, with the sizes of the levels.
type Nested struct {
	Sizes   []int
	Floats  []float64 // set if any number has a fraction, or all are floats
	Ints    []int64
	Bools   []bool
	Bytes   []byte
	Invalid string // why the value given is not a nested list of numbers
}

// axisList is a list the program itself writes; a bad one is a bug of the caller.
func axisList(names ...string) *axis.List {
	l, err := axis.Parse(strings.Join(names, " "))
	if err != nil {
		panic(&Error{Op: "axes", Msg: err.Error()})
	}
	return l
}
