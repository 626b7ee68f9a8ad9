package starlark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/safetensors"
	"github.com/fucina-go/fucina/grad"
)

// counter is an object with a state, such as an optimizer is.
type counter struct {
	handle
	n int64
	x *core.Tensor
}

func (c *counter) State() grad.State {
	return grad.State{Tensors: map[string]*core.Tensor{"x": c.x.Copy()}, Values: map[string]any{
		"n": c.n, "list": []any{1.5, "a", true, []any{int64(2)}}}}
}

func (c *counter) SetState(s grad.State) error {
	n, ok := s.Values["n"].(int64)
	x := s.Tensors["x"]
	if !ok || x == nil || x.Shape() != c.x.Shape() {
		return errors.New("this is no state of a counter")
	}
	if n < 0 {
		return errors.New("n is negative")
	}
	if list := fmt.Sprint(s.Values["list"]); list != "[1.5 a true [2]]" {
		return fmt.Errorf("the list is %v", list)
	}
	c.n = n
	c.x.Assign(x)
	return nil
}

func (c *counter) Attr(name string) (star.Value, error) { return star.MakeInt64(c.n), nil }
func (c *counter) AttrNames() []string                  { return []string{"n"} }
func (c *counter) Holds(visit func(star.Value))         { visit(Tensor{c.x}) }

// withCounter gives scripts counter(n, x).
func withCounter(it *Interp) {
	it.Predeclare("counter", star.NewBuiltin("counter",
		func(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
			var n int
			var x Tensor
			err := star.UnpackArgs(b.Name(), args, kwargs, "n", &n, "x", &x)
			return &counter{n: int64(n), x: x.Tensor}, err
		}))
}

const makeModel = `
def model(width=3, scale=1.0):
    w = variable(ones(out=2, embed=width) * scale)
    return struct(w=w, tied=w, layers=[struct(b=variable(ones(out=2) * scale), eps=1e-5) for i in range(2)],
        running={"mean": zeros(out=2), "count": 0}, call=lambda x: x)
`

