package starlark

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inFolder is an interpreter whose relative paths are in a folder of its own, and the folder.
func inFolder(t *testing.T) (*Interp, string) {
	dir := t.TempDir()
	it := newTest(Config{Dir: dir})
	t.Cleanup(it.Close)
	return it, dir
}

func evaluate(t *testing.T, it *Interp, src string) {
	t.Helper()
	if _, err := it.Eval(background, "<test>", src); err != nil {
		t.Error(err)
	}
}

// refuses runs a script that must fail.
func refuses(t *testing.T, it *Interp, src, want string) {
	t.Helper()
	var failed *Error
	if _, err := it.Eval(background, "<test>", src); !errors.As(err, &failed) || !strings.Contains(failed.Msg, want) {
		t.Errorf("%s: got %v, want an error with %q", src, err, want)
	}
}

// TestNpyRoundTrip saves tensors and loads them again.
func TestNpyRoundTrip(t *testing.T) {
	it, dir := inFolder(t)
	evaluate(t, it, `
for dt in ("f32", "f64", "f16", "i8", "u8", "i16", "i32", "i64", "bool"):
    x = tensor([[0, 1, 2], [3, 4, 100]], "row col", dtype=dt)
    save_npy("x.npy", x)
    y = load_npy("x.npy", "row col")
    equal((y.dtype, y.axes, y.tolist()), (x.dtype, x.axes, x.tolist()))
    save_npy("x.npy", x.order("col row"))
    equal(load_npy("x.npy", "col row").order("row col").tolist(), x.tolist())
save_npy("s.npy", tensor(2.5))
equal(load_npy("s.npy").item(), 2.5)
save_npy("e.npy", zeros(a=2, b=0))
equal(load_npy("e.npy", ("a", "b")).shape, {"a": 2, "b": 0})

w = {"w": tensor([[1.0, 2.0]], "out in"), "layer/b": tensor([3, 4], "out"), "s": tensor(True)}
save_npz("m.npz", w)
m = load_npz("m.npz")
equal(list(m), list(w))
for name in w:
    equal((m[name].dtype, m[name].axes, m[name].tolist()), (w[name].dtype, w[name].axes, w[name].tolist()))
equal(load_npz("m.npz", {"w": "row col"})["w"].axes, ("row", "col"))
`)
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// TestPackedNpy saves a weight of a model, whose rows lie in panels.
func TestPackedNpy(t *testing.T) {
	it, _ := inFolder(t)
	model, err := filepath.Abs(stories)
	if err != nil {
		t.Fatal(err)
	}
	evaluate(t, it, `
quantize_model("`+model+`", "f16.gguf", "f16")
w = load_model("f16.gguf").weights.layers[0].q
equal("packed for products" in catch(w.tolist).error, True)
numbers = w.dequantize().tolist()
save_npy("w.npy", w)
equal(load_npy("w.npy", w.axes).tolist(), numbers)
save_npz("w.npz", {"w": w})
equal(load_npz("w.npz")["w"].tolist(), numbers)
`)
}

// TestNumPyFiles loads what NumPy wrote.
func TestNumPyFiles(t *testing.T) {
	it := newTest(Config{Dir: "../../core/npy/testdata"})
	defer it.Close()
	evaluate(t, it, `
equal(load_npy("fortran.npy", "row col").tolist(), [[0, 1, 2], [3, 4, 127]])
equal(load_npy("be_f4.npy", "row col").at(row=0).tolist(), [0.0, -0.5, 1.25])
m = load_npz("compressed.npz", {"w": "row col", "b": "row"})
equal(m["b"].tolist(), [0, 1, 2])
`)
	for src, want := range map[string]string{
		`load_npy("f4.npy")`:                          `of sizes [2 3], but 0 are named; load_npy("f4.npy", "row col")`,
		`load_npy("f4.npy", "a b c")`:                 "but 3 are named",
		`load_npy("f5.npy", "a")`:                     "load_npy: cannot open ",
		`load_npy("complex.npy", "a")`:                `load_npy: complex.npy: elements of type "<c16" cannot be read`,
		`load_npy("huge_u8.npy", "a")`:                "greater than what i64 holds",
		`load_npy("plain.npz", "a")`:                  "this is no .npy file but an archive of some",
		`load_npz("f4.npy")`:                          "this is no .npz file",
		`load_npz("plain.npz")`:                       `but 0 are named; load_npz("plain.npz", {"w": "row col"})`,
		`load_npz("plain.npz", {"v": "row col"})`:     `plain.npz has no array "v"; arrays: w, b`,
		`load_npz("plain.npz", {"w": "row row"})`:     "named twice",
		`save_npy("x.npy", [1, 2])`:                   "save_npy: x: got list, want a tensor",
		`save_npz("x.npz", {"../w": zeros(a=1)})`:     "cannot name an array",
		`save_npz("x.npz", {"__axes__": tensor(1)})`:  "cannot name an array",
		`save_npy("x.npy", zeros(a=1, dtype="bf16"))`: `save_npy: x: NumPy has no bf16; x.cast("f32")`,
		`save_npy("no/such/x.npy", zeros(a=1))`:       "save_npy: cannot save no/such/x.npy",
	} {
		refuses(t, it, src, want)
	}
}

// TestSaveIsAtomic lets a save fail half-way: the file that was there stays, and nothing else.
func TestSaveIsAtomic(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x")
	write := func(text string, end error) error {
		return saveFile(anywhere{}, name, func(w io.Writer) error {
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
			return end
		})
	}
	if err := write("old", nil); err != nil {
		t.Fatal(err)
	}
	if err := write("ne", io.ErrShortWrite); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() { recover() }()
		saveFile(anywhere{}, name, func(w io.Writer) error { panic("no") })
	}()
	text, err := os.ReadFile(name)
	if files, _ := os.ReadDir(dir); string(text) != "old" || err != nil || len(files) != 1 {
		t.Errorf("got %q, %v, %d files", text, err, len(files))
	}
}

