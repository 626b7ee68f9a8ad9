package chat

import "strings"

// testFunc is v is name(…).
type testFunc func(r *run, v Value, c *call) bool

// tests is the tests by name. It is set in init, since one of them looks names up in it.
var tests map[string]testFunc

func init() {
	tests = map[string]testFunc{
		"defined":   simple(func(v Value) bool { _, no := v.(*undefined); return !no }),
		"undefined": simple(func(v Value) bool { _, no := v.(*undefined); return no }),
		"none":      simple(func(v Value) bool { return v == nil }),
		"boolean":   simple(func(v Value) bool { _, ok := v.(bool); return ok }),
		"true":      simple(func(v Value) bool { return v == true }),
		"false":     simple(func(v Value) bool { return v == false }),
		"integer":   simple(func(v Value) bool { _, ok := v.(int64); return ok }),
		"float":     simple(func(v Value) bool { _, ok := v.(float64); return ok }),
		"number":    simple(func(v Value) bool { _, _, _, ok := number(v); return ok }),
		"string":    simple(func(v Value) bool { _, ok := v.(string); return ok }),
		"mapping":   simple(func(v Value) bool { _, ok := v.(*Dict); return ok }),
		"callable":  simple(func(v Value) bool { _, ok := v.(*function); return ok }),
		"escaped":   simple(func(Value) bool { return false }),
		"iterable":  simple(iterable),
		"sequence":  simple(iterable),
		"lower":     ofText(cased(strings.ToLower)),
		"upper":     ofText(cased(strings.ToUpper)),
		"odd":       modulo2(1),
		"even":      modulo2(0),
		"divisibleby": func(r *run, v Value, c *call) bool {
			return r.equal(arithmetic(r, "%", v, c.need("num")[0]), int64(0))
		},
		"in":     func(r *run, v Value, c *call) bool { return r.contains(c.need("seq")[0], v) },
		"sameas": func(r *run, v Value, c *call) bool { return same(v, c.need("other")[0]) },
		"filter": func(r *run, v Value, c *call) bool { c.need(); return filters[r.text(v)] != nil },
		"test":   func(r *run, v Value, c *call) bool { c.need(); return tests[r.text(v)] != nil },
	}
	for op, names := range map[string][]string{
		"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"}, "<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
		">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"},
	} {
		for _, name := range names {
			tests[name] = func(r *run, v Value, c *call) bool { return r.holds(v, c.need("other")[0], op) }
		}
	}
}

func simple(f func(Value) bool) testFunc {
	return func(_ *run, v Value, c *call) bool {
		c.need()
		return f(v)
	}
}

// ofText is a method of texts as a test.
func ofText(f func(r *run, s string, c *call) Value) testFunc {
	return func(r *run, v Value, c *call) bool { return f(r, r.text(v), c) == true }
}

func modulo2(want int64) testFunc {
	return func(r *run, v Value, c *call) bool {
		c.need()
		return r.equal(arithmetic(r, "%", v, int64(2)), want)
	}
}

// iterable is also undefined, which is a sequence of nothing.
func iterable(v Value) bool {
	switch v.(type) {
	case string, *List, *Dict, *undefined:
		return true
	}
	return false
}

// same is Python's is, for what a template can tell apart.
func same(a, b Value) bool {
	switch a := a.(type) {
	case *List:
		return a == b
	case *Dict:
		return a == b
	}
	ha, ok := hashable(a)
	hb, also := hashable(b)
	return ok && also && ha == hb && typeName(a) == typeName(b)
}
