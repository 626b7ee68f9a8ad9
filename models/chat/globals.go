package chat

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// globals is the functions that every template has.
var globals map[string]Value

func init() {
	globals = map[string]Value{}
	for name, f := range map[string]func(r *run, c *call) Value{
		"range": rangeOf, "dict": dictOf, "namespace": namespaceOf, "cycler": cyclerOf, "joiner": joinerOf,
		"raise_exception": raise, "strftime_now": strftimeNow,
	} {
		globals[name] = &function{name, f}
	}
}

func raise(r *run, c *call) Value {
	panic(&Error{Line: r.line, Msg: r.text(c.need("message")[0]), Raised: true})
}

func rangeOf(r *run, c *call) Value {
	a := make([]int64, len(c.pos))
	for i, v := range c.pos {
		n, _, isInt, _ := number(v)
		if !isInt {
			r.defined(v)
			fail("range: '%s' object cannot be interpreted as an integer", typeName(v))
		}
		a[i] = n
	}
	lo, hi, step := int64(0), int64(0), int64(1)
	switch len(a) {
	case 1:
		hi = a[0]
	case 2:
		lo, hi = a[0], a[1]
	case 3:
		lo, hi, step = a[0], a[1], a[2]
	}
	if len(a) < 1 || len(a) > 3 || len(c.names) > 0 || step == 0 {
		fail("range takes 1 to 3 integers, the third not 0")
	}
	const most = 100000 // jinja2's sandbox allows as many
	n := uint64(0)
	if step > 0 && hi > lo {
		n = (uint64(hi)-uint64(lo)-1)/uint64(step) + 1
	} else if step < 0 && hi < lo {
		n = (uint64(lo)-uint64(hi)-1)/(-uint64(step)) + 1
	}
	if n > most {
		fail("a range of %d integers is too big; at most %d are allowed", n, most)
	}
	r.entries(int(n))
	l := &List{Items: make([]Value, n), made: fmt.Sprintf("range(%d, %d)", lo, hi)}
	if step != 1 {
		l.made = fmt.Sprintf("range(%d, %d, %d)", lo, hi, step)
	}
	for i := range l.Items {
		l.Items[i] = lo + int64(i)*step
	}
	return l
}

func dictOf(r *run, c *call) Value {
	d := NewDict()
	if len(c.pos) > 0 {
		r.update(d, c.pos[0])
	}
	for i, name := range c.names {
		d.put(name, c.named[i])
	}
	return d
}

func namespaceOf(r *run, c *call) Value {
	o := &object{name: "Namespace", attr: map[string]Value{}, open: true}
	d := dictOf(r, c).(*Dict)
	for i, k := range d.keys {
		o.attr[r.text(k)] = d.vals[i]
	}
	return o
}

func method(name string, f func(r *run, c *call) Value) *function { return &function{name, f} }

func cyclerOf(_ *run, c *call) Value {
	if len(c.pos) == 0 {
		fail("cycler takes at least one value")
	}
	i := 0
	o := &object{name: "Cycler", attr: map[string]Value{"current": c.pos[0]}}
	o.attr["next"] = method("next", func(*run, *call) Value {
		v := c.pos[i]
		i = (i + 1) % len(c.pos)
		o.attr["current"] = c.pos[i]
		return v
	})
	o.attr["reset"] = method("reset", func(*run, *call) Value {
		i = 0
		o.attr["current"] = c.pos[0]
		return nil
	})
	return o
}

func joinerOf(_ *run, c *call) Value {
	sep, used := orText(c.bind("sep")[0], ", "), false
	return method("joiner", func(*run, *call) Value {
		if !used {
			used = true
			return ""
		}
		return sep
	})
}

// strftimeNow writes the time as strftime in the C locale.
func strftimeNow(r *run, c *call) Value {
	now := time.Now
	if r.t.Now != nil {
		now = r.t.Now
	}
	format := orText(c.need("format")[0], "")
	r.room(len(format) * 8)
	return strftime(now(), format)
}

// layouts is Go's layout for what follows a % of strftime; what has none is in strftime.
var layouts = map[byte]string{
	'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'B': "January", 'b': "Jan", 'h': "Jan",
	'A': "Monday", 'a': "Mon", 'p': "PM", 'I': "03", 'Z': "MST", 'z': "-0700", 'y': "06", 'j': "002", 'e': "_2",
	'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04", 'f': "000000", 'c': "Mon Jan _2 15:04:05 2006",
	'x': "01/02/06", 'X': "15:04:05",
}

func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		bare := format[i] == '-' && i+1 < len(format) // %-d: without zeros in front
		if bare {
			i++
		}
		part := ""
		switch c := format[i]; c {
		case '%':
			part = "%"
		case 'n':
			part = "\n"
		case 't':
			part = "\t"
		case 'f':
			part = fmt.Sprintf("%06d", t.Nanosecond()/1000)
		case 's':
			part = strconv.FormatInt(t.Unix(), 10)
		case 'w':
			part = strconv.Itoa(int(t.Weekday()))
		case 'u':
			part = strconv.Itoa((int(t.Weekday())+6)%7 + 1)
		default:
			layout, ok := layouts[c]
			if !ok {
				fail("strftime_now: %%%c is not known", c)
			}
			part = t.Format(layout)
		}
		if bare {
			if short := strings.TrimLeft(part, "0 "); short != "" {
				part = short
			}
		}
		b.WriteString(part)
	}
	return b.String()
}

// loopState is what a loop's body sees as loop.
type loopState struct {
	l     *loop
	s     *scope
	items []Value
	depth int64
	i     int
	last  []Value // what changed was called with
}

func (s *loopState) value() *object {
	o := &object{name: "LoopContext", attr: map[string]Value{
		"length": int64(len(s.items)), "depth": s.depth, "depth0": s.depth - 1,
	}, call: s.recurse}
	o.attr["cycle"] = method("cycle", func(_ *run, c *call) Value {
		if len(c.pos) == 0 {
			fail("no items for cycling given")
		}
		return c.pos[s.i%len(c.pos)]
	})
	o.attr["changed"] = method("changed", func(r *run, c *call) Value {
		now := append([]Value{}, c.pos...)
		same := s.last != nil && r.equal(&List{Items: s.last}, &List{Items: now})
		s.last = now
		return !same
	})
	return o
}

// at moves to item i.
func (s *loopState) at(o *object, i int) {
	n := len(s.items)
	s.i = i
	o.attr["index"], o.attr["index0"] = int64(i+1), int64(i)
	o.attr["revindex"], o.attr["revindex0"] = int64(n-i), int64(n-i-1)
	o.attr["first"], o.attr["last"] = i == 0, i == n-1
	o.attr["previtem"] = Value(&undefined{"there is no previous item"})
	o.attr["nextitem"] = Value(&undefined{"there is no next item"})
	if i > 0 {
		o.attr["previtem"] = s.items[i-1]
	}
	if i+1 < n {
		o.attr["nextitem"] = s.items[i+1]
	}
}

// recurse is loop(items) in a recursive loop.
func (s *loopState) recurse(r *run, c *call) Value {
	if !s.l.recursive {
		fail("the loop is not recursive")
	}
	over := c.need("iterable")[0]
	return r.capture(func() { s.l.exec(r, s.s, over, int(s.depth)+1) })
}
