package fucina

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fucina-go/fucina/bindings/plot"
	"github.com/fucina-go/fucina/core"
)

type testFiles map[string]*fstest.MapFile

// Open opens a file.
func (f testFiles) Open(name string) (fs.File, error) { return fstest.MapFS(f).Open(name) }

// with is the files and one more.
func (f testFiles) with(name, text string) testFiles {
	f[name] = &fstest.MapFile{Data: []byte(text)}
	return f
}

// script is one file called main.star.
func script(text string) testFiles { return testFiles{}.with("main.star", text) }

func TestRunValues(t *testing.T) {
	type limits struct {
		MaxSize int
		Names   []string `star:"names"`
	}
	var out bytes.Buffer
	p := New(Stdout(&out), Args("-v"), Builtin("double", func(x int) int { return 2 * x }))
	defer p.Close()
	x, err := Tensor([]float32{1, 2, 3, 4}, "row col", 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Run(context.Background(), script(`
load("lib/rules.star", "scale")
print(args, double(21), limits.max_size, limits.names)
total = scale(x).sum().item()
result = {"sum": total, "list": [1, 2.5, "three", None, True]}
y = x.sum("col")
def area(width, height):
    return struct(width=width, area=width * height)
`).with("lib/rules.star", "def scale(x):\n    return x * 10\n"), "main.star", map[string]any{
		"x": x, "limits": limits{3, []string{"a", "b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "[\"-v\"] 42 3 [\"a\", \"b\"]\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	var total float64
	if err := p.Get("total", &total); err != nil || total != 100 {
		t.Errorf("total %v, %v", total, err)
	}
	var result map[string]any
	if err := p.Get("result", &result); err != nil {
		t.Error(err)
	}
	want := map[string]any{"sum": 100.0, "list": []any{int64(1), 2.5, "three", nil, true}}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Error(diff)
	}
	var y *core.Tensor
	if err := p.Get("y", &y); err != nil || cmp.Diff([]float32{3, 7}, y.Float32s()) != "" {
		t.Errorf("y %v, %v", y, err)
	}
	var rect struct{ Width, Area float64 }
	if err := p.Call(context.Background(), "area", &rect, 2.0, 3); err != nil || rect.Area != 6 {
		t.Errorf("area %+v, %v", rect, err)
	}
	var small int8
	if err := p.Call(context.Background(), "double", &small, 1); err == nil {
		t.Error("double is no variable of the script, but was called")
	}
	if err := p.Call(context.Background(), "area", &small, 1, 2); err == nil {
		t.Error("a struct went into an int8")
	}
}

func TestErrorsAreTyped(t *testing.T) {
	p := New(Builtin("fails", func() error { return os.ErrPermission }),
		Builtin("crash", func() { panic("on purpose") }),
		MaxSteps(100_000), MemoryLimit(1<<20))
	defer p.Close()
	for _, c := range []struct{ src, want string }{
		{"ones(a=2).sum(\"b\")", "main.star:1:11: sum: no axis \"b\" in x[a=2]"},
		{"fails()", "main.star:1:1: fails: permission denied"},
		{"crash()", "on purpose"},
		{"while True:\n    pass", "limit"},
		{"x = ones(a=1000000)", "limit of 1.0 MiB"},
		{"load(\"../secret.star\", \"x\")", "secret.star"},
		{"load_model(\"/etc/hostname\")", "cannot open"},
		{"def f(n):\n    return f(n + 1)\nf(0)", "calls inside one another"},
	} {
		err := p.Run(context.Background(), script(c.src), "main.star", nil)
		var typed *Error
		if !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.src, err, c.want)
		}
	}
	var misuse *core.Error
	err := p.Run(context.Background(), script("ones(a=2).sum(\"b\")"), "main.star", nil)
	if !errors.As(err, &misuse) || misuse.Op != "sum" {
		t.Errorf("no *core.Error in %v", err)
	}
	if err := p.Run(context.Background(), script("fails()"), "main.star", nil); !errors.Is(err, os.ErrPermission) {
		t.Errorf("no os.ErrPermission in %v", err)
	}
}

// Halve is an operation that a program brings along.
type Halve struct{ core.Unary }

// Doc is its documentation.
func (*Halve) Doc() string {
	return "Halve is x / 2, element by element.\n\nExample:\n\n\thalve(ones(a=2))\n"
}

// F32 is the f32 kernel.
func (*Halve) F32(y, x []float32) {
	for i, v := range x {
		y[i] = v / 2
	}
}

// VJP halves the gradient.
func (*Halve) VJP(_, gy []*core.Tensor, g *core.Grads) { g.Set(0, gy[0]) }

func TestOwnOperation(t *testing.T) {
	var out bytes.Buffer
	p := New(Stdout(&out), Op[Halve]("halve"))
	defer p.Close()
	err := p.Run(context.Background(), script(`
x = tensor([2.0, 4.0], "a")
print(x.halve().sum().item(), halve(x).shape)
help("halve")
print(catch(halve, 3).error)
`), "main.star", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3.0 {\"a\": 2}", "Halve is x / 2", "halve: x: got int, want a tensor"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed %q, want %q in it", out.String(), want)
		}
	}
	if core.Lookup("halve") != nil {
		t.Error("the operation is in the table of all interpreters")
	}
}

// Many goroutines run many scripts that end in every way, and none sees another.
func TestManyRuns(t *testing.T) {
	runs := 1000
	if testing.Short() {
		runs = 30
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			var out bytes.Buffer
			p := New(Stdout(&out), MaxSteps(20_000), MemoryLimit(1<<20),
				Builtin("crash", func() { panic("on purpose") }))
			defer p.Close()
			for i := range runs {
				out.Reset()
				ctx, cancel := context.WithCancel(context.Background())
				src, want := "print(me, ones(a=100).sum().item() + me)", ""
				switch i % 5 {
				case 1:
					src, want = "crash()", "on purpose"
				case 2:
					src, want = "x = ones(a=1 << 20)", "limit"
				case 3:
					src, want = "while True: pass", "limit"
				case 4:
					src, want = "x = 1", "context canceled"
					cancel()
				}
				err := p.Run(ctx, script(src), "main.star", map[string]any{"me": g})
				cancel()
				switch {
				case i%5 == 4 && !errors.Is(err, context.Canceled):
					t.Errorf("run %d: got %v, want a cancelled context", i, err)
				case i%5 == 0 && (err != nil || out.String() != fmt.Sprintf("%d %d.0\n", g, 100+g)):
					t.Errorf("run %d: printed %q, %v", i, out.String(), err)
				case i%5 != 0 && i%5 != 4 && (err == nil || !strings.Contains(err.Error(), want)):
					t.Errorf("run %d: got %v, want %q", i, err, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestDeadline(t *testing.T) {
	p := New()
	defer p.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	err := p.Run(ctx, script("x = ones(i=3000, k=3000)\nwhile True:\n    x.dot(x.rename(i=\"j\"), \"k\").free()\n"),
		"main.star", nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
}

// An embedding program gets neither a line editor nor a server nor plots.
func TestEmbeddingIsLean(t *testing.T) {
	list, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, forbidden := range []string{"chzyer/readline", "fatih/color", "net/http", "gonum.org", "fucina/repl",
		"asciigraph"} {
		if strings.Contains(string(list), forbidden) {
			t.Errorf("importing fucina links %s", forbidden)
		}
	}
}

// What once ended the process, or hung it, is an error.
func TestHostileScripts(t *testing.T) {
	p := New(MaxSteps(1_000_000), MemoryLimit(16<<20))
	defer p.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const ring = "loop = []\nring = struct(a=loop)\nloop.append(ring)\n" // a list in itself, by way of a struct
	for _, c := range []struct{ src, want string }{
		{"x = 1" + strings.Repeat("+1", 20_000), "chain of more than 2000"},
		{"x = x" + strings.Repeat(".a", 20_000), "chain of more than 2000"},
		{"x = tensor(range(1 << 40))", "too long"},
		{"x = zeros(a=3, b=0).pad(a=1 << 40)", "pad"},
		{"x = zeros(a=3, b=0).tile(a=1 << 40)", "tile"},
		{"x = zeros(a=1 << 40, b=0)", "more elements than memory can hold"},
		{"x = ones(a=3, dtype=\"i32\").expand(c=1 << 62)", "more elements than memory can hold"},
		{"x = concat([zeros(a=1 << 23, b=0)] * 3, \"a\")", "more elements than memory can hold"},
		{"x = ones(**{\"\": 1})", "not an identifier"},
		{"x = ones(**{\"\\n\": 1})", "not an identifier"},
		{"x = list(range(1 << 62))", "too long"},
		{"loop = []\nloop.append(loop)\ntensor(loop)", "contain themselves"},
		{ring + "fail(loop)", "fail: [struct(a = [...])]"},
		{ring + "fail(ring)", "fail: struct(a = [struct(a = [...])])"},
		{ring + "ones(a=3)[ring]", "x[struct(a = "},
		{ring + "ones(a=3).rename(a=ring)", "want a new axis name"},
		{ring + "ones(a=3).slice(a=ring)", "want (start, stop)"},
		{ring + "threads(ring)", "want a number from 1"},
	} {
		err := p.Run(ctx, script(c.src), "main.star", nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "internal error") {
			t.Errorf("%.60q: got %.300v, want %q", c.src, err, c.want)
		}
	}
	if err := p.Run(ctx, nil, "main.star", nil); err == nil {
		t.Error("ran without files")
	}
}

// Scripts save files in the folder they are given, and nowhere else.
func TestSave(t *testing.T) {
	base := t.TempDir()
	inside := filepath.Join(base, "inside")
	for _, dir := range []string{inside, filepath.Join(base, "outside")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(inside, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	links := os.Symlink(filepath.Join(base, "outside"), filepath.Join(inside, "link")) == nil
	root, err := os.OpenRoot(inside)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	p := New(Save(root))
	defer p.Close()
	save := func(p *Interpreter, path string) error {
		src := fmt.Sprintf("save_npy(%q, ones(a=3))", path)
		return p.Run(context.Background(), script(src), "main.star", nil)
	}
	for _, path := range []string{"x.npy", "sub/x.npy", "./sub/../y.npy", "x.npy"} {
		if err := save(p, path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if err := root.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := save(p, "x.npy"); err != nil {
		t.Error(err)
	}
	if info, err := root.Stat("x.npy"); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("a file that others may not read is %v after it was saved anew, %v", info.Mode(), err)
	}
	bad := map[string]string{"../outside/x.npy": "escapes", filepath.Join(base, "outside", "x.npy"): "escapes",
		"sub": "it is a folder", "": "got no file name", "no/such/x.npy": "there is no folder no/such"}
	if links {
		bad["link/x.npy"] = "escapes"
	}
	for path, want := range bad {
		if err := save(p, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", path, err, want)
		}
	}
	if found, err := os.ReadDir(filepath.Join(base, "outside")); err != nil || len(found) > 0 {
		t.Errorf("outside there is %v, %v", found, err)
	}
	if found, err := os.ReadDir(inside); err != nil || len(found) > 4 {
		t.Errorf("temporary files are left: %v, %v", found, err)
	}
	src := `equal(load_npy("sub/x.npy", "a").sum().item(), 3.0)`
	if err := root.WriteFile("main.star", []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	equal := Builtin("equal", func(x, y float64) error {
		if x != y {
			return fmt.Errorf("got %v, want %v", x, y)
		}
		return nil
	})
	reader := New(equal)
	defer reader.Close()
	if err := reader.Run(context.Background(), root.FS(), "main.star", nil); err != nil {
		t.Errorf("what was saved is not read: %v", err)
	}
	if err := save(reader, "x.npy"); err == nil || !strings.Contains(err.Error(), "lets scripts write no files") {
		t.Errorf("without Save: got %v", err)
	}
}

// How far a loop is goes where the program says, and not into what the script prints.
func TestStderr(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, far strings.Builder
		p := New(Stdout(&out), Stderr(&far), Builtin("sleep", func() { time.Sleep(20 * time.Second) }))
		defer p.Close()
		src := "for i in progress(range(2), label=\"rows\"):\n    print(i)\n    sleep()\n"
		if err := p.Run(t.Context(), script(src), "main.star", nil); err != nil {
			t.Fatal(err)
		}
		if out.String() != "0\n1\n" || !strings.HasPrefix(far.String(), "rows  1/2 [") {
			t.Errorf("printed %q, showed %q", out.String(), far.String())
		}
	})
}

// A closed interpreter says so.
func TestClosed(t *testing.T) {
	p := New()
	if err := p.Run(context.Background(), script("def f(): return 1"), "main.star", nil); err != nil {
		t.Fatal(err)
	}
	p.Close()
	p.Close()
	if err := p.Run(context.Background(), script("x = 1"), "main.star", nil); err == nil {
		t.Error("a closed interpreter ran a script")
	}
	if err := p.Call(context.Background(), "f", nil); err == nil {
		t.Error("a closed interpreter called a function")
	}
}

// What is not there is an error, never a panic.
func TestNothing(t *testing.T) {
	var p Interpreter
	p.Close()
	if p.Interrupt() {
		t.Error("a zero interpreter is interrupted")
	}
	files := fstest.MapFS{"main.star": {Data: []byte("x = 1\ndef f(): return 2")}}
	ctx := context.Background()
	for _, err := range []error{p.Run(ctx, files, "main.star", nil), p.Get("x", new(int)), p.Call(ctx, "f", nil)} {
		if err == nil || !strings.Contains(err.Error(), "not made by New") {
			t.Errorf("a zero interpreter: %v", err)
		}
	}
	q := New(nil, Stdout(io.Discard))
	defer q.Close()
	var none context.Context // never ends
	if err := errors.Join(q.Run(none, files, "main.star", nil), q.Call(none, "f", nil)); err != nil {
		t.Error(err)
	}
	if err := q.Get("x", nil); err == nil || !strings.HasPrefix(err.Error(), "fucina: x: ") {
		t.Errorf("nowhere to put x: %v", err)
	}
	for _, sizes := range [][]int{{1 << 32, 1 << 32}, {-1, -3}, {3}, {2, 2}, {1 << 62, 0}} {
		if x, err := Tensor(make([]float32, 3), "a b", sizes...); err == nil {
			t.Errorf("sizes %d are %s", sizes, x.Shape())
		}
	}
	if x, err := Tensor(nil, "a b", 1<<32, 1<<32); err == nil {
		t.Errorf("2⁶⁴ elements of nothing are %s", x.Shape())
	}
}

// Whatever a script leaves behind, and whatever a program asks for, storing it is an error or not, but never a panic.
func TestValuesThatDoNotFit(t *testing.T) {
	p := New()
	defer p.Close()
	if err := p.Run(nil, script(`
def same(x): return x
loop = []
loop.append(loop)
ring = {}
ring["next"] = ring
deep = []
for i in range(5000):
    deep = [deep]
none, pair, many = {None: 1}, {(1, 2): 3}, 1 << 500 << 500 << 500
huge = 1e300
`), "main.star", nil); err != nil { // a nil context is one that is never done
		t.Fatal(err)
	}
	type node struct{ Next *node }
	type tree []tree
	for _, c := range []struct {
		name string
		to   any
		want string // "" if it fits
	}{
		{"loop", new(any), "contain themselves"},
		{"loop", new([]any), "contain themselves"},
		{"loop", new(tree), "contain themselves"},
		{"ring", new(any), "contain themselves"},
		{"ring", new(node), "contain themselves"},
		{"deep", new(any), "contain themselves"},
		{"none", new(any), ""},
		{"none", new(map[any]any), ""},
		{"pair", new(any), ""},
		{"pair", new(map[any]any), "key (1, 2): Go cannot hash it"},
		{"many", new(float64), "does not fit into float64"},
		{"many", new(*big.Int), ""},
		{"huge", new(float32), "1e+300 does not fit into float32"},
		{"huge", new([1]float64), "got float, want a value of the Go type [1]float64"},
		{"same", new(func()), "got function, want a value of the Go type func()"},
		{"huge", nil, "want a pointer"},
	} {
		err := p.Get(c.name, c.to)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s into %T: got %v, want %q", c.name, c.to, err, c.want)
		}
	}
	var none, pair any
	if p.Get("none", &none) != nil || !reflect.DeepEqual(none, map[any]any{nil: int64(1)}) {
		t.Errorf("none is %v", none)
	}
	if p.Get("pair", &pair) != nil || !reflect.DeepEqual(pair, map[any]any{"(1, 2)": int64(3)}) {
		t.Errorf("pair is %v", pair)
	}

	var got any
	for _, x := range []any{(*big.Int)(nil), (*core.Tensor)(nil), (*node)(nil)} {
		if err := p.Call(t.Context(), "same", &got, x); err != nil || got != nil {
			t.Errorf("%T: got %v, %v, want nil", x, got, err)
		}
	}
	circle := &node{}
	circle.Next = circle
	err := p.Call(t.Context(), "same", &got, circle)
	if err == nil || !strings.Contains(err.Error(), "contains itself") {
		t.Errorf("a circle of Go values: got %v", err)
	}
}

// TestNoFunction calls what is no function, and gives a script names that it could not write.
func TestNoFunction(t *testing.T) {
	p := New()
	defer p.Close()
	if err := p.Run(t.Context(), script("total = 3.0"), "main.star", map[string]any{"größe_1": 1}); err != nil {
		t.Fatal(err)
	}
	err := p.Call(t.Context(), "total", nil)
	want := "fucina: total is no function of the script but a value of type float"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for _, name := range []string{"", "1 x", "a-b", "a.b", "4th"} {
		err := p.Run(t.Context(), script("pass"), "main.star", map[string]any{name: 1})
		want := fmt.Sprintf("globals has %q, which is no name", name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", name, err, want)
		}
	}
}

// A builtin says in the words of scripts what it takes.
func TestArguments(t *testing.T) {
	p := New(Builtin("takes", func(*core.Tensor, []float64, map[string]int, struct{ Width, Size int }) {}))
	defer p.Close()
	for args, want := range map[string]string{
		"1, 2, 3, 4":                             "argument 1: got int, want a tensor",
		"ones(a=1), 2, 3, 4":                     "argument 2: got int, want a list",
		"ones(a=1), [{}], 3, 4":                  "argument 2: element 0: got dict, want a number",
		"ones(a=1), [1], {'a': 's'}, 4":          "argument 3: value of \"a\": got string, want an int",
		"ones(a=1), [1], {}, struct(height = 1)": "argument 4: got an unknown field height, want width, size",
	} {
		err := p.Run(t.Context(), script("takes("+args+")"), "main.star", nil)
		if err == nil || !strings.Contains(err.Error(), "takes: "+want) {
			t.Errorf("takes(%s): got %v, want %q", args, err, want)
		}
	}
}

// A script cannot run the interpreter it runs in, and a program that closes one which runs closes it at the end.
func TestOneRunAtATime(t *testing.T) {
	var p *Interpreter
	p = New(Builtin("again", func() error { return p.Run(t.Context(), script("x = 2"), "main.star", nil) }),
		Builtin("call", func() error { return p.Call(t.Context(), "f", nil) }), Builtin("close", func() { p.Close() }))
	if err := p.Run(t.Context(), script("def f(): pass\nx = 1"), "main.star", nil); err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{"again()", "call()"} {
		err := p.Run(t.Context(), script(src), "main.star", nil)
		if err == nil || !strings.Contains(err.Error(), "the interpreter is running a script") {
			t.Errorf("%s: got %v", src, err)
		}
	}
	const rest = "a = ones(a=1000)\nclose()\nb = (a + 1).sum().item()"
	if err := p.Run(t.Context(), script(rest), "main.star", nil); err != nil {
		t.Errorf("the rest of a run whose interpreter was closed: %v", err)
	}
	var x, b float64
	if p.Get("x", &x) != nil || p.Get("b", &b) != nil || x != 1 || b != 2000 {
		t.Errorf("x is %v, want 1; b is %v, want 2000", x, b)
	}
	if err := p.Call(t.Context(), "f", nil); err == nil || !strings.Contains(err.Error(), "was closed") {
		t.Errorf("after the run: got %v, want a closed interpreter", err)
	}
}

// A program that asks for it gives its scripts plots, which are saved where it says.
func TestWith(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	p := New(With(plot.Add), Save(root), Stdout(&out))
	defer p.Close()
	err = p.Run(context.Background(), script(`plot.line([1, 2]).save("a.svg").show(20, 5)`), "main.star", nil)
	if _, missing := root.Stat("a.svg"); err != nil || missing != nil || !strings.Contains(out.String(), "┤") {
		t.Errorf("%v, %v; printed\n%s", err, missing, out.String())
	}
}

// A host stops a run after its step.
func TestInterrupt(t *testing.T) {
	p := New()
	defer p.Close()
	if p.Interrupt() {
		t.Error("nothing runs that could be interrupted")
	}
	begun := func() {
		if !p.Interrupt() || p.Interrupt() {
			t.Error("the first interrupt is taken, the second not")
		}
	}
	const src = "def f():\n    begun()\n    return interrupted() or fail()\ndefer_interrupt(f)\nx = 1"
	err := p.Run(context.Background(), script(src), "main.star", map[string]any{"begun": begun})
	if !errors.Is(err, context.Canceled) || p.Get("x", new(int)) == nil {
		t.Errorf("got %v, want an end before the last line", err)
	}
}

// A script reads the lines that the program gives it.
func TestLines(t *testing.T) {
	var asked []string
	p := New(Lines(func(_ context.Context, prompt string) (string, error) {
		if asked = append(asked, prompt); len(asked) > 2 {
			return "", io.EOF
		}
		return strings.ToUpper(prompt), nil
	}))
	defer p.Close()
	if err := p.Run(t.Context(), script(`got = [input(x) for x in ("a", "b", "c")]`), "main.star", nil); err != nil {
		t.Fatal(err)
	}
	crash := New(Lines(func(context.Context, string) (string, error) { panic("on purpose") }))
	defer crash.Close()
	err := crash.Run(t.Context(), script(`input()`), "main.star", nil)
	if err == nil || !strings.Contains(err.Error(), "on purpose") {
		t.Errorf("a panic where lines are read: got %v", err)
	}
	var got []any
	if err := p.Get("got", &got); err != nil || !reflect.DeepEqual(got, []any{"A", "B", nil}) {
		t.Errorf("got %v, %v", got, err)
	}
}
