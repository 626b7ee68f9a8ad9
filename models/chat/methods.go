package chat

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var dictMethods, listMethods = dictTable(), listTable()

// textMethods is Python's methods of str. They are set in init, since join calls them again through text.
var textMethods map[string]func(r *run, s string, c *call) Value

func dictTable() map[string]func(r *run, d *Dict, c *call) Value {
	list := func(r *run, made string, n int, item func(i int) Value) Value {
		r.entries(n)
		l := &List{Items: make([]Value, n), made: made}
		for i := range l.Items {
			l.Items[i] = item(i)
		}
		return l
	}
	return map[string]func(r *run, d *Dict, c *call) Value{
		"get": func(r *run, d *Dict, c *call) Value {
			a := c.bind("key", "default")
			v, ok := d.get(a[0])
			if !ok {
				v = orValue(a[1], nil)
			}
			return v
		},
		"items": func(r *run, d *Dict, c *call) Value {
			c.need()
			return list(r, "dict_items", d.Len(), func(i int) Value { return pair(d.keys[i], d.vals[i]) })
		},
		"keys": func(r *run, d *Dict, c *call) Value {
			c.need()
			return list(r, "dict_keys", d.Len(), func(i int) Value { return d.keys[i] })
		},
		"values": func(r *run, d *Dict, c *call) Value {
			c.need()
			return list(r, "dict_values", d.Len(), func(i int) Value { return d.vals[i] })
		},
		"pop": func(r *run, d *Dict, c *call) Value {
			a := c.bind("key", "default")
			r.entries(d.Len())
			v, ok := d.remove(a[0])
			if _, no := a[1].(absent); !ok && no {
				fail("pop: the dictionary has no key %s", r.text(a[0]))
			}
			if !ok {
				return a[1]
			}
			return v
		},
		"update": func(r *run, d *Dict, c *call) Value {
			if len(c.pos) > 0 {
				r.update(d, c.pos[0])
			}
			for i, name := range c.names {
				d.put(name, c.named[i])
			}
			return nil
		},
		"copy": func(r *run, d *Dict, c *call) Value {
			made := NewDict()
			r.update(made, d)
			return made
		},
		"setdefault": func(r *run, d *Dict, c *call) Value {
			a := c.bind("key", "default")
			if v, ok := d.get(a[0]); ok {
				return v
			}
			v := orValue(a[1], nil)
			r.entries(2)
			d.put(a[0], v)
			return v
		},
	}
}

func pair(a, b Value) Value { return &List{Items: []Value{a, b}, Tuple: true} }

// update adds the entries of v, a dictionary or pairs, to d.
func (r *run) update(d *Dict, v Value) {
	if from, ok := v.(*Dict); ok {
		r.entries(2 * from.Len())
		for i, k := range from.keys {
			d.put(k, from.vals[i])
		}
		return
	}
	for _, item := range r.items(v) {
		kv := r.items(item)
		if len(kv) != 2 {
			fail("a dictionary is made of pairs; one has %d items", len(kv))
		}
		r.entries(2)
		d.put(kv[0], kv[1])
	}
}

func listTable() map[string]func(r *run, l *List, c *call) Value {
	return map[string]func(r *run, l *List, c *call) Value{
		"append": func(r *run, l *List, c *call) Value {
			r.entries(1)
			l.Items = append(l.Items, c.need("object")[0])
			return nil
		},
		"extend": func(r *run, l *List, c *call) Value {
			more := r.items(c.need("iterable")[0])
			r.entries(len(more))
			l.Items = append(l.Items, more...)
			return nil
		},
		"insert": func(r *run, l *List, c *call) Value {
			a := c.need("index", "object")
			r.entries(1 + len(l.Items)/16)
			i := orInt(a[0], 0)
			if n := int64(len(l.Items)); i < 0 {
				i = max(i+n, 0)
			} else {
				i = min(i, n)
			}
			l.Items = slices.Insert(l.Items, int(i), a[1])
			return nil
		},
		"pop": func(r *run, l *List, c *call) Value {
			i := orInt(c.bind("index")[0], -1)
			if i < 0 {
				i += int64(len(l.Items))
			}
			if i < 0 || i >= int64(len(l.Items)) {
				fail("pop: the index is outside the list of %d", len(l.Items))
			}
			r.spend(len(l.Items))
			v := l.Items[i]
			l.Items = slices.Delete(l.Items, int(i), int(i)+1)
			return v
		},
		"index": func(r *run, l *List, c *call) Value {
			v := c.need("value")[0]
			for i, x := range l.Items {
				if r.equal(x, v) {
					return int64(i)
				}
			}
			fail("index: the value is not in the list")
			return nil
		},
		"count": func(r *run, l *List, c *call) Value {
			v, n := c.need("value")[0], int64(0)
			for _, x := range l.Items {
				if r.equal(x, v) {
					n++
				}
			}
			return n
		},
		"copy": func(r *run, l *List, c *call) Value {
			r.entries(len(l.Items))
			return &List{Items: slices.Clone(l.Items)}
		},
		"reverse": func(r *run, l *List, c *call) Value {
			r.spend(len(l.Items))
			slices.Reverse(l.Items)
			return nil
		},
		"clear": func(r *run, l *List, c *call) Value { l.Items = nil; return nil },
	}
}

