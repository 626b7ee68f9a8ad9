package starlark

import (
	"fmt"
	"strings"
	"testing"

	star "go.starlark.net/starlark"
	"pgregory.net/rapid"
)

// expression draws an expression of the operators that the pass rewrites, over values of several types and
// calls that leave a trace, so that the order of evaluation and the short circuits are compared too.
func expression(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 5).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom([]string{
			"0", "1", "1.0", `""`, `"a"`, "[]", "[1]", "()", "None", "True", "False", "t(0)", "t('a')", "t([])",
			"x", "{}",
		}).Draw(t, "value")
	}
	sub := func() string { return expression(t, depth-1) }
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0:
		return "(" + sub() + " == " + sub() + ")"
	case 1:
		return "(" + sub() + " != " + sub() + ")"
	case 2:
		return "(" + sub() + " and " + sub() + ")"
	case 3:
		return "(" + sub() + " or " + sub() + ")"
	case 4:
		return "(not " + sub() + ")"
	case 5:
		return "(" + sub() + " if " + sub() + " else " + sub() + ")"
	case 6:
		return "[x for x in [0, 1, 2] if " + sub() + "]"
	case 7:
		return "(lambda x=" + sub() + ": " + sub() + ")()"
	default:
		return "{1: " + sub() + ", 2: " + sub() + " in [" + sub() + "]}"
	}
}

const expressionRun = `
trace = []
def t(v):
    trace.append(v)
    return v
def run(x):
    n = 0
    while x != %[1]s and n < 2:
        n += 1
    if %[1]s:
        trace.append("if")
    elif not %[1]s == x:
        trace.append("elif")
    return %[1]s
result = repr((run(1), run([]), trace))
`

// TestPassKeepsMeaning compares random programs of ordinary values with the same in plain Starlark.
func TestPassKeepsMeaning(t *testing.T) {
	it := New(Config{})
	rapid.Check(t, func(t *rapid.T) {
		src := fmt.Sprintf(expressionRun, expression(t, 4))
		plain, err := star.ExecFileOptions(dialect, &star.Thread{}, "plain", src, nil)
		if err != nil {
			t.Fatalf("%s\n%v", src, err)
		}
		want := plain["result"].String()
		for _, run := range []func() error{
			func() error { return it.RunSource(background, "file", []byte(src)) },
			func() error { _, err := it.Eval(background, "block", src); return err },
		} {
			if err := run(); err != nil {
				t.Fatalf("%s\n%v", src, err)
			}
			if got := it.Globals()["result"].String(); got != want {
				t.Fatalf("%s\ngot  %s\nwant %s", src, got, want)
			}
		}
	})
}

// pair is a value whose == gives another value that cannot be a condition.
type pair struct{ handle }

func (p pair) Compare(string, star.Value, bool) (star.Value, error) {
	return handle{"elementwise"}, nil
}

// TestCompareMayReturnAnyValue checks == where its result is a value and where it is a condition.
func TestCompareMayReturnAnyValue(t *testing.T) {
	for _, test := range []struct{ src, want string }{
		{"p == 1", "handle(elementwise)"},
		{"[p != 1][0]", "handle(elementwise)"},
		{"0 or p == 1", "handle(elementwise)"},
		{"1 if p == 1 else 2", "if: a handle has no truth value"},
		{"not p != 1", "if: a handle has no truth value"},
		{"p == 1 or 0", "if: a handle has no truth value"},
	} {
		it := newTest(Config{})
		it.Predeclare("p", pair{})
		v, err := it.Eval(background, "<test>", test.src)
		got := fmt.Sprint(v)
		if err != nil {
			got = err.(*Error).Msg
		}
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.src, got, test.want)
		}
	}
}

// TestHiddenNamesCannotBeSpelt checks that no script reaches the values that the pass inserts.
func TestHiddenNamesCannotBeSpelt(t *testing.T) {
	names := append(checks.Keys(), globalTable)
	for _, name := range names {
		if err := run("x = " + name); err == nil {
			t.Errorf("a script can say %s", name)
		}
		if err := run(name + " = 3"); err == nil {
			t.Errorf("a script can assign %s", name)
		}
	}
	err := run("load('@stdlib//text.star', 'if')")
	if err == nil || !strings.Contains(err.Error(), "name if not found") {
		t.Errorf("got %v", err)
	}
}

// BenchmarkConditions measures what the pass costs, against plain Starlark; subtract "pass", the empty loop.
func BenchmarkConditions(b *testing.B) {
	for _, body := range []string{"pass", "if i == 3: pass", "if x: pass", "if i < 3: pass", "if x and y: pass"} {
		const loop = "def loop():\n  x = [1]\n  y = {1: 2}\n  for i in range(%d):\n    %s\nloop()"
		b.Run(body+"/plain", func(b *testing.B) {
			src := fmt.Sprintf(loop, b.N, body)
			if _, err := star.ExecFileOptions(dialect, &star.Thread{}, "bench", src, nil); err != nil {
				b.Fatal(err)
			}
		})
		b.Run(body+"/checked", func(b *testing.B) {
			b.ReportAllocs()
			if err := New(Config{}).RunSource(background, "bench", fmt.Appendf(nil, loop, b.N, body)); err != nil {
				b.Fatal(err)
			}
		})
	}
}