// TestCheckpoint saves objects of every kind, and puts them back into others in place.
func TestCheckpoint(t *testing.T) {
	it, dir := inFolder(t)
	withCounter(it)
	evaluate(t, it, makeModel+`
m = model(scale=2.0)
m.running["count"] = 7
m.running["mean"].set(5)
o = counter(4, ones(a=2) * 3)
seed(11)
rand(row=1)
history = [1.5, float("nan"), float("-inf"), -0.0, 2, 1 << 80, "é", None, True, b"\x00\xff", (1, 2.0)]
save_checkpoint("run.safetensors", model=m, optimizer=o, step=12, history=history, rate=1e-3)
after = rand(row=3).tolist()

n, p, kept = model(), counter(0, zeros(a=2)), []
w = n.w
rand(row=5)
c = load_checkpoint("run.safetensors", model=n, optimizer=p, history=kept, step=0)
equal(rand(row=3).tolist(), after)
equal((n.w.tolist(), w.tolist(), n.tied.tolist()), ([[2.0] * 3] * 2,) * 3)
equal([x.b.tolist() for x in n.layers], [[2.0, 2.0]] * 2)
equal((n.running["mean"].tolist(), n.running["count"]), ([5.0, 5.0], 7))
equal((p.n, c.step, c.rate), (4, 12, 1e-3))
equal((c.model.w.requires_grad, c.optimizer.n), (True, 4))
equal([type(x) for x in kept], [type(x) for x in history])
equal(kept[2:], history[2:])
equal((str(kept[1]), str(kept[3])), ("nan", "-0.0"))
loss = (n.w * n.w).sum()
backward(loss)
equal(w.grad.tolist(), [[4.0] * 3] * 2)

d = load_checkpoint("run.safetensors")
equal(d.model.w.tolist(), m.w.tolist())
equal(d.model.layers[0].eps, 1e-5)
equal((d.optimizer.values["n"], d.optimizer.tensors["x"].tolist()), (4, [3.0, 3.0]))
equal(sorted(load_safetensors("run.safetensors")),
    ["model.layers.0.b", "model.layers.1.b", "model.running.mean", "model.tied", "optimizer.x"])
a, b = [lambda: 1, zeros(a=1)], [lambda: 2]
save_checkpoint("code.safetensors", a=a, b=b)
load_checkpoint("code.safetensors", a=a, b=b)
equal((a[0](), b[0](), load_checkpoint("code.safetensors").b), (1, 2, [None]))
rand(row=1)
x = rand(row=2).tolist()
load_checkpoint("run.safetensors", random=False, model=n)
equal(rand(row=2).tolist() == after[:2], False)
check(lambda: save_checkpoint("other.safetensors", model=m))
check(lambda: load_checkpoint("run.safetensors", model=model(scale=1.0)))
`)
	for src, want := range map[string]string{
		`load_checkpoint("run.safetensors", modl=m)`: `run.safetensors has no modl; it has history, model, optimizer`,
		`load_checkpoint("run.safetensors", model=model(5))`: `load_checkpoint: run.safetensors is of another model: ` +
			`model.tied is f32[out=2, embed=5] here but f32[out=2, embed=3] there; 2 of 5 tensors differ`,
		`load_checkpoint("run.safetensors", model=struct(w=m.w))`: `model.layers.0.b is not here but f32[out=2]`,
		`load_checkpoint("run.safetensors", model=struct(v=m.w))`: `model.v is f32[out=2, embed=3] here but not there`,
		`load_checkpoint("run.safetensors", optimizer=m.w)`:       `optimizer is f32[out=2, embed=3] here but not`,
		`load_checkpoint("run.safetensors", model=p)`:             `run.safetensors has no state of model`,
		`load_checkpoint("rum.safetensors")`:                      `did you mean "run.safetensors"?`,
		`save_safetensors("x.safetensors", {"a": ones(b=1)})
load_checkpoint("x.safetensors")`: "it is no checkpoint; load_safetensors loads",
		`save_checkpoint("x.safetensors")`:                      "got nothing to save",
		`save_checkpoint("x.safetensors", f=lambda: 1)`:         "f is a function, which cannot be saved",
		"x = []\nx.append(x)\nsave_checkpoint(\"x\", m=x)":      "does it hold itself?",
		`save_checkpoint("x.safetensors", m=handle("a"))`:       "m is a handle, which cannot be saved",
		`save_checkpoint("x.safetensors", keep=-1, m=1)`:        "cannot keep -1 files",
		`save_checkpoint("no/x.safetensors", m=1)`:              "cannot save no/x.safetensors: there is no folder no",
		`load_checkpoint("run.safetensors", model=model().w)`:   "model is f32[out=2, embed=3] here but not there; 5",
		`load_checkpoint("run.safetensors", path="a", model=m)`: "got multiple values",
	} {
		refuses(t, it, src, want)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "other*")); err != nil || len(left) > 0 {
		t.Errorf("check saved: %v, %v", left, err)
	}
}

