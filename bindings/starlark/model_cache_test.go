package starlark

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	star "go.starlark.net/starlark"
)

// runWithModel runs a script in which m is a family's tiny model and folder a temporary one.
func runWithModel(t *testing.T, family, src string) *Interp {
	t.Helper()
	return runWithSpec(t, familySpecs(t)[family], src)
}

func runWithSpec(t *testing.T, spec familySpec, src string) *Interp {
	t.Helper()
	it := New(Config{Stdout: io.Discard})
	t.Cleanup(it.Close)
	m, err := openFamily(t, it, draftOf(t, spec))
	if err != nil {
		t.Fatal(err)
	}
	it.Globals()["m"], it.Globals()["folder"] = m, star.String(t.TempDir())
	runIn(t, it, src)
	return it
}

// runIn runs a script that sees the globals of those before.
func runIn(t *testing.T, it *Interp, src string) {
	t.Helper()
	if _, err := it.Eval(context.Background(), "test.star", src); err != nil {
		t.Fatal(err)
	}
}

const sameHelpers = `
def same(x, y):
    if x.sub(y).abs().max().item() != 0.0:
        fail("scores differ")

def refused(want, fn, *args, **kwargs):
    got = catch(fn, *args, **kwargs).error
    if got == None or want not in got:
        fail("got %s, want …%s…" % (got, want))

ids = [5 + i * 7 % 90 for i in range(100)]
whole = m.logits(ids)
`

// Caches go on from where they were: forked, truncated, several at once; and misuse has messages of its own.
func TestModelCache(t *testing.T) {
	it := runWithModel(t, "qwen3-qknorm", sameHelpers+`
a = m.cache()
same(m.forward(a, ids[:70]), whole.slice(row=(69, 70)))
b = a.fork()
same(m.forward([(a, ids[70:90]), (b, [ids[70]])], all=True).slice(row=(0, 20)), whole.slice(row=(70, 90)))
same(m.forward(b, ids[71:80]), whole.slice(row=(79, 80)))
if a.tokens != ids[:90] or len(b) != 80:
    fail(a, b)
a.truncate(30)
same(m.forward([(b, ids[80:]), (a, ids[30:33])]), whole.index_select(tensor([99, 32], "at"), "row"))
a.truncate(0)
same(m.forward(a, ids[:3], all=True), whole.slice(row=(0, 3)))

refused("a cache occurs twice", m.forward, [(a, [1]), (a, [2])])
refused("got no tokens", m.forward, a, [])
refused("want a cache and tokens", m.forward, [a])
refused("want a cache and tokens", m.forward, a)
refused("want a cache and tokens", m.forward, [])
refused("want a cache and tokens", m.forward, [1, 2])
refused("among the token ids", m.forward, a, [100000])
refused("got 4, but the cache has 3 tokens", a.truncate, 4)
refused("another model", load_model(path).forward, a, [1])
refused("the cache is empty", m.cache().save, folder + "/x")
w = m.trainable()
k = w.cache()
w.forward(k, [1, 2])
refused("weights change", k.save, folder + "/x")
a.free()
b.free()
`)
	it.Env().Collect()
}

