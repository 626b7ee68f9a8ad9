package repl

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/bindings/starlark"
)

// session runs a REPL on the given lines and returns it with what it wrote.
func session(t *testing.T, lines ...string) (r *REPL, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	r = &REPL{
		Interp:  starlark.New(starlark.Config{Stdout: &o}),
		Editor:  &keys{lines: lines},
		History: &History{},
		Out:     &o,
		Err:     &e,
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, o.String(), e.String()
}

// TestClocks times one line and many runs of one.
func TestClocks(t *testing.T) {
	_, out, errs := session(t, "%time x = 2 * 21", "x", " %time x", "%timeit x + 1", "%time 1 +", "%run x")
	took := `took [\d.]+[mµn]?s\n`
	want := regexp.MustCompile(`^` + took + `42\n42\n` + took + `struct\(least = \S+, mean = \S+, runs = \d+\)\n$`)
	if !want.MatchString(out) {
		t.Errorf("got %q", out)
	}
	if !strings.Contains(errs, "<input 5>") || !strings.Contains(errs, "but, at the prompt, %time and %timeit") {
		t.Errorf("got errors %q", errs)
	}
}

// TestClocksLong times blocks of several lines, and what has commas or a comment.
func TestClocksLong(t *testing.T) {
	_, out, errs := session(t, "%time for i in range(2):", "    print(i)", "", "%time x = [i", "for i in range(3)]",
		"x", "%timeit 1, 2", "%timeit 1 + 1 # two", "%timeit max(1,", "2)", "for i in [7]:", "    print(i)", "",
		"%time 8")
	took, many := `took [\d.]+[mµn]?s\n`, `struct\(least = \S+, mean = \S+, runs = \d+\)\n`
	want := regexp.MustCompile(`^0\n1\n` + took + took + `\[0, 1, 2\]\n` +
		strings.Repeat(many, 3) + `7\n8\n` + took + `$`)
	if !want.MatchString(out) || errs != "" {
		t.Errorf("got %q and errors %q", out, errs)
	}
}

func TestSession(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		out   string
		errs  string
	}{
		{"values", []string{"1 + 1", `"a\n"`, "None", "x = 3", "[x]"}, "2\n\"a\\n\"\n[3]\n", ""},
		{"print", []string{`print("a")`}, "a\n", ""},
		{"large inside", []string{`struct(w=ones(a=4, b=5), c=[ones(a=2)])`, "ones(a=17)", "print([ones(a=17)])"},
			"struct(c = [f32[a=2] [1, 1]], w = f32[a=4, b=5] …)\n" +
				"f32[a=17] [" + strings.Repeat("1, ", 16) + "1]\n" +
				"[f32[a=17] [" + strings.Repeat("1, ", 16) + "1]]\n", ""},
		{"deep inside", []string{"def f(n):", "    x = []", "    for i in range(n): x = [x]", "    return x", "",
			"f(1000000)"}, strings.Repeat("[", 200) + "…\n", ""},
		{"last value", []string{"6 * 7", "x = _", "None", "_ + x"}, "42\n84\n", ""},
		{"function", []string{"def f(x):", "    # twice", "    return 2 * x", "", "f(4)"}, "8\n", ""},
		{"loop", []string{"n = 0", "for i in range(4):", "    n += i", "", "n"}, "6\n", ""},
		{"pasted", []string{"def f():", "    return 1", "def g():", "    return f()", "x = g()", "x"}, "1\n", ""},
		{"function sees later values", []string{"k = 1", "def f(): return k", "", "k = 2", "f()"}, "2\n", ""},
		{"ends within a block", []string{"for i in [7]:", "    print(i)"}, "7\n", ""},
		{"help", []string{"def f(x):", "    'Doubles.'", "    return 2 * x", "", "?f", "f?", " ? f ", "x = 1 # ?"},
			strings.Repeat("f(x)\n\nDoubles.\n", 3), ""},
		{"help twice asked", []string{"def f(x):", "    'Doubles.'", "    return 2 * x", "", "f??", "??f"},
			strings.Repeat("f(x)\n\nDoubles.\n", 2), ""},
		{"help on a builtin", []string{"?print"}, "print(*args, sep=\" \", end=\"\\n\"): the arguments as text " +
			"with sep between them and\nend behind.\n", ""},
		{"Ctrl-C clears the block", []string{"def f():", "    return 1^C", "2"}, "2\n", ""},
		{"Ctrl-C twice", []string{"^C", "^C", "1"}, "1\n", "(Ctrl-D leaves)\n"},
		{"Ctrl-C after typing", []string{"^C", "x^C", "^C", "1"}, "1\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, out, errs := session(t, tt.lines...)
			if diff := cmp.Diff(tt.out, out); diff != "" {
				t.Errorf("output (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tt.errs, errs); diff != "" {
				t.Errorf("errors (-want +got)\n%s", diff)
			}
		})
	}
}

