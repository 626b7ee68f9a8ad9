package starlark

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/fucina-go/fucina/core/safetensors"
)

// TestSafetensorsRoundTrip saves tensors and loads them again, names of axes and all.
func TestSafetensorsRoundTrip(t *testing.T) {
	it, dir := inFolder(t)
	evaluate(t, it, `
w = {"s": tensor(True), "e": zeros(a=2, b=0), "layer.0/w": tensor([[1.0, 2.0]], "out in").order("in out")}
for dt in ("f32", "f64", "f16", "bf16", "i8", "u8", "i16", "i32", "i64", "bool"):
    w["x." + dt] = tensor([[0, 1, 2], [3, 4, 100]], "row col", dtype=dt)
save_safetensors("x.safetensors", w, metadata={"format": "pt"})

def same(got, want):
    equal((got.dtype, got.axes, got.tolist()), (want.dtype, want.axes, want.tolist()))

m = load_safetensors("x.safetensors")
equal(sorted(m), sorted(w))
f = open_safetensors("x.safetensors")
equal(sorted(f), sorted(w))
equal((len(f), "s" in f, "t" in f), (len(w), True, False))
for name in w:
    same(m[name], w[name])
    same(f[name], w[name])
    same(f.tensor(name), w[name])
equal(f.metadata["format"], "pt")
i = f.info("x.bf16")
equal((i.dtype, i.shape, i.axes, i.bytes), ("BF16", [2, 3], "row col", 12))
m["x.f32"].set(7, row=(0, 1))
y = f["x.f32"] + 1
equal(y.tolist(), [[1, 2, 3], [4, 5, 101]])
equal(load_safetensors("x.safetensors", {"x.*": "y x"})["x.i8"].axes, ("y", "x"))
equal(load_safetensors("x.safetensors", {"x.*": "y x", "x.i8": "p q"})["x.i8"].axes, ("p", "q"))
equal(load_safetensors("x.safetensors", {"*x*i8": "y x"})["x.i8"].axes, ("y", "x"))
h = load_safetensors("x.safetensors", dtype="f16")
kinds = ("f32", "bf16", "f64", "f16", "i8", "bool")
equal([h["x." + d].dtype for d in kinds], ["f16", "f16", "f16", "f16", "i8", "bool"])
equal(f.tensor("x.f64", dtype="f32").dtype, "f32")
equal(f.tensor("x.f64", axes="y x", dtype=None).axes, ("y", "x"))
save_safetensors("empty.safetensors", {})
equal(load_safetensors("empty.safetensors"), {})
sizes = check(lambda: load_safetensors("x.safetensors")["x.f32"])
`)
	for src, want := range map[string]string{
		`load_safetensors("y.safetensors")`:                         "load_safetensors: cannot open ",
		`load_safetensors("x.safetensor")`:                          "cannot open",
		`load_safetensors("x.safetensors", {"v": "row col"})`:       `x.safetensors has no tensor "v"`,
		`load_safetensors("x.safetensors", {"v*": "row col"})`:      `x.safetensors has no tensor "v*"`,
		`load_safetensors("x.safetensors", {"x.i8": "row"})`:        "x.i8 has 2 axes, of sizes [2 3], but 1 are named",
		`load_safetensors("x.safetensors", {"x.i8": "row row"})`:    "named twice",
		`load_safetensors("x.safetensors", dtype="i8")`:             `dtype: got "i8", want one for fractions`,
		`open_safetensors("x.safetensors")["v"]`:                    `key "v" not in safetensors`,
		`open_safetensors("x.safetensors").tensor("x.f31")`:         `did you mean "x.f32"?`,
		`open_safetensors("x.safetensors")["x.f32"].set(1)`:         "is shared and may not be changed",
		`save_safetensors("y.safetensors", {"w": 1})`:               `tensors: got "w": int`,
		`save_safetensors("y", {"__metadata__": zeros(a=1)})`:       `"__metadata__" cannot name a tensor`,
		`save_safetensors("y", {}, metadata={"axes": ""})`:          "by other names than",
		`save_safetensors("y", {}, metadata={"a": 1})`:              `metadata: got "a": 1`,
		`save_safetensors("y", {"w": ones(a=32).quantize("q8_0")})`: "w is q8_0[a=32], and safetensors has no",
		`save_safetensors("no/y", {})`:                              "cannot save no/y",
		`x = zeros(a=1000)
x.free()
save_safetensors("y", {"w": x})`: "save_safetensors: w: ",
	} {
		refuses(t, it, src, want)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// TestSafetensorsOfOthers loads what another implementation wrote, which names no axes.
func TestSafetensorsOfOthers(t *testing.T) {
	it := newTest(Config{Dir: "../../core/safetensors/testdata"})
	defer it.Close()
	evaluate(t, it, `
p = "nlpodyssey.safetensors"
names = {"*": "row col", "one": "a"}
m = load_safetensors(p, names)
equal({n: m[n].dtype for n in m if n.startswith("x.U")}, {"x.U8": "u8", "x.U16": "i32", "x.U32": "i64", "x.U64": "i64"})
equal(m["x.U16"].tolist(), [[0 + 256 * 7, 14 + 256 * 21, 28 + 256 * 35], [42 + 256 * 49, 56 + 256 * 63, 70 + 256 * 77]])
equal(m["x.BOOL"].tolist(), [[False, True, False], [True, False, True]])
equal(m["one"].tolist(), [1.0])
f = open_safetensors(p)
for n in f:
    equal(f.tensor(n, names.get(n, "row col")).tolist(), m[n].tolist())
equal(f.info("x.I8").axes, None)
`)
	refuses(t, it, `load_safetensors("nlpodyssey.safetensors")`, "the file does not name them; name them: {")
	refuses(t, it, `open_safetensors("nlpodyssey.safetensors")["x.F32"]`, `name them: {"x.F32": "row col"}`)
}

// TestSafetensorsFloat8 reads floating-point numbers of 8 bits on request only.
func TestSafetensorsFloat8(t *testing.T) {
	it, dir := inFolder(t)
	head := `{"x":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}`
	file := append([]byte{byte(len(head)), 0, 0, 0, 0, 0, 0, 0}, head...)
	if err := os.WriteFile(filepath.Join(dir, "f8.safetensors"), append(file, 0x38, 0xfe), 0o666); err != nil {
		t.Fatal(err)
	}
	evaluate(t, it, `
equal(load_safetensors("f8.safetensors", {"x": "a"}, dtype="f32")["x"].tolist(), [1.0, -448.0])
equal(open_safetensors("f8.safetensors").tensor("x", "a", dtype="bf16").tolist(), [1.0, -448.0])
`)
	refuses(t, it, `load_safetensors("f8.safetensors", {"x": "a"})`,
		`x is F8_E4M3, for which there is no dtype; ask for one that holds its values: dtype="f32"`)
}

// TestSafetensorsIndex loads several files by their index.
func TestSafetensorsIndex(t *testing.T) {
	it, dir := inFolder(t)
	evaluate(t, it, `
save_safetensors("m-1.safetensors", {"a": ones(x=2)})
save_safetensors("m-2.safetensors", {"b": zeros(y=3)})
`)
	index := `{"metadata": {"total_size": 20}, "weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}`
	if err := os.WriteFile(filepath.Join(dir, "m.safetensors.index.json"), []byte(index), 0o666); err != nil {
		t.Fatal(err)
	}
	evaluate(t, it, `
m = load_safetensors("m.safetensors.index.json")
equal((m["a"].shape, m["b"].shape), ({"x": 2}, {"y": 3}))
equal(sorted(open_safetensors("m.safetensors.index.json")), ["a", "b"])
`)
}

// TestMappingEnds lets the collector close a file that nobody can reach, and no other.
func TestMappingEnds(t *testing.T) {
	it, dir := inFolder(t)
	evaluate(t, it, `save_safetensors("x.safetensors", {"w": ones(a=1000)})`)
	ended := make(chan bool)
	f, err := safetensors.Open(filepath.Join(dir, "x.safetensors"), nil)
	if err != nil {
		t.Fatal(err)
	}
	runtime.AddCleanup(f, func(int) { close(ended) }, 0)
	x, _ := f.Tensor("w")
	f = nil
	runtime.GC()
	select {
	case <-ended:
		t.Fatal("the file ended before its tensor")
	case <-time.After(20 * time.Millisecond):
	}
	if n := len(x.Bytes()); n != 4000 || x.Bytes()[2] != 128 {
		t.Error(n)
	}
	runtime.KeepAlive(x)
	x = safetensors.Tensor{}
	for range 100 {
		runtime.GC()
		select {
		case <-ended:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the file never ended")
}

// TestMappedTensorsLive uses mapped tensors after their file is out of reach of the script.
func TestMappedTensorsLive(t *testing.T) {
	it, _ := inFolder(t)
	evaluate(t, it, `
save_safetensors("x.safetensors", {"w": arange(100000, "a", dtype="f32")})
x = open_safetensors("x.safetensors")["w"]
`)
	for range 5 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	evaluate(t, it, `equal((x.at(a=99999).item(), (x * 2).at(a=-1).item()), (99999.0, 199998.0))`)
	if text := fmt.Sprint(it.Globals()["x"]); len(text) == 0 {
		t.Error("no text")
	}
}
