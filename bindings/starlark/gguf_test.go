package starlark

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fucina-go/fucina/core/gguf"
)

// ggufIn is an interpreter in a folder of its own that has stories.gguf.
func ggufIn(t *testing.T) (it *Interp, dir string) {
	t.Helper()
	it, dir = inFolder(t)
	data, err := os.ReadFile(stories)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "stories.gguf"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return it, dir
}

func sameFiles(t *testing.T, a, b string, want bool) {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(x, y) != want {
		t.Errorf("%s and %s: equal is %v, want %v", filepath.Base(a), filepath.Base(b), !want, want)
	}
}

// TestGGUFEdit reads a model, writes it unchanged in four ways, and then changed.
func TestGGUFEdit(t *testing.T) {
	it, dir := ggufIn(t)
	evaluate(t, it, `
f = open_gguf("stories.gguf")
equal((len(f), "output_norm.weight" in f, "w" in f, f.version), (48, True, False, 3))
equal(f.metadata["llama.block_count"], 5)
equal((f.kinds["llama.block_count"], f.kinds["tokenizer.ggml.tokens"]), ("u32", "array of string"))
i = f.tensors["blk.0.attn_k.weight"]
equal((i.dtype, i.shape, i.axes, i.bytes), ("f32", [32, 64], None, 32 * 64 * 4))
w = f.tensor("blk.0.attn_k.weight", "out in")
equal(w.shape, {"out": 32, "in": 64})
equal(f.tensor("blk.0.attn_k.weight", "out in", dtype="f16").dtype, "f16")
equal(list(f), list(f.tensors))

equal(save_gguf("same.gguf", like=f), ["same.gguf"])
save_gguf("same2.gguf", {}, f.metadata, like=f)
save_gguf("same3.gguf", {"blk.0.attn_k.weight": w}, like=f, axes=False)
save_gguf("same4.gguf", {n: f.tensor(n, "a b" if len(f.tensors[n].shape) == 2 else "a") for n in f},
          {k: {f.kinds[k].split(" ")[-1]: v} for k, v in f.metadata.items()}, axes=False)

save_gguf("edited.gguf", {"blk.0.attn_k.weight": (w * 2.0).quantize("q8_0"), "new": ones(row=2, col=3),
          "output_norm.weight": None},
          {"general.name": "mine", "llama.context_length": 7, "llama.rope.dimension_count": None, "a": 1, "b": -1,
           "c": 0.5, "d": True, "e": [1, -2], "f": ["x", ""], "g": 5000000000, "h": {"i8": -3}, "i": {"f64": [1, 0.1]},
           "j": [[1], ["x"]], "k": 1 << 63, "l": [1 << 40, -1], "m": {"u16": []}, "n": [0.5, 0.25]}, like=f)
g = open_gguf("edited.gguf")
equal(list(g), [n for n in f if n != "output_norm.weight"] + ["new"])
equal(g["new"].axes, ("row", "col"))
equal(g["blk.0.attn_k.weight"].dtype, "q8_0")
equal(g["blk.0.attn_k.weight"].axes, ("out", "in"))
equal(g.tensor("blk.0.attn_k.weight", dtype="f32").dtype, "f32")
equal(g.tensor("blk.1.attn_k.weight", "out in").tolist(), f.tensor("blk.1.attn_k.weight", "out in").tolist())
kinds = {"general.name": "string", "llama.context_length": "u32", "a": "u32", "b": "i32", "c": "f32", "d": "bool",
         "e": "array of i32", "f": "array of string", "g": "i64", "h": "i8", "i": "array of f64", "j": "array of array",
         "k": "u64", "l": "array of i64", "m": "array of u16", "n": "array of f32"}
equal({k: g.kinds[k] for k in kinds}, kinds)
equal([g.metadata[k] for k in ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n")],
      [1, -1, 0.5, True, [1, -2], ["x", ""], 5000000000, -3, [1.0, 0.1], [[1], ["x"]], 1 << 63, [1 << 40, -1], [],
       [0.5, 0.25]])
equal("llama.rope.dimension_count" in g.metadata, False)
equal(g.metadata["tokenizer.ggml.tokens"], f.metadata["tokenizer.ggml.tokens"])
save_gguf("again.gguf", like=g)
save_gguf("scratch.gguf", {"w": ones(a=3, dtype="i64"), "s": tensor(2.0), "t": ones(a=2, b=3).order("b a")})
h = open_gguf("scratch.gguf")
shared = ones(a=2)
save_gguf("later.gguf", {"x": lambda: shared, "y": lambda: ones(b=64).quantize("q8_0"), "z": lambda: f.tensor(
    "output_norm.weight", "a", dtype="f16")})
l = open_gguf("later.gguf")
equal((l["x"].tolist(), shared.tolist(), l["y"].dtype, l["z"].dtype, l["z"].axes),
      ([1, 1], [1, 1], "q8_0", "f16", ("a",)))
equal((h["w"].tolist(), h["s"].item(), h["s"].shape, h["t"].shape), ([1, 1, 1], 2.0, {}, {"b": 3, "a": 2}))
equal((h.tensors["s"].shape, h.tensors["s"].axes), ([], ""))
save_gguf("unnamed.gguf", {"s": tensor(2.0)}, axes=False)  # a tensor has an axis for readers that ask for one
equal(open_gguf("unnamed.gguf").tensors["s"].shape, [1])
check(lambda: save_gguf("never.gguf", {"w": ones(a=3)}))
`)
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"same.gguf", "same2.gguf", "same3.gguf", "same4.gguf"} {
		sameFiles(t, in(name), in("stories.gguf"), true)
	}
	sameFiles(t, in("again.gguf"), in("edited.gguf"), true)
	sameFiles(t, in("edited.gguf"), in("stories.gguf"), false)
	if _, err := os.Stat(in("never.gguf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("check wrote a file: %v", err)
	}
}

