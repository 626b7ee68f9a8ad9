package chat

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// arithmetic is a op b for +, -, *, /, //, % and **.
func arithmetic(r *run, op string, a, b Value) Value {
	r.defined(a)
	r.defined(b)
	ai, af, aInt, aNum := number(a)
	bi, bf, bInt, bNum := number(b)
	switch {
	case aNum && bNum && aInt && bInt:
		return integers(op, ai, bi)
	case aNum && bNum:
		return floats(op, af, bf)
	}
	switch a := a.(type) {
	case string:
		b, isText := b.(string)
		switch {
		case op == "+" && isText:
			r.room(len(a) + len(b))
			return a + b
		case op == "+":
			fail(`can only concatenate str (not "%s") to str; use ~`, typeName(b))
		case op == "*" && bNum && bInt:
			return r.repeat(a, bi)
		}
	case *List:
		b, isList := b.(*List)
		switch {
		case op == "+" && isList && a.Tuple == b.Tuple:
			r.entries(len(a.Items) + len(b.Items))
			return &List{Items: slices.Concat(a.Items, b.Items), Tuple: a.Tuple}
		case op == "*" && bNum && bInt:
			n := max(bi, 0)
			if n > 0 && int64(len(a.Items)) > math.MaxInt32/n {
				fail("a list of %d times %d entries is more than is allowed", n, len(a.Items))
			}
			r.entries(int(n) * len(a.Items))
			return &List{Items: slices.Repeat(a.Items, int(n)), Tuple: a.Tuple}
		}
	}
	if a, ok := a.(string); ok && op == "%" {
		if l, ok := b.(*List); ok && l.Tuple {
			return r.percent(a, l.Items)
		}
		return r.percent(a, []Value{b})
	}
	if s, ok := b.(string); ok && op == "*" && aNum && aInt {
		return r.repeat(s, ai)
	}
	fail("unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b))
	return nil
}

func (r *run) repeat(s string, n int64) string {
	n = max(n, 0)
	if n > 0 && int64(len(s)) > int64(r.out.max)/n {
		fail("a text of %d times %d bytes is longer than the %d allowed", n, len(s), r.out.max)
	}
	r.room(len(s) * int(n))
	return strings.Repeat(s, int(n))
}

func integers(op string, a, b int64) Value {
	switch op {
	case "+":
		if c := a + b; (c > a) == (b > 0) {
			return c
		}
	case "-":
		if c := a - b; (c < a) == (b > 0) {
			return c
		}
	case "*":
		if c, ok := product(a, b); ok {
			return c
		}
	case "**":
		return power(a, b)
	default:
		if b == 0 {
			fail("division by zero")
		}
		if op == "/" {
			return float64(a) / float64(b)
		}
		if a == math.MinInt64 && b == -1 {
			break
		}
		q, m := a/b, a%b
		if m != 0 && (m < 0) != (b < 0) {
			q, m = q-1, m+b
		}
		if op == "//" {
			return q
		}
		return m
	}
	fail("%d %s %d has more than 64 bits", a, op, b)
	return nil
}

func product(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	if a == math.MinInt64 || b == math.MinInt64 || hi != 0 || lo > math.MaxInt64 {
		return 0, a == 0 || b == 0
	}
	return a * b, true
}

func power(a, b int64) Value {
	if b < 0 {
		if a == 0 {
			fail("0 cannot be raised to a negative power")
		}
		return math.Pow(float64(a), float64(b))
	}
	if a >= -1 && a <= 1 {
		if a == -1 {
			return 1 - 2*(b&1)
		}
		if b == 0 {
			return int64(1)
		}
		return a
	}
	n := int64(1)
	for range b {
		var ok bool
		if n, ok = product(n, a); !ok {
			fail("%d ** %d has more than 64 bits", a, b)
		}
	}
	return n
}

func floats(op string, a, b float64) Value {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		return math.Pow(a, b)
	}
	if b == 0 {
		fail("float division by zero")
	}
	switch op {
	case "/":
		return a / b
	case "//":
		return math.Floor(a / b)
	}
	m := math.Mod(a, b)
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return m
}

// contains is item in v.
func (r *run) contains(v, item Value) bool {
	switch v := v.(type) {
	case *undefined:
		return false
	case string:
		s, ok := item.(string)
		if !ok {
			fail("'in <string>' requires string as left operand, not %s", typeName(item))
		}
		r.spend(len(v))
		return strings.Contains(v, s)
	case *List:
		for _, x := range v.Items {
			if r.equal(x, item) {
				return true
			}
		}
		return false
	case *Dict:
		_, ok := v.get(item)
		return ok
	}
	fail("argument of type '%s' is not iterable", typeName(v))
	return false
}