// TestSaveIsConfined gives a script files to read, but no way to write.
func TestSaveIsConfined(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) (fs.File, error) { return os.Open(name) }
	it := newTest(Config{Dir: dir, Open: open})
	defer it.Close()
	refuses(t, it, `save_npy("x.npy", zeros(a=1))`, "this program lets scripts write no files")
	var saved bytes.Buffer
	with := newTest(Config{Dir: dir, Open: open, Save: func(name string, write func(io.Writer) error) error {
		fmt.Fprintln(&saved, filepath.Base(name))
		return write(&saved)
	}})
	defer with.Close()
	evaluate(t, with, `save_npy("x.npy", zeros(a=1))`)
	evaluate(t, with, `check(lambda: save_npy("y.npy", zeros(a=1)))`)
	if got := saved.String(); !strings.HasPrefix(got, "x.npy\n\x93NUMPY") || strings.Contains(got, "y.npy") {
		t.Errorf("got %q", got)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("%d files were written", len(files))
	}
}

// TestSeed draws the same for the same seed, whatever the number of threads.
func TestSeed(t *testing.T) {
	const src = `
seed(7)
a = [rand(row=300, col=100), randn(row=300, col=100), randint(-5, 5, row=30000), randperm(20000, "row"),
     bernoulli(0.3, row=30000), ones(row=30000).dropout(0.5, training=True)]
b = rand(row=3)
seed(7)
again = rand(row=300, col=100)
equal(a[0].eq(again).all().item(), True)
equal(rand(row=3).eq(b).any().item(), False)
equal(rand(row=3, seed=1).eq(rand(row=3, seed=1)).all().item(), True)
check(lambda: seed(8))
weights = lambda x: arange(x.size(), x.axes[-1], dtype="f64") if len(x.axes) == 1 else 1.0
sums = [x.cast("f64").mul(weights(x)).sum().item() for x in a]
`
	var first string
	for _, threads := range []int{1, 2, 5} {
		it := newTest(Config{Threads: threads})
		evaluate(t, it, src)
		got := fmt.Sprint(it.Globals()["sums"])
		if first == "" {
			first = got
		}
		if got != first {
			t.Errorf("%d threads: got %s, want %s", threads, got, first)
		}
		it.Close()
	}
}

// TestBitOperators runs the operators that stand for operations on bits and remainders.
func TestBitOperators(t *testing.T) {
	it := newTest(Config{})
	defer it.Close()
	evaluate(t, it, `
x, m = tensor([6, -7], "a"), tensor([True, False], "a")
equal((x & 3).tolist(), [2, 1])
equal((3 | x).tolist(), [7, -5])
equal((x ^ x).tolist(), [0, 0])
equal((~x).tolist(), [-7, 6])
equal((~m).tolist(), [False, True])
equal((m & ~m).tolist(), [False, False])
equal((x // 4).tolist(), [1, -2])
equal((x % 4).tolist(), [2, 1])
equal((20 // x).tolist(), [3, -3])
equal((tensor([5.5], "a") % -2).tolist(), [-0.5])
equal(tensor(b"ab", "byte").tolist(), [97, 98])
equal(tensor(b"ab", "byte").dtype, "u8")
equal(tensor(b"", "byte").shape, {"byte": 0})
`)
	refuses(t, it, `tensor([1], "a") // 0`, "y has a 0, and integers cannot be divided by it")
	refuses(t, it, `tensor([1.0], "a") & 1`, "want integers")
}
