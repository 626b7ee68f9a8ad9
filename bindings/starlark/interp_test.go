package starlark

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	star "go.starlark.net/starlark"
)

var background = context.Background()

func TestPrintAndWrite(t *testing.T) {
	var raw bytes.Buffer
	buffered := bufio.NewWriter(&raw)
	it := New(Config{Stdout: buffered})
	src := `print("a", 1, [ "b" ]); print("x", "y", sep="-", end="!"); print()`
	if err := it.RunSource(background, "<test>", []byte(src)); err != nil {
		t.Fatal(err)
	}
	if raw.Len() > 0 {
		t.Errorf("print flushed %q", raw.String())
	}
	if err := it.RunSource(background, "<test>", []byte(`write("to", "k", 3)`)); err != nil {
		t.Fatal(err)
	}
	if want := "a 1 [\"b\"]\nx-y!\ntok3"; raw.String() != want {
		t.Errorf("got %q after write, want %q", raw.String(), want)
	}
}

func TestRunFile(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"main.star": "\ufeffx = args\ndef f(): return len(x)\n"})
	it := New(Config{Args: []string{"a", "b"}})
	if err := it.RunFile(background, filepath.Join(dir, "main.star")); err != nil {
		t.Fatal(err)
	}
	v, err := it.Eval(background, "<1>", `f(), x, x.append("c"), f()`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := v.String(), `(2, ["a", "b", "c"], None, 3)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	err = it.RunFile(background, filepath.Join(dir, "none.star"))
	if _, ok := err.(*Error); !ok || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gave %T %v", err, err)
	}
}

// TestEval runs blocks one after the other in one session. want is the value of the last one, or its error.
func TestEval(t *testing.T) {
	for _, test := range []struct {
		name   string
		blocks []string
		want   string
	}{
		{"expression", []string{"1 + 2"}, "3"},
		{"tuple", []string{"1, 2"}, "(1, 2)"},
		{"None", []string{"None"}, "None"},
		{"statement", []string{"x = 3"}, "<nil>"},
		{"statements", []string{"x = 3\nx"}, "<nil>"},
		{"empty", []string{"# nothing"}, "<nil>"},
		{"variable", []string{"x = 3", "x += 1", "x"}, "4"},
		{"function sees a new value", []string{"x = 1", "def f(): return x", "x = 2", "f()"}, "2"},
		{"function calls the new function", []string{
			"def g(): return 1", "def f(): return g()", "def g(): return 2", "f()"}, "2"},
		{"new value in the same block", []string{
			"x = 1\ndef f(): return x", "y = []\nfor x in range(3):\n  y.append(f())", "y"}, "[0, 1, 2]"},
		{"lambda and default", []string{"k = 2\nf = lambda x, y=k: x * y * k", "k = 10", "f(3)"}, "60"},
		{"nested function", []string{
			"k = 2\ndef f(x):\n  def g():\n    return x * k\n  return g()", "k = 3", "f(2)"}, "6"},
		{"locals stay local", []string{"x = 1", "def f(x): x = x + 1; return x", "(f(5), x)"}, "(6, 1)"},
		{"keyword names are not variables", []string{"a = 1", "struct(a=a).a"}, "1"},
		{"comprehension variable is local", []string{"x = 7", "[x for x in range(2)]", "x"}, "7"},
		{"loop variables", []string{"for i, j in [(1, 2)]: pass", "i + j"}, "3"},
		{"unpacking", []string{"(a, [b, c]) = 1, (2, 3)", "a + b * c"}, "7"},
		{"element and field", []string{"d = {}", "d['k'] = [1]; d['k'] += [2]", "d"}, `{"k": [1, 2]}`},
		{"in place", []string{"a = [1]\nb = a", "a += [2]", "b"}, "[1, 2]"},
		{"load binds for the session", []string{
			`load("@stdlib//text.star", "text", c="count")`, "(type(text), c(1000))"}, `("module", "1K")`},
		{"predeclared name taken", []string{"sum = 3", "sum + 1"}, "4"},
		{"def under if", []string{"if True:\n  def f(): return 5", "f()"}, "5"},
		{"doc string", []string{"def f():\n  'says'\n  return 1", "f()"}, "1"},
		{"assigned before an error", []string{"x = 1\ny = x // 0\nz = 1", "x"}, "1"},
		{"not assigned after it", []string{"x = 1\ny = x // 0\nz = 1", "z"}, "error: undefined: z"},
		{"used before assignment", []string{"x += 1"}, "error: global variable x referenced before assignment"},
		{"redefined after an error", []string{"x = ", "x = 2", "x"}, "2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			it := New(Config{})
			var got string
			for _, block := range test.blocks {
				v, err := it.Eval(background, "<block>", block)
				switch {
				case err != nil:
					got = "error: " + err.(*Error).Msg
				case v == nil:
					got = "<nil>"
				default:
					got = v.String()
				}
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestGlobalsAreLive(t *testing.T) {
	it := New(Config{})
	var during string
	it.Predeclare("look", star.NewBuiltin("look",
		func(th *star.Thread, _ *star.Builtin, _ star.Tuple, _ []star.Tuple) (star.Value, error) {
			during = interpOf(th).Globals().String()
			return star.None, nil
		}))
	if _, err := it.Eval(background, "<1>", "x = 1\nlook()\nx = 2"); err != nil {
		t.Fatal(err)
	}
	if want := "{x: 1}"; during != want {
		t.Errorf("during the block the globals were %s, want %s", during, want)
	}
	if got, want := it.Globals().String(), "{x: 2}"; got != want {
		t.Errorf("after the block the globals are %s, want %s", got, want)
	}
	if it.Thread().Local(threadLocal) != it {
		t.Error("the thread does not know its interpreter")
	}
}

func TestNames(t *testing.T) {
	it := New(Config{})
	it.Predeclare("zeros", star.None)
	if _, err := it.Eval(background, "<1>", "mine = 1"); err != nil {
		t.Fatal(err)
	}
	names := it.Names()
	for _, want := range []string{"None", "args", "catch", "fmt", "json", "len", "mine", "struct", "zeros"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for name := range checks {
		if slices.Contains(names, name) {
			t.Errorf("the hidden name %q is shown", name)
		}
	}
	if !slices.IsSorted(names) {
		t.Error("not sorted")
	}
}

func TestResolvePath(t *testing.T) {
	abs, err := filepath.Abs("x.gguf")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{
		New(Config{}).ResolvePath("data/../x.gguf"),
		New(Config{Dir: "project"}).ResolvePath("data/x.gguf"),
		New(Config{Dir: "project"}).ResolvePath(abs),
	}
	want := []string{"x.gguf", filepath.Join("project", "data", "x.gguf"), abs}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestFunctionsKeepTheirDoc guards against the pass moving a function's first statement.
func TestFunctionsKeepTheirDoc(t *testing.T) {
	it := New(Config{})
	if _, err := it.Eval(background, "<1>", "def f():\n  \"\"\"Says so.\"\"\"\n"); err != nil {
		t.Fatal(err)
	}
	if got := it.Globals()["f"].(*star.Function).Doc(); !strings.Contains(got, "Says so.") {
		t.Errorf("got doc %q", got)
	}
}

// writeFiles makes files, by slash-separated name, below dir.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A byte order mark at the beginning is no part of a source, wherever it comes from.
func TestByteOrderMark(t *testing.T) {
	it := New(Config{})
	defer it.Close()
	if err := it.RunSource(background, "<stdin>", []byte("\ufeffx = 1\n")); err != nil {
		t.Error(err)
	}
	if v, err := it.Eval(background, "<line>", "\ufeffx + 1"); err != nil || v.String() != "2" {
		t.Errorf("got %v, %v", v, err)
	}
	if err := it.RunSource(background, "<stdin>", []byte("x = \ufeff1\n")); err == nil {
		t.Error("a mark in the middle was accepted")
	}
}
