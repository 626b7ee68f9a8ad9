package chat

import (
	"math"
	"strings"
)

// A Value is what a template computes with: nil (none), bool, int64, float64, string, *List or *Dict. Any other type
// is refused where it is given.
type Value = any

// List is a list, or a tuple, which a template cannot change and which equals no list.
type List struct {
	Items []Value
	Tuple bool
	made  string // how Python writes what made it: dict_keys, or range(0, 3) whole
}

// Dict is a dictionary that keeps the order in which keys were added; the zero value has none. As in Python, keys are
// none, bools, numbers, texts and tuples of these, and 1, 1.0 and true are one key.
type Dict struct {
	keys, vals []Value
	at         map[any]int
}

// NewDict is a dictionary of nothing yet.
func NewDict() *Dict { return &Dict{} }

// Len is the number of entries.
func (d *Dict) Len() int { return len(d.keys) }

// Set gives key a value, at its old place or else at the end.
func (d *Dict) Set(key string, v Value) { d.put(key, v) }

// Get is the value of key.
func (d *Dict) Get(key string) (Value, bool) { return d.get(key) }

func (d *Dict) put(key, v Value) {
	k, ok := hashable(key)
	if !ok {
		fail("unhashable type: '%s'", typeName(key))
	}
	if i, ok := d.at[k]; ok {
		d.vals[i] = v
		return
	}
	if d.at == nil {
		d.at = map[any]int{}
	}
	d.at[k] = len(d.keys)
	d.keys, d.vals = append(d.keys, key), append(d.vals, v)
}

func (d *Dict) get(key Value) (Value, bool) {
	k, ok := hashable(key)
	if !ok {
		return nil, false
	}
	i, ok := d.at[k]
	if !ok {
		return nil, false
	}
	return d.vals[i], true
}

func (d *Dict) remove(key Value) (Value, bool) {
	v, ok := d.get(key)
	if !ok {
		return nil, false
	}
	keys, vals := d.keys, d.vals
	*d = *NewDict()
	gone, _ := hashable(key)
	for i, k := range keys {
		if h, _ := hashable(k); h != gone {
			d.put(k, vals[i])
		}
	}
	return v, true
}

// What a template meets besides the values that are given to it.
type (
	// undefined is what a name without a value stands for.
	undefined struct{ why string }
	// absent marks an argument that was not given.
	absent struct{}
	// function is what can be called.
	function struct {
		name string
		call func(r *run, c *call) Value
	}
	// object has attributes and no entries: a namespace, loop or cycler.
	object struct {
		name string
		attr map[string]Value
		open bool                        // set ns.x = … is allowed
		call func(r *run, c *call) Value // nil: it cannot be called
	}
	noneKey  struct{}
	tupleKey string
)

// hashable is a key for Go's maps that is the same for what Python holds equal.
func hashable(v Value) (any, bool) {
	switch v := v.(type) {
	case nil:
		return noneKey{}, true
	case bool:
		if v {
			return int64(1), true
		}
		return int64(0), true
	case int64, string:
		return v, true
	case float64:
		if i := int64(v); v == math.Trunc(v) && math.Abs(v) < 1<<62 {
			return i, true
		}
		return v, true
	case *List:
		if !v.Tuple {
			return nil, false
		}
		var b strings.Builder
		for _, item := range v.Items {
			h, ok := hashable(item)
			if !ok {
				return nil, false
			}
			b.WriteString(goKey(h))
		}
		return tupleKey(b.String()), true
	}
	return nil, false
}

// goKey writes a hashable so that different ones differ.
func goKey(h any) string {
	switch h := h.(type) {
	case string:
		return "s" + formatInt(int64(len(h))) + ":" + h
	case int64:
		return "i" + formatInt(h) + ";"
	case float64:
		return "f" + formatFloat(h) + ";"
	case tupleKey:
		return "t" + formatInt(int64(len(h))) + ":" + string(h)
	}
	return "n"
}

// typeName is Python's name of v's type.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *List:
		if v.Tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case *undefined:
		return "Undefined"
	case *function:
		return "function"
	case *object:
		return v.name
	}
	return "value"
}

func truth(v Value) bool {
	switch v := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return v.Len() > 0
	}
	return true
}

// number is v as a number; bools are 0 and 1.
func number(v Value) (i int64, f float64, isInt, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, 1, true, true
		}
		return 0, 0, true, true
	case int64:
		return v, float64(v), true, true
	case float64:
		return 0, v, false, true
	}
	return 0, 0, false, false
}

// equal is Python's ==.
func (r *run) equal(a, b Value) bool {
	defer r.deeper()()
	r.spend(1)
	ai, af, aInt, aNum := number(a)
	bi, bf, bInt, bNum := number(b)
	if aNum && bNum {
		if aInt && bInt {
			return ai == bi
		}
		return af == bf
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case string:
		b, ok := b.(string)
		if ok && len(a) == len(b) {
			r.spend(len(a))
		}
		return ok && a == b
	case *List:
		b, ok := b.(*List)
		if !ok || a.Tuple != b.Tuple || len(a.Items) != len(b.Items) {
			return false
		}
		for i := range a.Items {
			if !r.equal(a.Items[i], b.Items[i]) {
				return false
			}
		}
		return true
	case *Dict:
		b, ok := b.(*Dict)
		if !ok || a.Len() != b.Len() {
			return false
		}
		for i, k := range a.keys {
			if v, ok := b.get(k); !ok || !r.equal(a.vals[i], v) {
				return false
			}
		}
		return true
	case *function:
		return a == b
	case *object:
		return a == b
	}
	return false
}

// compare orders numbers, texts and lists; op is named when it cannot.
func (r *run) compare(a, b Value, op string) int {
	defer r.deeper()()
	r.spend(1)
	r.defined(a)
	r.defined(b)
	ai, af, aInt, aNum := number(a)
	bi, bf, bInt, bNum := number(b)
	if aNum && bNum {
		if aInt && bInt {
			return order(ai, bi)
		}
		return order(af, bf)
	}
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			r.spend(min(len(a), len(b)))
			return strings.Compare(a, b)
		}
	case *List:
		if b, ok := b.(*List); ok && a.Tuple == b.Tuple {
			for i := range min(len(a.Items), len(b.Items)) {
				if !r.equal(a.Items[i], b.Items[i]) {
					return r.compare(a.Items[i], b.Items[i], op)
				}
			}
			return order(len(a.Items), len(b.Items))
		}
	}
	fail("'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
	return 0
}

func order[T int | int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// own copies a value that was given, so that a template changes nothing outside; what is not a Value fails.
func (r *run) own(v Value) Value {
	defer r.deeper()()
	r.spend(1)
	switch v := v.(type) {
	case nil, bool, int64, float64, string, *function:
		return v
	case *List:
		items := make([]Value, len(v.Items))
		for i, item := range v.Items {
			items[i] = r.own(item)
		}
		return &List{Items: items, Tuple: v.Tuple}
	case *Dict:
		d := &Dict{at: make(map[any]int, v.Len())}
		for i, k := range v.keys {
			d.put(k, r.own(v.vals[i]))
		}
		return d
	}
	fail("a value of the Go type %T was given; want nil, bool, int64, float64, string, *List or *Dict", v)
	return nil
}