// What is damaged is said once, with the file and the place.
func TestCheckpointDamaged(t *testing.T) {
	it, dir := inFolder(t)
	evaluate(t, it, `
x, y = variable(ones(a=2)), [1, True]
save_checkpoint("run.safetensors", x=x, y=y)`)
	good, err := os.ReadFile(filepath.Join(dir, "run.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, call, want string }{
		{`{\"tensor\":\"x\"}`, `{\"tensor\":\"z\"}`, `load_checkpoint("bad.safetensors")`,
			`load_checkpoint: bad.safetensors: it says that there is a tensor "z", but there is none`},
		{`[1,true]`, `[1,{  }]`, `load_checkpoint("bad.safetensors")`,
			`load_checkpoint: bad.safetensors: y: an object of 0 keys is damaged`},
		{`[1,true]`, `[1,{  }]`, `load_checkpoint("bad.safetensors", y=y)`,
			`load_checkpoint: bad.safetensors: y: an object of 0 keys is damaged`},
	} {
		bad := strings.Replace(string(good), c.old, c.new, 1)
		if bad == string(good) {
			t.Fatalf("nothing to change: %s in %q", c.old, good[:200])
		}
		put(t, dir, map[string]string{"bad.safetensors": bad})
		if _, err := it.Eval(background, "<test>", c.call); err == nil || err.(*Error).Msg != c.want {
			t.Errorf("%s: got %v, want %s", c.call, err, c.want)
		}
	}
}

// TestCheckpointChangesAllOrNothing lets the second of two objects refuse.
func TestCheckpointChangesAllOrNothing(t *testing.T) {
	it, _ := inFolder(t)
	withCounter(it)
	evaluate(t, it, `
save_checkpoint("x.safetensors", a=counter(1, ones(a=1)), b=counter(-1, ones(a=1)), w=ones(a=2), l=[1], d={"k": 1})
a, b, w, l, d = counter(8, zeros(a=1)), counter(9, zeros(a=1)), zeros(a=2), [5], {"k": 5}
e = catch(load_checkpoint, "x.safetensors", a=a, b=b, w=w, l=l, d=d)
equal("b: n is negative; nothing was changed" in e.error, True)
equal((a.n, b.n, w.tolist(), l, d), (8, 9, [0.0, 0.0], [5], {"k": 5}))
e = catch(load_checkpoint, "x.safetensors", w=w, l=l, d=zeros(a=1))
equal("d is f32[a=1] here but not there" in e.error, True)
e = catch(load_checkpoint, "x.safetensors", l=l, d=d, w=zeros(q=1).at(q=0).expand(a=2))
equal("repeats the same memory" in e.error, True)

def inside():
    for x in l:
        load_checkpoint("x.safetensors", w=w, l=l)

equal("during iteration" in catch(inside).error, True)
equal((w.tolist(), l, d), ([0.0, 0.0], [5], {"k": 5}))
v = zeros(b=2, a=3).order("a b")
save_checkpoint("y.safetensors", v=arange(6, "i", dtype="f32").split("i", a=3, b=2))
load_checkpoint("y.safetensors", v=v)
equal(v.tolist(), [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
`)
}

// TestCheckpointKeeps keeps the files before, whole ones all of them.
func TestCheckpointKeeps(t *testing.T) {
	it, dir := inFolder(t)
	evaluate(t, it, `
for i in range(5):
    save_checkpoint("run.safetensors", keep=2, step=i)
equal([load_checkpoint(n).step for n in ("run.safetensors", "run.1.safetensors", "run.2.safetensors")], [4, 3, 2])
`)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Errorf("%d files, %v", len(files), err)
	}
	confined := newTest(Config{Dir: dir, Save: func(string, func(io.Writer) error) error { return nil }})
	defer confined.Close()
	refuses(t, confined, `save_checkpoint("x", keep=1, a=1)`, "cannot keep 1 files here")
}

// killedEnv is set in the process that TestKilledWhileSaving starts.
const killedEnv = "FUCINA_TEST_SAVE_IN"