// A fork shares memory: only what it goes on with is its own.
func TestModelCacheSharesMemory(t *testing.T) {
	it := runWithModel(t, "qwen3-256", `
ids = [5 + i * 7 % 90 for i in range(500)]
a = m.cache()
m.forward(a, ids).free()
`)
	run := func(src string) { runIn(t, it, src) }
	before := it.Env().Memory().InUse
	run("forks = [a.fork() for i in range(20)]")
	if n := it.Env().Memory().InUse; n != before {
		t.Errorf("20 forks take %d bytes", n-before)
	}
	run("m.forward([(f, [i]) for i, f in enumerate(forks)]).free()")
	const page = 2 * 2 * 64 * 2 * 64 * 4 // keys and values of two layers, two heads of 64 f32
	if n := it.Env().Memory().InUse - before; n != 20*page {
		t.Errorf("20 forks that went on take %d bytes, want %d", n, 20*page)
	}
	run("[f.free() for f in forks]")
	if n := it.Env().Memory().InUse; n != before {
		t.Errorf("%d bytes are left of forks that ended", n-before)
	}
	run("a.free()")
	if n := it.Env().Memory().InUse; n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

// Layers with a window keep what they will see and a little more; going back is possible within that.
func TestModelCacheWindow(t *testing.T) {
	it := runWithModel(t, "gemma3-swa", `
ids = [5 + i * 7 % 90 for i in range(500)]
a = m.cache()
m.forward(a, ids).free()
`)
	kept := it.Globals()["a"].(*modelCache).cache.Bytes()
	const page = 64 * 32 * 2 * 4 // of one layer
	if want := int64(page * (8 + 5*5)); kept != want {
		t.Errorf("500 positions take %d bytes, want %d: one of six layers keeps all", kept, want)
	}
	runIn(t, it, sameHelpers[:strings.Index(sameHelpers, "ids =")]+`
whole = m.logits(ids)
a.truncate(300)
same(m.forward(a, ids[300:310]), whole.slice(row=(309, 310)))
refused("cannot go back from 310 tokens to 100: 0 is the last place before it", a.truncate, 100)
if len(a) != 310:
    fail(a)
a.truncate(0)
same(m.forward(a, ids[:9]), whole.slice(row=(8, 9)))
`)
}

// Recurrent layers go back to the places that they remember, of which there are few.
func TestModelCacheRecurrent(t *testing.T) {
	it := runWithModel(t, "qwen35-deltanet", sameHelpers+`
a = m.cache()
m.forward(a, ids[:40])
for id in ids[40:45]:
    m.forward(a, [id])
refused("cannot go back from 45 tokens to 20: 0 is the last place before it that they remember", a.truncate, 20)
a.truncate(43)
same(m.forward(a, ids[43:50]), whole.slice(row=(49, 50)))
b = a.fork()
a.truncate(40)
same(m.forward(a, ids[40:60]), whole.slice(row=(59, 60)))
same(m.forward(b, ids[50:52]), whole.slice(row=(51, 52)))
b.truncate(50)
same(m.forward(b, ids[50:53]), whole.slice(row=(52, 53)))
for id in ids[60:]:
    m.forward(a, [id])
a.truncate(99)
same(m.forward(a, ids[99:]), whole.slice(row=(99, 100)))
`)
	a := it.Globals()["a"].(*modelCache).cache
	back := 0
	for n := a.Len() - 1; n > 0; n-- {
		if a.Reach(n) == n {
			back++
		}
	}
	if back > 8 || back < 5 {
		t.Errorf("%d places to go back to, want at most 8", back)
	}
	if n := a.Reach(50); n < 30 {
		t.Errorf("from 100 tokens the place before 50 is %d: want one not far from it", n)
	}
}

// A cache is the same after it was saved and loaded, of every kind of layer and dtype.
func TestModelCacheFile(t *testing.T) {
	for _, family := range []string{"qwen3-qknorm", "gemma3-swa", "deepseek2-mla", "qwen35-deltanet"} {
		for _, dt := range []string{"f32", "f16", "q8_0"} {
			runWithModel(t, family, strings.ReplaceAll(sameHelpers, "m.logits(ids)", "None")+`
m = load_model(path, cache="`+dt+`")
a = m.cache()
m.forward(a, ids)
a.save(folder + "/a.kv")
b = m.load_cache(folder + "/a.kv")
if b.tokens != ids:
    fail(b)
x = m.forward([(a, [3, 4]), (b, [3, 4])], all=True)
same(x.slice(row=(0, 2)), x.slice(row=(2, 4)))
`)
		}
	}
}

// Files that are not what they should be have messages of their own.
func TestModelCacheFileErrors(t *testing.T) {
	it := runWithModel(t, "qwen3-qknorm", sameHelpers+`
a = m.cache()
m.forward(a, ids)
a.save(folder + "/a.kv")
def get(name):
    m.load_cache(folder + "/" + name)
`)
	folder := string(it.Globals()["folder"].(star.String))
	good, err := os.ReadFile(filepath.Join(folder, "a.kv"))
	if err != nil {
		t.Fatal(err)
	}
	changed := func(old, new string) []byte {
		size := binary.LittleEndian.Uint64(good)
		head := strings.Replace(string(good[8:8+size]), old, new, 1)
		if head == string(good[8:8+size]) {
			t.Fatalf("nothing to change: %s", old)
		}
		out := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
		return append(append(out, head...), good[8+size:]...)
	}
	for want, data := range map[string][]byte{
		"safetensors": good[:len(good)-7],
		"it is no file of a cache that this version":            changed("fucina.kv.2", "fucino.kv.2"),
		`it is in the format "fucina.kv.1", this version reads`: changed("fucina.kv.2", "fucina.kv.1"),
		"it is of another model":                                changed(`\"Model\":\"`, `\"Model\":\"00`),
		"it says 99 tokens and lists 100":                       changed(`\"Len\":100`, `\"Len\":99`),
		`its keys are "f64"`:                                    changed(`\"DType\":\"f32`, `\"DType\":\"f64`),
		"pages of f16":                                          changed(`\"DType\":\"f32`, `\"DType\":\"f16`),
		"layer 0 says pages 0 to 3 of 100 tokens":               changed(`\"Pages\":2`, `\"Pages\":3`),
		"layer 0 says pages 7 to 2 of 100 tokens":               changed(`\"First\":0`, `\"First\":7`),
		"it has no tensor 1.k":                                  changed(`"1.k"`, `"9.k"`),
		"token 1 is 1000000, ids are 0":                         changed(`\"Tokens\":[5,12,`, `\"Tokens\":[5,1000000,`),
		"tensor 0.k is F32 [2 2 4 32 16], want 2 pages of f32":  changed(`"0.v"`, `"9.v"`),
		"keys are f32[kv_head=1, key_panel=8, head_dim=32, key_lane=16], want f32[kv_head=2, key_panel=4": changed(
			`[2,2,4,32,16]`, `[2,1,8,32,16]`),
		"layer 0: keys are none, want f32[kv_head=2": changed(`\"Pages\":2`, `\"Pages\":0`),
		"layer 0: a window of 7, want 0":             changed(`\"Pages\":2`, `\"Pages\":2,\"Window\":7`),
	} {
		if err := os.WriteFile(filepath.Join(folder, "bad.kv"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := it.Eval(context.Background(), "test", `get("bad.kv")`)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
	if _, err := it.Eval(context.Background(), "test", `get("none.kv")`); err == nil ||
		!strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
	other, err := openFamily(t, it, draftOf(t, familySpecs(t)["llama-gqa-untied"]))
	if err != nil {
		t.Fatal(err)
	}
	it.Globals()["m"] = other
	if _, err := it.Eval(context.Background(), "test", `m.load_cache(folder + "/a.kv")`); err == nil ||
		!strings.Contains(err.Error(), "it is of another model") {
		t.Errorf("got %v", err)
	}
}

// A cache of f16 or q8_0 takes less memory and changes scores a little; f32 is what there is by default.
func TestModelCacheTypes(t *testing.T) {
	spec := familySpecs(t)["qwen3-256"]
	it := New(Config{Stdout: io.Discard})
	defer it.Close()
	if _, err := openFamily(t, it, draftOf(t, spec)); err != nil {
		t.Fatal(err)
	}
	runIn(t, it, `
ids = [5 + i * 7 % 90 for i in range(100)]
def run(cache):
    m = load_model(path, cache=cache)
    k = m.cache()
    return k, m.forward(k, ids, all=True)
r = {t: run(t) for t in ("f32", "f16", "q8_0")}
apart = {t: (r[t][1] - r["f32"][1]).abs().max().item() for t in r}
print(apart)
if not (0 < apart["f16"] and apart["f16"] < 0.01 and 0 < apart["q8_0"] and apart["q8_0"] < 0.5):
    fail(apart)
if "want f32, f16 or q8_0" not in catch(load_model, path, cache="q4_0").error:
    fail()
`)
	bytes := map[string]int64{}
	for _, item := range it.Globals()["r"].(*star.Dict).Items() {
		bytes[string(item[0].(star.String))] = item[1].(star.Tuple)[0].(*modelCache).cache.Bytes()
	}
	if bytes["f16"]*2 != bytes["f32"] || bytes["q8_0"]*32*4 != bytes["f32"]*34 {
		t.Errorf("bytes: %v", bytes)
	}
}

// A shape-only run has the shapes of a real one, and leaves caches as they are.
func TestModelCacheCheck(t *testing.T) {
	for _, family := range []string{"qwen3-qknorm", "qwen35-deltanet"} {
		runWithModel(t, family, sameHelpers+`
a, b = m.cache(), m.cache()
m.forward(a, ids[:70])
shape = check(lambda: m.forward([(a, ids[70:]), (b, ids)], all=True)).shape
if shape != {"row": 130, "vocab": m.vocab} or a.tokens != ids[:70] or len(b) != 0:
    fail(shape, a, b)
refused("no data in a shape-only run", check, lambda: list(m.generate(ids[:71], cache=a)))
if len(a) > 70:
    fail(a)
same(m.forward(a, ids[len(a):80]), whole.slice(row=(79, 80)))
same(m.forward(b, ids[:10]), whole.slice(row=(9, 10)))
if check(lambda: m.embed(ids)).shape != m.embed(ids).shape:
    fail("embed")
a.save(folder + "/a.safetensors")
refused("a shape-only run reads no cache", check, lambda: m.load_cache(folder + "/a.safetensors"))
`)
	}
}
