package chat

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestHostile gives templates that would never end, or fill the memory, and wants an error soon.
func TestHostile(t *testing.T) {
	const works = ""
	for _, c := range []struct{ name, source, want string }{
		{"endless macro", "{% macro f() %}{{ f() }}{% endmacro %}\n{{ f() }}", "line 1: too deep"},
		{"loops", "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{% endfor %}" +
			"{% endfor %}{% endfor %}", "than is allowed"},
		{"range", "{{ range(9223372036854775807) }}", "range of 9223372036854775807 integers is too big"},
		{"range from the least", "{{ range(-9223372036854775807, 9223372036854775807) }}", "is too big"},
		{"range by the most", "{{ range(0, 9, 9223372036854775807)|list|length }}", works},
		{"repeat", "{{ 'ab' * 9223372036854775807 }}", "longer than"},
		{"repeat list", "{{ [1, 2] * 9223372036854775807 }}", "more than is allowed"},
		{"doubling", "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
			"longer than"},
		{"doubling list", "{% set l = [1] %}{% for i in range(99) %}{% set _ = l.extend(l) %}{% endfor %}",
			"more than is allowed"},
		{"replace", "{{ ('a' * 1000000)|replace('a', 'b' * 1000000) }}", "longer than"},
		{"replace nothing", "{{ ('a' * 1000000).replace('', 'b' * 1000000) }}", "longer than"},
		{"join", "{{ (['a' * 1000000] * 1000)|join }}", "longer than"},
		{"indent", "{{ ('a\n' * 100000)|indent(1000000) }}", "than is allowed"},
		{"width", "{{ '%1000000000d' % 1 }}", "width or precision 1000000000"},
		{"format width", "{{ '{:>1000000000}'.format('a') }}", "longer than"},
		{"center", "{{ 'a'.center(9000000000) }}", "longer than"},
		{"list in itself", "{% set l = [1] %}{% set _ = l.append(l) %}{{ l }}", "too deep"},
		{"json of itself", "{% set d = {} %}{% set _ = d.update({'a': d}) %}{{ d|tojson(indent=99999) }}", "more work"},
		{"equal to itself", "{% set a, b = [], [] %}{% set _ = a.append(a), b.append(b) %}{{ a == b }}", "too deep"},
		{"brackets", "{{ " + strings.Repeat("(", 999) + strings.Repeat(")", 999) + "}}", "more than 100 blocks"},
		{"not", "{{ " + strings.Repeat("not ", 1000) + "1 }}", "more than 100 blocks or brackets"},
		{"minus", "{{ " + strings.Repeat("-", 1000) + "1 }}", "more than 100 blocks or brackets"},
		{"blocks", strings.Repeat("{% if 1 %}", 1000), "more than 100 blocks or brackets"},
		{"a long sum", "{{ 1" + strings.Repeat("+1", 100000) + " }}", "too deep"},
		{"long filters", "{{ 1" + strings.Repeat("|abs", 50000) + " }}", "too deep"},
		{"long", strings.Repeat("a", maxSource+1), "262145 bytes"},
		{"power", "{{ 3 ** 9223372036854775807 }} ", "more than 64 bits"},
		{"sum of the largest", "{{ 9223372036854775807 + 1 }}", "more than 64 bits"},
		{"least", "{{ (-9223372036854775807 - 1) // -1 }}", "more than 64 bits"},
		{"product of the least", "{{ (-9223372036854775807 - 1) * -1 }}", "more than 64 bits"},
		{"batch", "{{ [1]|batch(2000000000, 0) }}", "more than is allowed"},
		{"slice", "{{ [1]|slice(2000000000) }}", "more than is allowed"},
		{"step", "{{ [1, 2][::9223372036854775807] }}{{ [1, 2][::-9223372036854775807] }}", works},
		{"output", "{% for i in range(90000) %}{{ 'a' * 1000 }}{% endfor %}", "longer than"},
		{"strip", "{% set a = 'ab' * 4000000 %}{{ a.strip(a) }}", "more work than is allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			text, err := render(c.source, NewDict())
			if (err == nil) != (c.want == works) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.60q, %v, want an error with %q", text, err, c.want)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	loops := "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"
	for name, source := range map[string]string{
		"loops": loops,
		"texts": "{% for a in range(100000) %}{% set x = ('ab' * 1000000)|upper %}{% endfor %}",
		"sorts": "{% for a in range(100000) %}{% set x = range(100000)|sort(reverse=true) %}{% endfor %}",
	} {
		tmpl, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		tmpl.MaxWork = 1 << 60
		ctx, cancel := context.WithCancel(context.Background())
		var canceled time.Time
		time.AfterFunc(20*time.Millisecond, func() { canceled = time.Now(); cancel() })
		if _, err := tmpl.Render(ctx, NewDict()); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v, want %v", name, err, context.Canceled)
		}
		if took := time.Since(canceled); took > time.Second { // 50 ms on a machine with nothing else to do
			t.Errorf("%s: the rendering ended %v after it was canceled", name, took)
		}
	}
}

func TestLimits(t *testing.T) {
	tmpl, err := Parse("{{ 'a' * 100 }}")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		output, work int
		ok           bool
	}{{100, 0, true}, {99, 0, false}, {0, 1000, true}, {0, 100, false}} {
		tmpl.MaxOutput, tmpl.MaxWork = c.output, c.work
		if text, err := tmpl.Render(context.Background(), NewDict()); (err == nil) != c.ok || c.ok && len(text) != 100 {
			t.Errorf("output %d, work %d: got %d bytes, %v", c.output, c.work, len(text), err)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		source string
		want   string
	}{
		{"a\n{{ raise_exception('No ' ~ 'tools') }}", "chat template, line 2: the template refuses: No tools"},
		{"{% macro f() %}\n{{ x.y }}{% endmacro %}\n\n{{ f() }}", "chat template, line 2: 'x' is undefined"},
		{"\n\n{% if a %}\n{% else %}", "chat template, line 4: the block that begins here has no {% endif %}"},
		{"\n{% nothing %}", `chat template, line 2: unknown tag "nothing"`},
		{"{{\n1 +\n'a' }}", "chat template, line 2: unsupported operand type(s) for +: 'int' and 'str'"},
		{"{{ 'a\n' }}\n{{ 'x }}", "chat template, line 3: the string has no closing '"},
		{"{% for x in 1 %}{% endfor %}", "chat template, line 1: 'int' object is not iterable"},
		{"{{ 'a'|nothing }}", "chat template, line 1: no filter named 'nothing'"},
		{"{{ 1 is nothing }}", "chat template, line 1: no test named 'nothing'"},
		{"{{ 'a'|join(1, 2, 3) }}", "chat template, line 1: join takes at most 2 arguments, got 3"},
		{"a\n{% break %}", "chat template, line 2: break and continue need a loop around them"},
		{"{% for x in [1] %}{% macro f() %}{% break %}{% endmacro %}{% endfor %}",
			"chat template, line 1: break and continue need a loop around them"},
		{"{{ strftime_now('%Q') }}", "chat template, line 1: strftime_now: %Q is not known"},
	} {
		_, err := render(c.source, NewDict())
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: got %v, want %s", c.source, err, c.want)
		}
		if e := (*Error)(nil); !errors.As(err, &e) || e.Raised != strings.Contains(c.want, "refuses") {
			t.Errorf("%q: got %#v", c.source, err)
		}
	}
	if text, err := render("{{ x is defined }}", nil); text != "False" || err != nil {
		t.Errorf("without variables: got %q, %v", text, err)
	}
	vars := &Dict{}
	vars.Set("self", vars)
	if _, err := render("", vars); err == nil || !strings.Contains(err.Error(), "too deep") {
		t.Errorf("got %v for a dictionary in itself", err)
	}
	vars = NewDict()
	vars.Set("x", []int{1})
	if _, err := render("", vars); err == nil || !strings.Contains(err.Error(), "Go type []int") {
		t.Errorf("got %v for a value that is none", err)
	}
}

