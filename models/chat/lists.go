package chat

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func lengthFilter(r *run, v Value, c *call) Value {
	c.need()
	switch v := v.(type) {
	case *undefined:
		return int64(0)
	case string:
		r.spend(len(v) / 16)
		return int64(utf8.RuneCountInString(v))
	case *List:
		return int64(len(v.Items))
	case *Dict:
		return int64(v.Len())
	}
	fail("object of type '%s' has no len()", typeName(v))
	return nil
}

func listFilter(r *run, v Value, c *call) Value {
	c.need()
	return r.listOf(r.items(v))
}

// listOf is a list of its own.
func (r *run) listOf(items []Value) *List {
	r.entries(len(items))
	return &List{Items: slices.Clone(items)}
}

func itemsFilter(r *run, v Value, c *call) Value {
	c.need()
	switch v := v.(type) {
	case *undefined:
		return &List{}
	case *Dict:
		l := dictMethods["items"](r, v, c).(*List)
		l.made = ""
		return l
	}
	fail("can only get item pairs from a mapping, got %s", typeName(v))
	return nil
}

func firstFilter(r *run, v Value, c *call) Value {
	c.need()
	if s, ok := v.(string); ok && s != "" {
		_, n := utf8.DecodeRuneInString(s)
		return s[:n]
	}
	if items := r.items(v); len(items) > 0 {
		return items[0]
	}
	return &undefined{"no first item, sequence was empty"}
}

func lastFilter(r *run, v Value, c *call) Value {
	c.need()
	if s, ok := v.(string); ok && s != "" {
		_, n := utf8.DecodeLastRuneInString(s)
		return s[len(s)-n:]
	}
	if items := r.items(v); len(items) > 0 {
		return items[len(items)-1]
	}
	return &undefined{"no last item, sequence was empty"}
}

func reverseFilter(r *run, v Value, c *call) Value {
	c.need()
	l := r.listOf(r.items(v))
	slices.Reverse(l.Items)
	if _, ok := v.(string); ok {
		return join(l.Items)
	}
	return l
}

// path reads an attribute's name, which may lead through several: "function.name", or a number.
func (r *run) path(v, attribute Value) Value {
	switch a := attribute.(type) {
	case nil, absent:
		return v
	case string:
		for _, part := range strings.Split(a, ".") {
			if i, err := strconv.ParseInt(part, 10, 64); err == nil {
				v = r.item(v, i)
			} else {
				v = r.item(v, part)
			}
		}
		return v
	}
	return r.item(v, attribute)
}

// folded is a key to compare by without regard to case.
func folded(v Value, sensitive bool) Value {
	if s, ok := v.(string); ok && !sensitive {
		return strings.ToLower(s)
	}
	return v
}

func joinFilter(r *run, v Value, c *call) Value {
	a := c.bind("d", "attribute")
	sep := ""
	if _, no := a[0].(absent); !no {
		sep = r.text(a[0])
	}
	return r.joined(r.items(v), sep, func(v Value) string { return r.text(r.path(v, a[1])) })
}

// sorted is items in the order of their keys.
func (r *run) sorted(items []Value, key func(Value) Value, reverse bool) []Value {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	r.sort(len(items), func(i int) Value { return key(items[i]) }, order, reverse)
	made := make([]Value, len(items))
	for i, at := range order {
		made[i] = items[at]
	}
	return made
}

func sortFilter(r *run, v Value, c *call) Value {
	a := c.bind("reverse", "case_sensitive", "attribute")
	sensitive := orTrue(a[1], false)
	key := func(v Value) Value { return folded(r.path(v, a[2]), sensitive) }
	if names, ok := a[2].(string); ok && strings.Contains(names, ",") {
		key = func(v Value) Value {
			l := &List{}
			for _, name := range strings.Split(names, ",") {
				l.Items = append(l.Items, folded(r.path(v, name), sensitive))
			}
			return l
		}
	}
	return &List{Items: r.sorted(r.items(v), key, orTrue(a[0], false))}
}

func dictsortFilter(r *run, v Value, c *call) Value {
	a := c.bind("case_sensitive", "by", "reverse")
	sensitive, by := orTrue(a[0], false), orText(a[1], "key")
	if by != "key" && by != "value" {
		fail("dictsort: by is %s, want key or value", by)
	}
	d, ok := v.(*Dict)
	if !ok {
		r.defined(v)
		fail("dictsort: got %s, want a dict", typeName(v))
	}
	items := dictMethods["items"](r, d, &call{}).(*List).Items
	key := func(v Value) Value {
		kv := v.(*List).Items
		if by == "value" {
			return folded(kv[1], sensitive)
		}
		return folded(kv[0], sensitive)
	}
	return &List{Items: r.sorted(items, key, orTrue(a[2], false))}
}