func TestErrorsLeaveTheSessionIntact(t *testing.T) {
	_, out, errs := session(t, "x = 1", "def f(y):", "    return y + None", "", "f(x)", "z = = 1", "x")
	if out != "1\n" {
		t.Errorf("output %q, want the value of x", out)
	}
	want := []string{"<input 2>:2:", "return y + None", "<input 4>:1:", "z = = 1", "^"}
	for _, w := range want {
		if !strings.Contains(errs, w) {
			t.Errorf("errors lack %q:\n%s", w, errs)
		}
	}
}

func TestHistoryOfASession(t *testing.T) {
	r, _, _ := session(t, "x = 1", "", "def f():", "    return 1", "", "f(^C", "f()", "f()")
	want := []string{"x = 1", "def f():\n    return 1", "f()"}
	if diff := cmp.Diff(want, r.History.Blocks()); diff != "" {
		t.Errorf("blocks (-want +got)\n%s", diff)
	}

	later := &keys{}
	r.Editor = later
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want = []string{"x = 1", "def f():", "    return 1", "f()"}
	if diff := cmp.Diff(want, later.remembered); diff != "" {
		t.Errorf("lines to recall (-want +got)\n%s", diff)
	}
}

func TestInterruptKeepsVariables(t *testing.T) {
	interrupts := make(chan os.Signal, 1)
	interrupts <- os.Interrupt // stale: must not end the first block
	var out, errs strings.Builder
	lines := []string{"x = 1", "if x:", "    x += 1", "    interrupt()", "    while True: x += 1", "", "x > 1",
		"def wait():", "    interrupt()", "    while not interrupted(): pass", "    print(\"saved\")", "",
		"defer_interrupt(wait)", "x = 2", "x"}
	interp := starlark.New(starlark.Config{Stdout: &out})
	interp.Predeclare("interrupt", star.NewBuiltin("interrupt",
		func(*star.Thread, *star.Builtin, star.Tuple, []star.Tuple) (star.Value, error) {
			interrupts <- os.Interrupt
			return star.None, nil
		}))
	r := &REPL{
		Interp:     interp,
		Editor:     &keys{lines: lines},
		History:    &History{},
		Out:        &out,
		Err:        &errs,
		Interrupts: interrupts,
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if out.String() != "True\nsaved\n2\n" {
		t.Errorf("output %q, want True, saved, 2", out.String())
	}
	if !strings.Contains(errs.String(), "interrupted") || !strings.Contains(errs.String(), "<input 2>:") ||
		!strings.Contains(errs.String(), "<input 5>:") {
		t.Errorf("errors %q, want the places of the interrupts in <input 2> and 5", errs.String())
	}
}

func TestLines(t *testing.T) {
	var out strings.Builder
	interrupts := make(chan os.Signal, 1)
	in, feed := io.Pipe()
	l := NewLines(in, &out, interrupts)
	go func() { _, _ = io.WriteString(feed, "a\r\nb\n") }()
	for _, want := range []string{"a", "b"} {
		if line, err := l.ReadLine(t.Context(), "> "); line != want || err != nil {
			t.Errorf("got %q, %v, want %q", line, err, want)
		}
	}
	interrupts <- os.Interrupt
	if _, err := l.ReadLine(t.Context(), "> "); !errors.Is(err, ErrInterrupt) {
		t.Errorf("got %v, want an interrupt", err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := l.ReadLine(left, "> "); !errors.Is(err, ErrInterrupt) {
		t.Errorf("got %v, want an interrupt where nobody waits", err)
	}
	go func() { _, _ = io.WriteString(feed, "last"); feed.Close() }()
	if line, err := l.ReadLine(t.Context(), "> "); line != "last" || err != nil {
		t.Errorf("got %q, %v, want the line without a newline", line, err)
	}
	if _, err := l.ReadLine(t.Context(), "> "); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
	if want := "> > > \n> \n> > \n"; out.String() != want {
		t.Errorf("prompts %q, want %q", out.String(), want)
	}
}

func TestPrintError(t *testing.T) {
	err := errors.New("a.star:1:5: no such name\n    x = y\n        ^")
	var plain, colored strings.Builder
	PrintError(&plain, err, false)
	if want := err.Error() + "\n"; plain.String() != want {
		t.Errorf("plain: got %q, want %q", plain.String(), want)
	}
	PrintError(&colored, err, true)
	const red, reset = "\x1b[31;1m", "\x1b[0;22m"
	want := red + "a.star:1:5: no such name" + reset + "\n    x = y\n" + red + "        ^" + reset + "\n"
	if diff := cmp.Diff(want, colored.String()); diff != "" {
		t.Errorf("colour (-want +got)\n%s", diff)
	}
}

func TestQuestions(t *testing.T) {
	_, out, errs := session(t, "?", "?sofmax")
	if !strings.HasPrefix(out, `help("softmax") explains a name`) {
		t.Errorf("? printed %q, want what help() prints", out)
	}
	if want := "undefined: sofmax; did you mean softmax?"; !strings.Contains(errs, want) {
		t.Errorf("errors %q, want %q", errs, want)
	}
}

// No error is nothing to print.
func TestPrintNoError(t *testing.T) {
	var b strings.Builder
	PrintError(&b, nil, true)
	PrintError(&b, nil, false)
	if b.Len() > 0 {
		t.Errorf("wrote %q", b.String())
	}
}