// TestGGUFRefuses looks at what the mistakes say, and that none changes the target.
func TestGGUFRefuses(t *testing.T) {
	it, dir := ggufIn(t)
	evaluate(t, it, `save_gguf("y.gguf", {"w": ones(a=3)})`)
	before, err := os.ReadFile(filepath.Join(dir, "y.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	evaluate(t, it, `f = open_gguf("stories.gguf")`)
	for src, want := range map[string]string{
		`open_gguf("storys.gguf")`: `did you mean "stories.gguf"?`,
		`f["w"]`:                   `key "w" not in gguf`,
		`f["output_norm.weight"]`: "" +
			"the file does not name them; name them: f.tensor(",
		`f.tensor("output_norm.weigh")`:                    `did you mean "output_norm.weight"?`,
		`f.tensor("output_norm.weight", "a b")`:            "has 1 axes, of sizes [64], but 2 are named",
		`f.tensor("output_norm.weight", "a", dtype="i8")`:  `dtype: got "i8", want one for fractions`,
		`f.tensor("output_norm.weight", "a").set(1)`:       "is shared and may not be changed",
		`f.metadata["a"] = 1`:                              "frozen",
		`save_gguf("y.gguf", {"w": 1})`:                    `tensors: got "w": int`,
		`save_gguf("y.gguf", {"w": None}, like=f)`:         `stories.gguf has no tensor "w"`,
		`save_gguf("y.gguf", {"w": ones(a=1).cast("u8")})`: "w: the format has no u8",
		`save_gguf("y.gguf", {"w": ones(a=1, b=1, c=1, d=1, e=1)})`: "" +
			"at most 4 axes, got f32[a=1, b=1, c=1, d=1, e=1]",
		`save_gguf("y.gguf", like=1)`:          "like: got a int, want an open GGUF file",
		`save_gguf("y.gguf", metadata={1: 2})`: "metadata: got the key 1, want a text",
		`save_gguf("y.gguf", metadata={"a": []})`: "" +
			`a: got an empty list, whose kind is unknown; say it: {"i32": []}`,
		`save_gguf("y.gguf", metadata={"a": f})`:           "a: got a gguf, want an int, a float",
		`save_gguf("y.gguf", metadata={"a": {"u8": 256}})`: "a: got 256, want a u8: 0 … 255",
		`save_gguf("y.gguf", metadata={"a": {"u9": 256}})`: `a: got {"u9": 256}, want a value, or its kind`,
		`save_gguf("y.gguf", metadata={"a": 1 << 64})`:     "want a u64: 0 … 18446744073709551615",
		`save_gguf("y.gguf", metadata={"a": [1, "x"]})`:    `element 0: got 1, a int, want a string`,
		`save_gguf("y.gguf", metadata={"a": [[1], 2]})`: "" +
			"element 1: got int, want a list, as the first is",
		`save_gguf("y.gguf", metadata={"a": [[[[[[1]]]]]]})`:     "nested more than 4 deep",
		`save_gguf("y.gguf", metadata={"general.alignment": 3})`: "general.alignment is 3, want a power of two",
		`save_gguf("y.gguf", {}, {"llama.block_count": "x"}, like=f)`: "" +
			`llama.block_count: got "x", a string, want a u32`,
		`save_gguf("y.gguf", {}, {"llama.block_count": -1}, like=f)`:  "got -1, want a u32: 0 … 4294967295",
		`save_gguf("y.gguf", {}, {"llama.block_count": [1]}, like=f)`: "got list where the file has int; give the kind",
		`save_gguf("y.gguf", {"w": lambda: 1})`:                       "tensors: w: the function returned a int",
		`n = []
save_gguf("y.gguf", {"w": lambda: ones(a=len([n.append(1)] + n))})`: "w: the function returned",
		`save_gguf("no/y.gguf", {})`: "cannot save no/y.gguf",
		`save_gguf("y.gguf", {}, split=0)`: "" +
			"want a name that ends in .gguf and a number of bytes",
		`save_gguf("y.bin", {}, split=10)`: "" +
			"want a name that ends in .gguf and a number of bytes",
		`x = zeros(a=1000)
x.free()
save_gguf("y.gguf", {"w": x})`: "save_gguf: w: ",
	} {
		refuses(t, it, src, want)
	}
	after, err := os.ReadFile(filepath.Join(dir, "y.gguf"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("a mistake changed the target, %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// TestGGUFParts writes a model in parts, opens it, and puts it together again.
func TestGGUFParts(t *testing.T) {
	it, dir := ggufIn(t)
	evaluate(t, it, `
f = open_gguf("stories.gguf")
names = save_gguf("p.gguf", like=f, split=400000)
equal(names, ["p-0000{}-of-00004.gguf".format(i + 1) for i in range(4)])
g = open_gguf(names[0])
equal(list(g), list(f))
equal(g.metadata["split.count"], 4)
save_gguf("whole.gguf", like=g)
save_gguf("whole2.gguf", {}, g.metadata, like=g)
equal(save_gguf("q.gguf", {}, {"general.name": "parts"}, like=g, split=1 << 30), ["q.gguf"])

def text(name):
    return "".join(list(load_model(name).generate("Once upon", max_tokens=8)))

equal([text(names[0]), text("q.gguf")], [text("stories.gguf")] * 2)
`)
	sameFiles(t, filepath.Join(dir, "whole.gguf"), filepath.Join(dir, "stories.gguf"), true)
	sameFiles(t, filepath.Join(dir, "whole2.gguf"), filepath.Join(dir, "stories.gguf"), true)
	refuses(t, it, `open_gguf("p-00002-of-00004.gguf")`, "is part 2 of 4, open the first")
	if err := os.Remove(filepath.Join(dir, "p-00003-of-00004.gguf")); err != nil {
		t.Fatal(err)
	}
	for _, load := range []string{"open_gguf", "load_model"} {
		refuses(t, it, load+`("p-00001-of-00004.gguf")`,
			"p-00003-of-00004.gguf: no such file; it belongs to p-00001-of-00004.gguf")
	}
}

// TestGGUFDiskFull lets the disk be full at every point of a write, in one file and in three: the files that were there
// stay, and nothing else is left.
func TestGGUFDiskFull(t *testing.T) {
	_, dir := ggufIn(t)
	room := 0
	it := newTest(Config{Dir: dir, Save: func(name string, write func(w io.Writer) error) error {
		return saveFile(anywhere{}, name, func(w io.Writer) error { return write(&smallDisk{w, &room}) })
	}})
	defer it.Close()
	room = 1 << 30
	evaluate(t, it, `
f = open_gguf("stories.gguf")
save_gguf("a.gguf", like=f)
save_gguf("a.gguf", like=f, split=400000)`)
	state := func() string {
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		hidden, err := filepath.Glob(filepath.Join(dir, ".*"))
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, name := range append(names, hidden...) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("%s %d %x\n", filepath.Base(name), len(data), data[len(data)-200:])
		}
		return text
	}
	before := state()
	for _, src := range []string{
		`save_gguf("a.gguf", {"output_norm.weight": zeros(a=64)}, like=f)`,
		`save_gguf("a.gguf", {"output_norm.weight": zeros(a=64)}, like=f, split=400000)`,
		`quantize_model("stories.gguf", "a.gguf", "f16")`,
	} {
		for _, room = range []int{0, 100, 30000, 500000, 1000000} {
			if src[0] == 'q' && room > 500000 {
				continue
			}
			refuses(t, it, src, "no space left on device")
			if after := state(); after != before {
				t.Fatalf("%s with room for %d bytes:\n%s\nwant\n%s", src, room, after, before)
			}
		}
	}
	room = 1000000
	_, err := it.Eval(t.Context(), "<full>", `save_gguf("a.gguf", like=f, split=400000)`)
	if err == nil || !strings.Contains(err.Error(), ": save_gguf: cannot save a-00003-of-00004.gguf: no space") ||
		strings.Count(err.Error(), "save_gguf: ") > 1 {
		t.Errorf("the disk is full in the third part: got %v", err)
	}
}

// smallDisk has room for a number of bytes.
type smallDisk struct {
	io.Writer
	room *int
}

func (d *smallDisk) Write(b []byte) (int, error) {
	if len(b) > *d.room {
		n, _ := d.Writer.Write(b[:*d.room])
		*d.room = 0
		return n, &os.PathError{Op: "write", Path: "a.gguf", Err: syscall.ENOSPC}
	}
	*d.room -= len(b)
	return d.Writer.Write(b)
}

// A tensor in BitNet's i2_s is one of tq2_0 here: f["w"], and as a weight of a model.
func TestBitNetTensors(t *testing.T) {
	it, dir := ggufIn(t)
	d := &gguf.Draft{}
	data := make([]byte, 256*2/4+32)
	copy(data[128:], []byte{0, 0, 0x80, 0x3e}) // the scale, 0.25; all codes are 0, for -1
	d.Tensors = []gguf.DraftTensor{{Name: "w", Type: gguf.I2S, Dims: []int{256, 2}, Write: func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}}}
	writeDraft(t, filepath.Join(dir, "bit.gguf"), d)
	evaluate(t, it, `
f = open_gguf("bit.gguf")
equal((f.tensors["w"].dtype, f.tensors["w"].bytes), ("i2_s", 160))
w = f.tensor("w", "out in")
equal((w.dtype, w.shape), ("tq2_0", {"out": 2, "in": 256}))
equal(set(w.dequantize().tolist()[1]), set([-0.25]))
equal(ones(row=1, in_=256).dot(w, "in").tolist(), [[-64, -64]])
save_gguf("tq.gguf", {"w": w}, {})
equal(open_gguf("tq.gguf")["w"].dtype, "tq2_0")
save_gguf("same.gguf", like=f)
equal(read_bytes("same.gguf") == read_bytes("bit.gguf"), True)
`)
	d.Set("general.architecture", gguf.Text("llama"))
	d.Set("llama.block_count", gguf.Int(gguf.KindU32, 1))
	d.Tensors[0].Name = "blk.0.attn_q.weight"
	writeDraft(t, filepath.Join(dir, "model.gguf"), d)
	evaluate(t, it, `
done = quantize_model("model.gguf", "again.gguf", "tq2_0")
equal([(x["from"], x["to"]) for x in done], [("tq2_0", "tq2_0")])
equal(open_gguf("again.gguf").tensor("blk.0.attn_q.weight", "out in").dequantize().sum().item(), -128.0)
`)
	refuses(t, it, `quantize_model("model.gguf", "again.gguf", "q8_0")`, "quantized already, as tq2_0")
	d.Tensors[0].Name = "w"
	data[3] = 3
	writeDraft(t, filepath.Join(dir, "bad.gguf"), d)
	refuses(t, it, `open_gguf("bad.gguf").tensor("w", "out in")`, "bad.gguf: w: quant: i2_s: weight 99 has the code 3")
}
