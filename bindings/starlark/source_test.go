package starlark

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	star "go.starlark.net/starlark"
)

// run runs src as a file called bad.star.
func run(src string) error {
	return newTest(Config{}).RunSource(background, "bad.star", []byte(src))
}

func TestErrorText(t *testing.T) {
	for _, test := range errorTexts {
		t.Run(test.name, func(t *testing.T) {
			err := run(test.src)
			if err == nil {
				t.Fatal("got no error")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var errorTexts = []struct{ name, src, want string }{
	{"method", `
def main():
    x = struct(a=[1])
    y = x.a.index(2, 0)
main()
`, `bad.star:4:13: index: value not in list
    y = x.a.index(2, 0)
            ^
  called from bad.star:5:1`},
	{"deep", `
def f(x): return 1 // x
def g(x): return sorted([x], key=f)
def h(): g(0)
h()
`, `bad.star:2:20: floored division by zero
    def f(x): return 1 // x
                       ^
  called from bad.star:3:18 in g
  called from bad.star:4:10 in h
  called from bad.star:5:1`},
	{"function", "len(3)", `bad.star:1:1: len: value of type int has no len
    len(3)
    ^`},
	{"call of a call", "len(\n  str)(3)", `bad.star:1:1: len: value of type builtin_function_or_method has no len
    len(
    ^`},
	{"attribute over lines", "x = struct(a=1)\ny = (x.\n  a.b)", `bad.star:3:5: int has no .b field or method
    a.b)
      ^`},
	{"operator", "x = [1] + 2 * 3", `bad.star:1:9: unknown binary op: list + int
    x = [1] + 2 * 3
            ^`},
	{"index", "x = [1]\nx[3]", `bad.star:2:2: list index 3 out of range [-1:0]
    x[3]
     ^`},
	{"for", "for x in (3):\n  pass", `bad.star:1:10: int value is not iterable
    for x in (3):
             ^`},
	{"variable", "def f():\n  return y + 1\n  y = 2\nf()",
		`bad.star:2:10: local variable y referenced before assignment
    return y + 1
           ^
  called from bad.star:4:1`},
	{"condition", "h = handle('h')\nif (1 and\n    h):\n  pass", `bad.star:3:5: and: a handle has no truth value
    h):
    ^`},
	{"equality", "h = handle('h')\nx = 3 if h == 0 else 4", `bad.star:2:12: ==: would compare the handle h with 0
    x = 3 if h == 0 else 4
               ^`},
	{"tabs and wide characters", "def f():\n\ts = '日本e\u0301';\treturn s.nope()\nf()",
		"bad.star:2:23: string has no .nope field or method\n" +
			"    s = '日本e\u0301';\treturn s.nope()\n" +
			"                \t         ^\n  called from bad.star:3:1"},
	{"carriage returns", "x = 1\r\ny = x.z\r\n",
		"bad.star:2:7: int has no .z field or method\n    y = x.z\n          ^"},
	{"syntax", "x = (1,\ny = 2", `bad.star:2:3: got '=', want ')'
    y = 2
      ^`},
	{"string not closed", "x = 'abc", `bad.star:1:5: unexpected EOF in string
    x = 'abc
        ^`},
	{"fail", "fail('a', 3)", `bad.star:1:1: fail: a 3
    fail('a', 3)
    ^`},
	{"arguments", "def f(a): pass\nf(1, 2)", `bad.star:2:1: function f accepts 1 positional argument (2 given)
    f(1, 2)
    ^`},
	{"arguments of a callback", "def f(a, b): pass\nsorted([1], key=f)",
		`bad.star:2:1: function f missing 1 argument (b)
    sorted([1], key=f)
    ^`},
}

func TestErrorFields(t *testing.T) {
	err := run("def f():\n    return 1 // 0\n\nf()")
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %T", err)
	}
	want := &Error{
		Msg:    "floored division by zero",
		Place:  Place{File: "bad.star", Line: 2, Col: 14, Func: "f"},
		Source: "    return 1 // 0",
		Calls:  []Place{{File: "bad.star", Line: 4, Col: 1, Func: "<toplevel>"}},
	}
	if diff := cmp.Diff(want, e, cmpopts.IgnoreUnexported(Error{})); diff != "" {
		t.Error(diff)
	}
}

// misuse is a typed error of the engine's kind.
type misuse struct{ op string }

func (m *misuse) Error() string { return m.op + ": misuse" }

// TestErrorUnwraps looks for a typed error, returned or panicked with, through calls and loads.
func TestErrorUnwraps(t *testing.T) {
	for _, panics := range []bool{false, true} {
		it, _ := inProject(t)
		it.Predeclare("dot", star.NewBuiltin("dot",
			func(*star.Thread, *star.Builtin, star.Tuple, []star.Tuple) (star.Value, error) {
				err := &misuse{"dot"}
				if panics {
					panic(err)
				}
				return nil, fmt.Errorf("wrapped: %w", err)
			}))
		err := it.RunSource(background, "<test>", []byte("def f(): dot()\nf()"))
		var typed *misuse
		var eval *star.EvalError
		var e *Error
		if !errors.As(err, &typed) || typed.op != "dot" || !errors.As(err, &eval) || !errors.As(err, &e) {
			t.Errorf("panics=%t: cannot unwrap %v", panics, err)
			continue
		}
		if e.Line != 1 || e.Col != 10 || e.Stack != nil || !strings.HasSuffix(e.Msg, "dot: misuse") {
			t.Errorf("panics=%t: got %v", panics, err)
		}
	}
}

func TestLongBacktrace(t *testing.T) {
	err := run("def f(n):\n    return f(n - 1) if n > 0 else 1 // n\nf(30)")
	text := err.Error()
	if !strings.Contains(text, "\n  … 19 more calls …\n") {
		t.Errorf("got\n%s", text)
	}
	if n := strings.Count(text, "called from"); n != maxCallsShown {
		t.Errorf("%d calls are shown, want %d:\n%s", n, maxCallsShown, text)
	}
	if !strings.HasSuffix(text, "called from bad.star:3:1") {
		t.Errorf("the outermost call is missing:\n%s", text)
	}
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("abcdefghij", 30)
	for _, test := range []struct {
		name, line string
		col        int
		text, mark string
	}{
		{"indented", "    x.y", 6, "x.y", " ^"},
		{"in the indentation", "    x.y", 2, "   x.y", "^"},
		{"after the end", "x +", 4, "x +", "   ^"},
		{"far after the end", "x", 99, "x", " ^"},
		{"before the start", "x", 0, "x", "^"},
		{"empty", "", 1, "", "^"},
		{"start of a long line", long, 3, long[:110] + "…", "  ^"},
		{"middle", long, 151, "…" + long[95:205] + "…", strings.Repeat(" ", 56) + "^"},
		{"end", long, 300, "…" + long[244:], strings.Repeat(" ", 56) + "^"},
	} {
		text, mark := excerpt(test.line, test.col)
		if text != test.text || mark != test.mark {
			t.Errorf("%s: got\n%s\n%s\nwant\n%s\n%s", test.name, text, mark, test.text, test.mark)
		}
	}
}

// FuzzEvalErrors compiles any text as a block and renders its error, which must point into it.
func FuzzEvalErrors(f *testing.F) {
	for _, src := range []string{
		"x = f'{a}{{' + '\\", "a @ b", "x[1:, :]", "if a == not b: pass", "def f(:\n\tpass", "\u00a0x", "1_0", "x = “",
		"load(", "'''\n\n", "f(a b)\n", "{**a", "a\r\nb c", "lambda: (yield)", "@", "x = [\n#", "é.in", "if x:\n\n",
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		it := New(Config{})
		it.sources["<fuzz>"] = src
		if _, err := it.parseBlock("<fuzz>", src); err != nil {
			e := it.locate(err)
			lines := strings.Count(src, "\n") + strings.Count(src, "\r") + 1
			if e.Line < 1 || e.Line > lines || e.Col < 1 {
				t.Errorf("%q: the error is at %s", src, e.Place)
			}
			if strings.Contains(e.Msg, "\n") && !strings.Contains(src, "\n") || !strings.Contains(e.Error(), e.Msg) {
				t.Errorf("%q: got %v", src, e)
			}
		}
	})
}