// strip is a method that takes characters off: those of its argument, or spaces.
func strip(f func(s string, drop func(rune) bool) string) func(r *run, s string, c *call) Value {
	return func(r *run, s string, c *call) Value {
		r.spend(len(s))
		switch a := c.bind("chars")[0].(type) {
		case absent, nil:
			return f(s, space)
		case string:
			return f(s, func(c rune) bool {
				r.spend(len(a))
				return strings.ContainsRune(a, c)
			})
		default:
			fail("%s: got %s, want a text", c.name, typeName(a))
		}
		return nil
	}
}

// space is what Python holds to be white space.
func space(c rune) bool { return unicode.IsSpace(c) || c >= 0x1c && c <= 0x1f }

func trimEnds(s string, drop func(rune) bool) string { return strings.TrimFunc(s, drop) }

// mapped is a method without arguments.
func mapped(f func(s string) Value) func(r *run, s string, c *call) Value {
	return func(r *run, s string, c *call) Value {
		r.spend(2 * len(s))
		c.need()
		return f(s)
	}
}

// every is a method that asks whether all characters are of a kind, and that there is one.
func every(is func(rune) bool) func(r *run, s string, c *call) Value {
	other := func(c rune) bool { return !is(c) }
	return mapped(func(s string) Value { return s != "" && strings.IndexFunc(s, other) < 0 })
}

// cased is a method that asks whether f changes nothing and there is a letter with cases.
func cased(f func(string) string) func(r *run, s string, c *call) Value {
	return mapped(func(s string) Value { return s == f(s) && strings.ToUpper(s) != strings.ToLower(s) })
}

func ends(has func(s, part string) bool) func(r *run, s string, c *call) Value {
	return func(r *run, s string, c *call) Value {
		switch part := c.need("part")[0].(type) {
		case string:
			return has(s, part)
		case *List:
			for _, p := range part.Items {
				if p, ok := p.(string); ok && has(s, p) {
					return true
				}
			}
			return false
		default:
			r.defined(part)
			fail("%s: got %s, want a text or a tuple of texts", c.name, typeName(part))
		}
		return nil
	}
}

func find(index func(s, part string) int, must bool) func(r *run, s string, c *call) Value {
	return func(r *run, s string, c *call) Value {
		r.spend(len(s))
		i := index(s, orText(c.need("part")[0], ""))
		if i < 0 {
			if must {
				fail("%s: substring not found", c.name)
			}
			return int64(-1)
		}
		return int64(utf8.RuneCountInString(s[:i]))
	}
}

// pad is a method that fills a text up to a width; all, half or none of it on the left for 1, 2 and 0.
func pad(left int64) func(r *run, s string, c *call) Value {
	return func(r *run, s string, c *call) Value {
		a := c.bind("width", "fillchar")
		with := orText(a[1], " ")
		n := orInt(a[0], 0) - int64(utf8.RuneCountInString(s))
		if n <= 0 {
			return s
		}
		first := int64(0)
		if left > 0 {
			first = n / left
		}
		return r.repeat(with, first) + s + r.repeat(with, n-first)
	}
}