// TestInputStays insists that a template changes nothing outside.
func TestInputStays(t *testing.T) {
	vars, m := NewDict(), NewDict()
	l := &List{Items: []Value{m}}
	vars.Set("l", l)
	text, err := render("{% set _ = l[0].update({'a': 1}) %}{% set _ = l.append(2) %}{{ l }}", vars)
	if err != nil || text != "[{'a': 1}, 2]" || m.Len() != 0 || len(l.Items) != 1 {
		t.Errorf("got %q, %v; outside are %d entries and %d items", text, err, m.Len(), len(l.Items))
	}
}

func TestTokensAndTime(t *testing.T) {
	tmpl, err := Parse("{{ bos_token }}|{{ eos_token }}|{{ strftime_now('%d %b %Y, %-d. %H:%M:%S %A %j %%') }}")
	if err != nil {
		t.Fatal(err)
	}
	tmpl.BOS, tmpl.EOS = "<s>", "</s>"
	tmpl.Now = func() time.Time { return time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC) }
	const want = "<s>|</s>|03 Feb 2024, 3. 04:05:06 Saturday 034 %"
	if text, err := tmpl.Render(context.Background(), NewDict()); text != want {
		t.Errorf("got %q, %v, want %q", text, err, want)
	}
}

func FuzzRender(f *testing.F) {
	var file struct{ Cases []struct{ Template string } }
	read(f, "jinja2.json", &file)
	for _, c := range file.Cases {
		f.Add(c.Template)
	}
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := Parse(source)
		if err == nil {
			tmpl.MaxWork, tmpl.MaxOutput = 1<<22, 1<<16
			_, err = tmpl.Render(context.Background(), NewDict())
		}
		if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
			t.Errorf("%q: got an error of type %T", source, err)
		}
	})
}