// TestKilledWhileSaving kills a process that saves again and again, at 20 random moments: there is always a whole
// checkpoint, and it is never older than the last that the process had reported.
func TestKilledWhileSaving(t *testing.T) {
	if dir := os.Getenv(killedEnv); dir != "" {
		saveForever(t, dir)
		return
	}
	if testing.Short() {
		t.Skip("starts 20 processes")
	}
	dir := t.TempDir()
	it := newTest(Config{Dir: dir})
	defer it.Close()
	kept := 0
	for range 20 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileSaving$")
		cmd.Env = append(os.Environ(), killedEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		first := make([]byte, len("saved"))
		if _, err := io.ReadFull(out, first); err != nil || string(first) != "saved" {
			t.Fatalf("the process said %q, %v", first, err)
		}
		time.Sleep(time.Duration(rand.Intn(30000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		rest, _ := io.ReadAll(out)
		if err := cmd.Wait(); err == nil {
			t.Error("the process ended before it was killed")
		}
		evaluate(t, it, fmt.Sprintf(`
c = load_checkpoint("run.safetensors")
step = c.step
equal(c.w.ne(float(step)).any().item(), False)
equal(step >= %d, True)
`, kept+1+strings.Count(string(rest), "saved")))
		if kept, err = star.AsInt32(it.Globals()["step"]); err != nil {
			t.Fatal(err)
		}
	}
}

// saveForever saves a checkpoint with a greater step again and again, beginning after the one in the folder.
func saveForever(t *testing.T, dir string) {
	it := New(Config{Dir: dir, Stdout: os.Stdout})
	evaluate(t, it, `
r = catch(load_checkpoint, "run.safetensors")
step = r.value.step if r.error == None else 0
while True:
    step += 1
    save_checkpoint("run.safetensors", keep=step % 2, step=step, w=ones(a=50000) * float(step))
    print("saved")
`)
}

// TestSaveGivenUp lets the disk be full, and a run be interrupted, in the middle of a save: the file that was there
// stays whole, and nothing else is left.
func TestSaveGivenUp(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(background)
	var it *Interp
	var during func(w io.Writer) io.Writer
	it = newTest(Config{Dir: dir, Open: func(name string) (fs.File, error) { return os.Open(name) },
		Save: func(name string, write func(io.Writer) error) error {
			return saveFile(anywhere{}, name, func(w io.Writer) error { return write(during(w)) })
		}})
	defer it.Close()
	during = func(w io.Writer) io.Writer { return w }
	evaluate(t, it, `
def save(value):
    save_checkpoint("run.safetensors", w=ones(a=1000) * value)

save(1.0)
`)
	during = func(w io.Writer) io.Writer { return &full{w, 700} }
	refuses(t, it, `save(2.0)`, "save_checkpoint: cannot save run.safetensors: no space left")
	during = func(w io.Writer) io.Writer {
		cancel()
		for !it.env.Control.Stopped() {
			time.Sleep(time.Millisecond)
		}
		return w
	}
	if _, err := it.Eval(ctx, "<test>", `save(3.0)`); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	evaluate(t, it, `equal(load_checkpoint("run.safetensors").w.eq(1.0).all().item(), True)`)
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// full is a disk with room for so many bytes.
type full struct {
	io.Writer
	room int
}

func (w *full) Write(b []byte) (int, error) {
	if len(b) > w.room {
		n, _ := w.Writer.Write(b[:w.room])
		return n, &fs.PathError{Op: "write", Path: "x", Err: errors.New("no space left on device")}
	}
	w.room -= len(b)
	return w.Writer.Write(b)
}

// FuzzCheckpoint loads anything that a file may say of the objects in it: with an error or without, but not with an
// internal one, and in bounds.
func FuzzCheckpoint(f *testing.F) {
	f.Add(`{"version":1,"random":["0","0"],"objects":{"a":{"tensor":"w"},"b":[1,2.5,null,true,"x",{"float":"NaN"}]}}`)
	f.Add(`{"version":1,"random":["0","0"],"objects":{"a":{"dict":[[{"dict":[]},1]]},` +
		`"b":{"struct":{"c":{"code":"f"}}}}}`)
	f.Add(`{"version":1,"random":["0","0"],"objects":{"a":{"state":{"n":1,"list":[1.5]},"tensors":{"x":"w"}}}}`)
	f.Add(`{"version":1,"random":["0","0"],"objects":{"a":{"tuple":[{"bytes":"AA=="}]},"b":{"tensor":3}}}`)
	f.Add(`{"version":1,"random":["-1","0"],"objects":{"a":1e999,"b":123456789012345678901234567890}}`)
	f.Add(`{"version":1,"random":["0","0"],"objects":{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) +
		`}}`)
	f.Add(`{"version":2}`)
	f.Add(`[]`)
	dir := f.TempDir()
	it := newTest(Config{Dir: dir, MaxSteps: 1 << 20})
	withCounter(it)
	f.Fuzz(func(t *testing.T, text string) {
		head, _, err := safetensors.Header([]safetensors.Info{{Name: "w", DType: dtype.F32, Shape: []int{2}}},
			map[string]string{checkpointKey: text, axesKey: `{"w":"a"}`})
		if err != nil {
			return
		}
		if err := os.WriteFile(filepath.Join(dir, "x"), append(head, make([]byte, 8)...), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, objects := range []string{"", "a=zeros(a=2)", "a=[1, zeros(a=2)], b=[]", "a={}, b={1: zeros(a=2)}",
			"a=struct(c=[[]], d=(zeros(a=2), 1)), b=[2]", "a=counter(1, zeros(a=2))"} {
			_, err := it.Eval(background, "<fuzz>", `load_checkpoint("x", `+objects+")")
			if err != nil && strings.Contains(err.Error(), "internal error") {
				t.Errorf("%s: %v", objects, err)
			}
		}
	})
}

// Quantized tensors go through a checkpoint byte for byte, alone and in place.
func TestCheckpointBlocks(t *testing.T) {
	it, dir := inFolder(t)
	evaluate(t, it, `
w = randn(out=3, in_=256, seed=1)
model = {"a": w.quantize("q4_k"), "b": [w.split("out", p=3, q=1).quantize("q8_0")], "c": ones(x=2)}
model["d"] = model["a"]
save_checkpoint("run.safetensors", model=model, step=3)
c = load_checkpoint("run.safetensors")
equal((c.model["a"].dtype, c.model["a"].axes), ("q4_k", ("out", "in")))
equal(c.model["b"][0].shape, {"p": 3, "q": 1, "in": 256})
equal(c.model["a"].dequantize().tolist(), model["a"].dequantize().tolist())
equal(c.model["b"][0].dequantize().tolist(), model["b"][0].dequantize().tolist())
other = {"a": (w * 2).quantize("q4_k"), "b": [(w * 2).split("out", p=3, q=1).quantize("q8_0")], "c": zeros(x=2)}
other["d"] = other["a"]
load_checkpoint("run.safetensors", model=other)
equal(other["a"].dequantize().tolist(), model["a"].dequantize().tolist())
equal(other["b"][0].dequantize().tolist(), model["b"][0].dequantize().tolist())
equal(other["c"].tolist(), [1, 1])
raw = load_safetensors("run.safetensors")
equal((raw["model.a"].dtype, raw["model.a"].shape), ("u8", {"byte": 432}))
save_checkpoint("again.safetensors", model=other, step=3)
equal(read_bytes("again.safetensors") == read_bytes("run.safetensors"), True)
plain = {"a": w, "b": [w], "c": zeros(x=2)}
`)
	for src, want := range map[string]string{
		`load_checkpoint("run.safetensors", model=other | {"a": w.quantize("q8_0")})`: "model.a " +
			"is q8_0[out=3, in=256] here but q4_k[out=3, in=256] there",
		`save_npy("a.npy", model["a"])`:            "save x.dequantize(), or all of it with save_gguf",
		`save_safetensors("a", {"a": model["a"]})`: "safetensors has no quantized dtype",
	} {
		refuses(t, it, src, want)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "run.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, with, want string }{
		{`\"dtype\":\"q4_k\"`, `\"dtype\":\"q2_k\"`, "the sizes [3 256] do not take its 432 bytes"},
		{`\"dtype\":\"q4_k\"`, `\"dtype\":\"i8__\"`, "there is no such quantized dtype"},
		{`\"dtype\":\"q4_k\"`, `\"dtype\":\"bf16\"`, "there is no such quantized dtype"},
		{`\"sizes\":[3,256]`, `\"sizes\":[9,256]`, "the sizes [9 256] are more than its 432 bytes hold"},
		{`\"sizes\":[3,256]`, `\"sizes\":[-3,25]`, "are more than its 432 bytes hold"},
		{`\"sizes\":[3,256]`, `\"sizes\":[76800]`, "is not in U8 of [432]"},
		{`\"axes\":\"out in\"`, `\"axes\":\"in  in\"`, `load_checkpoint: bad.safetensors: model.a, of q4_k: `},
	} {
		bad := strings.Replace(string(whole), c.old, c.with, 1)
		if bad == string(whole) || len(bad) != len(whole) {
			t.Fatalf("the file has no %s", c.old)
		}
		if err := os.WriteFile(filepath.Join(dir, "bad.safetensors"), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		refuses(t, it, `load_checkpoint("bad.safetensors")`, c.want)
	}
}
