package starlark

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/stdlib"
)

var project = map[string]string{
	"main.star": `load("lib/a.star", "a", "name"); print(name, a.twice(2))`,
	"lib/a.star": "load('./b.star', two='n')\nload('//top.star', 'top')\n" +
		"name = 'a of ' + top\ndef twice(x): return x * two\n_hidden = 1",
	"lib/b.star":    "load('../top.star', 'top')\nn = 2",
	"top.star":      "print('once')\ntop = 'top'\nitems = [1]",
	"cycle/a.star":  `load("b.star", "b")`,
	"cycle/b.star":  `load("//cycle/c.star", "c")`,
	"cycle/c.star":  `load("../cycle/a.star", "a")`,
	"broken.star":   "x = 1 +\n",
	"fails.star":    "x = 1\n\nx.y = 2\n",
	"own.star":      "own = 3\nother = 4",
	"through.star":  "load('own.star', 'other')\nhere = other",
	"freeze.star":   "load('top.star', 'items')\nitems.append(2)",
	"limits.star":   "print(args, type(struct))\nlimits = None",
	"lib/std.star":  `load("@stdlib//text.star", "text"); size = text.bytes_size(1024)`,
	"lib/deep.star": "load('//fails.star', 'x')",
}

// inProject returns an interpreter whose root is a folder with the project's files.
func inProject(t *testing.T) (*Interp, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, project)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	var out bytes.Buffer
	return newTest(Config{Open: root.FS().Open, Stdout: &out, Args: []string{"-v"}}), &out
}

func TestLoad(t *testing.T) {
	for _, test := range []struct {
		name, src, want string // want: what is printed, or the error
	}{
		{"file", `load("main.star", m="main")`, "once\na of top 4\n"},
		{"once", `load("top.star", "top"); load("./top.star", x="top"); load("//lib/../top.star", y="top")`, "once\n"},
		{"namespace", `load("lib/a.star", "a"); print(dir(a))`, "once\n[\"name\", \"twice\"]\n"},
		{"module's own name wins", `load("own.star", "own"); print(own)`, "3\n"},
		{"predeclared names", `load("limits.star", "limits")`, "[\"-v\"] builtin_function_or_method\n"},
		{"standard library", `load("lib/std.star", "size"); print(size)`, "1 KiB\n"},
		{"loaded names are not exported", `load("through.star", "other")`,
			"<test>:1:6: load: name other not found in module through.star"},
		{"frozen", `load("freeze.star", "freeze")`,
			"freeze.star:2:7: append: cannot append to frozen list; what a loaded module made cannot be changed"},
		{"cycle", `load("cycle/a.star", "a")`, "cycle/c.star:1:6: load: modules load one " +
			"another in a circle: cycle/a.star → cycle/b.star → cycle/c.star → cycle/a.star"},
		{"missing", `load("lib/none.star", "x")`, "<test>:1:6: load: cannot open lib/none.star: no such file; " +
			"a path is relative to the file that loads, //a.star to the root\n"},
		{"misspelt", `load("lib/depe.star", "x")`, "<test>:1:6: load: cannot open lib/depe.star: no such file; " +
			"did you mean \"lib/deep.star\"?\n"},
		{"module of the library", `load("nn.star", "nn")`, "<test>:1:6: load: cannot open nn.star: no such file; " +
			"did you mean \"@stdlib//nn.star\"?\n"},
		{"its name alone", `load("train", "train")`, "did you mean \"@stdlib//train.star\"?\n"},
		{"folder", `load("lib", "x")`, "<test>:1:6: load: cannot open lib: is a directory\n"},
		{"misspelt module", `load("@stdlib//txet.star", "x")`,
			"there is no @stdlib//txet.star; did you mean \"@stdlib//text.star\"?"},
		{"unknown module", `load("@stdlib//physics.star", "x")`, "there is no @stdlib//physics.star; there are "},
		{"out of the library", `load("@stdlib//../x.star", "x")`, "the path leaves @stdlib//"},
		{"unknown scheme", `load("@std//nn.star", "nn")`, "unknown scheme; modules are @stdlib//name.star"},
		{"no name", `load("//", "nn")`, "no file name"},
		{"broken", `load("broken.star", "x")`, "broken.star:1:8: got newline, want primary expression\n" +
			"    x = 1 +\n           ^\n  called from <test>:1:6"},
		{"fails", `load("lib/deep.star", "x")`, "fails.star:3:3: can't assign to .y field of int\n" +
			"    x.y = 2\n      ^\n  called from lib/deep.star:1:6\n  called from <test>:1:6"},
	} {
		t.Run(test.name, func(t *testing.T) {
			it, out := inProject(t)
			got := ""
			if err := it.RunSource(background, "<test>", []byte(test.src)); err != nil {
				got = err.Error()
			}
			if got += out.String(); !strings.Contains(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestLoadAgain corrects a module that failed and loads it in the same session.
func TestLoadAgain(t *testing.T) {
	dir := t.TempDir()
	it := New(Config{Dir: dir})
	writeFiles(t, dir, map[string]string{"m.star": "x = 1 // 0"})
	if _, err := it.Eval(background, "<1>", `load("m.star", "x")`); err == nil {
		t.Fatal("the broken module was loaded")
	}
	writeFiles(t, dir, map[string]string{"m.star": "x = 1"})
	if _, err := it.Eval(background, "<2>", `load("m.star", "x")`); err != nil {
		t.Error(err)
	}
}

// TestLoadRelativeToFile runs a script by its path from elsewhere.
func TestLoadRelativeToFile(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, project)
	var out bytes.Buffer
	it := New(Config{Stdout: &out, Dir: dir})
	if err := it.RunFile(background, filepath.Join(dir, "main.star")); err != nil {
		t.Fatal(err)
	}
	if want := "once\na of top 4\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

// TestSandbox checks that an opener which refuses is all that stands between a script and a file.
func TestSandbox(t *testing.T) {
	refused := errors.New("not for scripts")
	var asked []string
	it := New(Config{Open: func(name string) (fs.File, error) {
		asked = append(asked, name)
		return nil, refused
	}})
	for _, src := range []string{`load("/etc/passwd", "x")`, `load("../../secret.star", "x")`} {
		if err := it.RunSource(background, "<test>", []byte(src)); !errors.Is(err, refused) {
			t.Errorf("%s: got %v", src, err)
		}
	}
	if err := it.RunFile(background, "loader.go"); !errors.Is(err, refused) {
		t.Errorf("RunFile: got %v", err)
	}
	if len(asked) != 3 {
		t.Errorf("the opener was asked for %q", asked)
	}
}

// TestStdlibLoads runs every module of the standard library, which must load under its own name.
func TestStdlibLoads(t *testing.T) {
	files, err := fs.Glob(stdlib.FS, "*.star")
	if err != nil || len(files) == 0 {
		t.Fatalf("no modules: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".star")
		src := `load("@stdlib//` + file + `", "` + name + `")`
		if err := New(Config{}).RunSource(background, "<test>", []byte(src)); err != nil {
			t.Error(err)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"k", "print", "range", "reversed", "zip"}
	for _, test := range []struct{ name, want string }{
		{"pritn", "print"}, {"Print", "print"}, {"rnage", "range"}, {"revresed", "reversed"}, {"zi", "zip"},
		{"print", ""}, {"elephant", ""}, {"x", ""}, {"", ""},
	} {
		if got := nearest(test.name, names); got != test.want {
			t.Errorf("nearest(%q) = %q, want %q", test.name, got, test.want)
		}
	}
}