func groupbyFilter(r *run, v Value, c *call) Value {
	a := c.bind("attribute", "default", "case_sensitive")
	sensitive := orTrue(a[2], false)
	key := func(v Value) Value {
		v = r.path(v, a[0])
		if _, no := v.(*undefined); no {
			v = orValue(a[1], v)
		}
		return v
	}
	groups, group := &List{}, (*List)(nil)
	var last Value
	for _, item := range r.sorted(r.items(v), func(v Value) Value { return folded(key(v), sensitive) }, false) {
		r.entries(3)
		k := key(item)
		if group == nil || !r.equal(folded(k, sensitive), last) {
			group, last = &List{}, folded(k, sensitive)
			groups.Items = append(groups.Items, pair(k, group))
		}
		group.Items = append(group.Items, item)
	}
	return groups
}

func uniqueFilter(r *run, v Value, c *call) Value {
	a := c.bind("case_sensitive", "attribute")
	sensitive, seen := orTrue(a[0], false), map[any]bool{}
	kept := &List{}
	for _, item := range r.items(v) {
		r.entries(2)
		k, ok := hashable(folded(r.path(item, a[1]), sensitive))
		if !ok {
			fail("unique: unhashable type: '%s'", typeName(item))
		}
		if !seen[k] {
			seen[k] = true
			kept.Items = append(kept.Items, item)
		}
	}
	return kept
}

// bestFilter is max or min.
func bestFilter(sign int) filterFunc {
	return func(r *run, v Value, c *call) Value {
		a := c.bind("case_sensitive", "attribute")
		sensitive := orTrue(a[0], false)
		items := r.items(v)
		if len(items) == 0 {
			return &undefined{"no aggregated item, sequence was empty"}
		}
		best, bestKey := items[0], folded(r.path(items[0], a[1]), sensitive)
		for _, item := range items[1:] {
			if k := folded(r.path(item, a[1]), sensitive); r.compare(k, bestKey, "<")*sign > 0 {
				best, bestKey = item, k
			}
		}
		return best
	}
}

func sumFilter(r *run, v Value, c *call) Value {
	a := c.bind("attribute", "start")
	sum := orValue(a[1], int64(0))
	for _, item := range r.items(v) {
		sum = arithmetic(r, "+", sum, r.path(item, a[0]))
	}
	return sum
}

func batchFilter(r *run, v Value, c *call) Value {
	a := c.bind("linecount", "fill_with")
	n := orInt(a[0], 0)
	if n < 1 || n > math.MaxInt32 {
		fail("batch: the count is %d, want at least 1", n)
	}
	made := &List{}
	for part := range slices.Chunk(r.items(v), int(n)) {
		l := r.listOf(part)
		if _, no := a[1].(absent); !no && a[1] != nil && len(part) < int(n) {
			r.entries(int(n))
			for len(l.Items) < int(n) {
				l.Items = append(l.Items, a[1])
			}
		}
		made.Items = append(made.Items, l)
	}
	return made
}

// sliceFilter cuts a list into a number of lists, the first ones longer by one where it does not divide.
func sliceFilter(r *run, v Value, c *call) Value {
	a := c.bind("slices", "fill_with")
	items, n := r.items(v), orInt(a[0], 0)
	if n < 1 || n > math.MaxInt32 {
		fail("slice: the count is %d, want at least 1", n)
	}
	r.entries(int(n))
	made := &List{}
	each, more := len(items)/int(n), len(items)%int(n)
	for i := range int(n) {
		size := each
		if i < more {
			size++
		}
		l := r.listOf(items[:size])
		items = items[size:]
		if _, no := a[1].(absent); !no && a[1] != nil && i >= more && more > 0 {
			l.Items = append(l.Items, a[1])
		}
		made.Items = append(made.Items, l)
	}
	return made
}

// mapFilter is an attribute of each item, or a filter on each.
func mapFilter(r *run, v Value, c *call) Value {
	items := r.items(v)
	r.entries(len(items))
	made := &List{Items: make([]Value, len(items))}
	each := func(item Value) Value {
		if len(c.pos) == 0 {
			fail("map misses the name of a filter, or attribute")
		}
		rest := &call{pos: slices.Clone(c.pos[1:]), names: c.names, named: c.named}
		return r.filter(orText(c.pos[0], ""), item, rest)
	}
	if len(c.pos) == 0 && slices.Contains(c.names, "attribute") {
		a := c.bind("attribute", "default")
		each = func(item Value) Value {
			v := r.path(item, a[0])
			if _, no := v.(*undefined); no {
				v = orValue(a[1], v)
			}
			return v
		}
	}
	for i, item := range items {
		made.Items[i] = each(item)
	}
	return made
}

// selectFilter keeps the items for which a test holds, of the item or of an attribute.
func selectFilter(byAttribute, keep bool) filterFunc {
	return func(r *run, v Value, c *call) Value {
		name, pos := Value(absent{}), c.pos
		if byAttribute {
			if len(pos) == 0 {
				fail("%s misses the name of an attribute", c.name)
			}
			name, pos = pos[0], pos[1:]
		}
		kept := &List{}
		for _, item := range r.items(v) {
			r.entries(1)
			x := r.path(item, name)
			ok := truth(x)
			if len(pos) > 0 {
				rest := &call{pos: slices.Clone(pos[1:]), names: c.names, named: c.named}
				ok = r.test(orText(pos[0], ""), x, rest)
			}
			if ok == keep {
				kept.Items = append(kept.Items, item)
			}
		}
		return kept
	}
}