func init() {
	textMethods = map[string]func(r *run, s string, c *call) Value{
		"strip":      strip(trimEnds),
		"lstrip":     strip(strings.TrimLeftFunc),
		"rstrip":     strip(strings.TrimRightFunc),
		"upper":      mapped(func(s string) Value { return strings.ToUpper(s) }),
		"lower":      mapped(func(s string) Value { return strings.ToLower(s) }),
		"casefold":   mapped(func(s string) Value { return strings.ToLower(s) }),
		"title":      mapped(func(s string) Value { return title(s, unicode.IsLetter) }),
		"capitalize": mapped(func(s string) Value { return capitalize(s) }),
		"isdigit":    every(unicode.IsDigit),
		"isnumeric":  every(unicode.IsNumber),
		"isdecimal":  every(unicode.IsDigit),
		"isalpha":    every(unicode.IsLetter),
		"isalnum":    every(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
		"isspace":    every(space),
		"isupper":    cased(strings.ToUpper),
		"islower":    cased(strings.ToLower),
		"startswith": ends(strings.HasPrefix),
		"endswith":   ends(strings.HasSuffix),
		"find":       find(strings.Index, false),
		"rfind":      find(strings.LastIndex, false),
		"index":      find(strings.Index, true),
		"ljust":      pad(0),
		"rjust":      pad(1),
		"center":     pad(2),
		"count": func(r *run, s string, c *call) Value {
			r.spend(len(s))
			return int64(strings.Count(s, orText(c.need("part")[0], "")))
		},
		"replace":      replaceText,
		"split":        split,
		"rsplit":       rsplit,
		"splitlines":   splitlines,
		"partition":    partition(strings.Index, false),
		"rpartition":   partition(strings.LastIndex, true),
		"format":       formatText,
		"removeprefix": cut(strings.TrimPrefix),
		"removesuffix": cut(strings.TrimSuffix),
		"join": func(r *run, s string, c *call) Value {
			return r.joined(r.items(c.need("iterable")[0]), s, func(v Value) string {
				if t, ok := v.(string); ok {
					return t
				}
				fail("join: expected a text, %s found", typeName(v))
				return ""
			})
		},
	}
}

func cut(f func(s, part string) string) func(r *run, s string, c *call) Value {
	return func(r *run, s string, c *call) Value { return f(s, orText(c.need("part")[0], "")) }
}

// joined puts items together as texts.
func (r *run) joined(items []Value, sep string, text func(Value) string) string {
	parts, n := make([]string, len(items)), 0
	r.entries(len(items))
	for i, item := range items {
		parts[i] = text(item)
		n = min(n+len(parts[i])+len(sep), math.MaxInt32)
	}
	r.room(n)
	return strings.Join(parts, sep)
}

func replaceText(r *run, s string, c *call) Value {
	a := c.bind("old", "new", "count")
	return r.replace(s, orText(a[0], ""), orText(a[1], ""), orInt(a[2], -1))
}

func (r *run) replace(s, old, with string, count int64) string {
	n := int64(strings.Count(s, old))
	if count >= 0 {
		n = min(n, count)
	}
	r.room(int(min(int64(len(s))+n*int64(len(with)), math.MaxInt32)))
	return strings.Replace(s, old, with, int(n))
}

func (r *run) texts(parts []string) *List {
	r.entries(len(parts))
	l := &List{Items: make([]Value, len(parts))}
	for i, p := range parts {
		l.Items[i] = p
	}
	return l
}

// split is Python's: without a separator, words; else at most so many cuts.
func split(r *run, s string, c *call) Value {
	a := c.bind("sep", "maxsplit")
	r.spend(len(s))
	most := orInt(a[1], -1)
	if most < 0 || most > int64(len(s)) {
		most = int64(len(s)) + 1
	}
	if sep, ok := a[0].(string); ok {
		if sep == "" {
			fail("split: empty separator")
		}
		return r.texts(strings.SplitN(s, sep, int(most)+1))
	}
	if orValue(a[0], nil) != nil {
		fail("%s: got %s, want a text", c.name, typeName(a[0]))
	}
	var parts []string
	for s = strings.TrimLeftFunc(s, space); s != ""; s = strings.TrimLeftFunc(s, space) {
		i := strings.IndexFunc(s, space)
		if i < 0 || most == 0 {
			i = len(s)
		}
		parts = append(parts, s[:i])
		s = s[i:]
		most--
	}
	return r.texts(parts)
}

func rsplit(r *run, s string, c *call) Value {
	a := c.bind("sep", "maxsplit")
	sep, ok := a[0].(string)
	most := orInt(a[1], -1)
	if !ok || most < 0 {
		return split(r, s, &call{name: c.name, pos: []Value{a[0], int64(-1)}})
	}
	if sep == "" {
		fail("rsplit: empty separator")
	}
	r.spend(len(s))
	parts := strings.Split(s, sep)
	if keep := int64(len(parts)) - most; keep > 1 {
		parts = append([]string{strings.Join(parts[:keep], sep)}, parts[keep:]...)
	}
	return r.texts(parts)
}

func splitlines(r *run, s string, c *call) Value {
	keep := orTrue(c.bind("keepends")[0], false)
	r.spend(len(s))
	var parts []string
	for s != "" {
		i := strings.IndexAny(s, "\n\r")
		if i < 0 {
			parts = append(parts, s)
			break
		}
		n := 1
		if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		if keep {
			parts = append(parts, s[:i+n])
		} else {
			parts = append(parts, s[:i])
		}
		s = s[i+n:]
	}
	return r.texts(parts)
}

func partition(index func(s, sep string) int, last bool) func(r *run, s string, c *call) Value {
	return func(r *run, s string, c *call) Value {
		sep := orText(c.need("sep")[0], "")
		parts := []Value{s, "", ""}
		if last {
			parts = []Value{"", "", s}
		}
		if sep == "" {
			fail("%s: empty separator", c.name)
		}
		if i := index(s, sep); i >= 0 {
			parts = []Value{s[:i], sep, s[i+len(sep):]}
		}
		return &List{Items: parts, Tuple: true}
	}
}