// items is what a loop over v goes through: entries, characters, keys.
func (r *run) items(v Value) []Value {
	switch v := v.(type) {
	case *undefined:
		return nil
	case *List:
		return v.Items
	case *Dict:
		return v.keys
	case string:
		r.entries(len(v))
		items := make([]Value, 0, len(v))
		for _, c := range v {
			items = append(items, string(c))
		}
		return items
	}
	fail("'%s' object is not iterable", typeName(v))
	return nil
}

// attr is v.name: a method, or else an entry.
func (r *run) attr(v Value, name string) Value {
	r.defined(v)
	switch v := v.(type) {
	case *object:
		if x, ok := v.attr[name]; ok {
			return x
		}
	case *Dict:
		if m, ok := dictMethods[name]; ok {
			return &function{name, func(r *run, c *call) Value { return m(r, v, c) }}
		}
		if x, ok := v.get(name); ok {
			return x
		}
	case *List:
		if m, ok := listMethods[name]; ok && (!v.Tuple || name == "count" || name == "index") {
			return &function{name, func(r *run, c *call) Value { return m(r, v, c) }}
		}
	case string:
		if m, ok := textMethods[name]; ok {
			return &function{name, func(r *run, c *call) Value { return m(r, v, c) }}
		}
	}
	return missing(v, name)
}

func missing(v Value, key any) Value {
	what := "'" + typeName(v) + " object'"
	if v == nil {
		what = "'None'"
	}
	if name, ok := key.(string); ok {
		return &undefined{what + " has no attribute '" + name + "'"}
	}
	if i, ok := key.(int64); ok {
		return &undefined{what + " has no element " + strconv.FormatInt(i, 10)}
	}
	return &undefined{what + " has no such element"}
}

// item is v[key]: an entry, or else a method.
func (r *run) item(v, key Value) Value {
	r.defined(v)
	switch v := v.(type) {
	case *Dict:
		if x, ok := v.get(key); ok {
			return x
		}
	case *List:
		if i, _, isInt, _ := number(key); isInt {
			if i < 0 {
				i += int64(len(v.Items))
			}
			if i >= 0 && i < int64(len(v.Items)) {
				return v.Items[i]
			}
			return missing(v, key)
		}
	case string:
		if i, _, isInt, _ := number(key); isInt {
			r.spend(len(v))
			if i < 0 {
				i += int64(utf8.RuneCountInString(v))
			}
			for _, c := range v {
				if i == 0 {
					return string(c)
				}
				i--
			}
			return missing(v, key)
		}
	}
	if name, ok := key.(string); ok {
		return r.attr(v, name)
	}
	return missing(v, key)
}

// slice is v[bound[0]:bound[1]:bound[2]].
func (r *run) slice(v Value, bound [3]Value) Value {
	r.defined(v)
	var items []Value
	list, isList := v.(*List)
	text, isText := v.(string)
	switch {
	case isList:
		items = list.Items
	case isText:
		items = r.items(text)
	default:
		return missing(v, nil)
	}
	part := func(i int, otherwise int64) int64 {
		if bound[i] == nil {
			return otherwise
		}
		n, _, isInt, _ := number(bound[i])
		if !isInt {
			fail("slice indices must be integers or None, not %s", typeName(bound[i]))
		}
		return n
	}
	n, step := int64(len(items)), part(2, 1)
	if step == 0 {
		fail("slice step cannot be zero")
	}
	lo, hi, first, last := int64(0), n, int64(0), n
	if step < 0 {
		lo, hi, first, last = -1, n-1, n-1, -1
	}
	clamp := func(i int, otherwise int64) int64 {
		at := part(i, otherwise)
		if bound[i] != nil && at < 0 {
			at += n
		}
		return min(max(at, lo), hi)
	}
	first, last = clamp(0, first), clamp(1, last)
	var kept []Value
	if step = min(max(step, -n-1), n+1); step > 0 {
		for i := first; i < last; i += step {
			kept = append(kept, items[i])
		}
	} else {
		for i := first; i > last; i += step {
			kept = append(kept, items[i])
		}
	}
	r.entries(len(kept))
	if isList {
		return &List{Items: kept, Tuple: list.Tuple}
	}
	return join(kept)
}

// join puts texts together.
func join(texts []Value) string {
	var b strings.Builder
	for _, s := range texts {
		b.WriteString(s.(string))
	}
	return b.String()
}

// sort orders indices by their keys, equal ones as they were.
func (r *run) sort(n int, key func(i int) Value, order []int, reverse bool) {
	keys := make([]Value, n)
	for i := range keys {
		keys[i] = key(i)
	}
	r.entries(n)
	slices.SortStableFunc(order, func(a, b int) int {
		r.spend(16)
		if reverse {
			return r.compare(keys[b], keys[a], "<")
		}
		return r.compare(keys[a], keys[b], "<")
	})
}
