package starlark

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/gguf"
)

// wrongModels is ways in which a model's file can be wrong, and the message for each.
var wrongModels = []struct{ name, changes, want string }{
	{"an architecture without a family", `metadata={"general.architecture": "lama"}`,
		`FILE is of the architecture "lama"; known are deepseek2, gemma2, gemma3, `},
	{"no architecture", `metadata={"general.architecture": None}`,
		`load_model: gguf: FILE: missing key general.architecture, want a string`},
	{"another architecture", `metadata={"general.architecture": "qwen3"}`,
		`gguf: FILE: missing key qwen3.embedding_length, want an integer`},
	{"a tensor is missing", `tensors={"blk.3.ffn_up.weight": None}`,
		`FILE has no tensor blk.3.ffn_up.weight`},
	{"a tensor of another shape", `tensors={"blk.3.ffn_up.weight": zeros(a=64, b=172)}`,
		`FILE: tensor blk.3.ffn_up.weight is 64 × 172, want [ffn=172, embed=64]`},
	{"a size that the tensors do not have", `metadata={"llama.embedding_length": 65}`,
		`FILE: tensor blk.0.attn_norm.weight is 64, want [embed=65]`},
	{"more heads than there is room for", `metadata={"llama.attention.head_count": 7}`,
		`FILE: tensor blk.0.attn_q.weight is 64 × 64, want [head=7, head_dim=9, embed=64]`},
	{"no heads", `metadata={"llama.attention.head_count": 0}`,
		`FILE: llama.attention.head_count: got 0, want 1 … 2147483647; the file is damaged`},
	{"a size that is missing", `metadata={"llama.feed_forward_length": None}`,
		`gguf: FILE: missing key llama.feed_forward_length, want an integer`},
	{"a size that is a text", `metadata={"llama.feed_forward_length": None, "llama.block_count": {"string": "5"}}`,
		`gguf: FILE: llama.block_count is a string, want an integer`},
	{"a tensor too many", `tensors={"blk.9.attn_q.weight": zeros(a=64, b=64)}`,
		`FILE has 1 tensors that the family llama does not use: blk.9.attn_q.weight`},
	{"layers without end", `metadata={"llama.block_count": 1 << 30}`,
		`FILE has no tensor blk.5.`},
	{"a context too long to count", `metadata={"llama.context_length": 1 << 31}`,
		`FILE: llama.context_length: got 2147483648, want 1 … 2147483647; write a file with another: ` +
			`save_gguf("mended.gguf", like=open_gguf("FILE"), metadata={"llama.context_length": 2048})`},
	{"no context", `metadata={"llama.context_length": 0}`,
		`FILE: llama.context_length: got 0, want 1 … 2147483647; write a file`},
	{"layers of a negative number", `metadata={"llama.block_count": {"i32": -1}}`,
		`FILE: llama.block_count: got -1, want 1 … 2147483647; `},
	{"a tensor of another kind", `tensors={"blk.3.ffn_up.weight": zeros(a=172, b=64, dtype="i32")}`,
		`FILE: tensor blk.3.ffn_up.weight has elements of the type i32, want fractions`},
	{"no tokenizer", `metadata={"tokenizer.ggml.model": None}`,
		`load_model: token: gguf: FILE: missing key tokenizer.ggml.model, want a string`},
	{"an unknown tokenizer", `metadata={"tokenizer.ggml.model": "braille"}`,
		`tokenizer.ggml.model: got "braille", want one of llama, gpt2, `},
	{"an unknown pre-tokenizer", `metadata={"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "words", ` +
		`"tokenizer.ggml.merges": {"string": ["a b"]}}`,
		`tokenizer.ggml.pre: got the pre-tokenizer "words", want one of `},
	{"a template that is no text", `metadata={"tokenizer.chat_template": 3}`,
		`gguf: FILE: tokenizer.chat_template is a u32, want a string`},
	{"an unknown kind of rope", `metadata={"llama.rope.scaling.type": "spiral"}`,
		`rope scaling of type spiral is unknown; known are none, linear, yarn, longrope`},
	{"a factor of rope that turns back", `metadata={"llama.rope.scaling.factor": -2.0}`,
		`FILE: llama.rope.scaling.factor: got -2, want 0 or more; the file is damaged`},
	{"a factor of rope that is no number", `metadata={"llama.rope.scaling.factor": float("nan")}`,
		`FILE: llama.rope.scaling.factor: got NaN, want a finite number; the file is damaged`},
	{"a norm by a negative number", `metadata={"llama.attention.layer_norm_rms_epsilon": -0.5}`,
		`FILE: llama.attention.layer_norm_rms_epsilon: got -0.5, want 0 or more; the file is damaged`},
	{"a rope that stands still", `metadata={"llama.rope.freq_base": {"f32": 0.0}}`,
		`FILE: llama.rope.freq_base: got 0, want a number above 0; the file is damaged`},
	{"a rope of a negative base", `metadata={"llama.rope.freq_base": {"f32": -10000.0}}`,
		`FILE: llama.rope.freq_base: got -10000, want a number above 0; the file is damaged`},
	{"a rope of a base that is no number", `metadata={"llama.rope.freq_base": {"f32": float("nan")}}`,
		`FILE: llama.rope.freq_base: got NaN, want a finite number; the file is damaged`},
	{"a yarn of a negative rate", `metadata={"llama.rope.scaling.type": "yarn", ` +
		`"llama.rope.scaling.factor": 2.0, "llama.rope.scaling.yarn_beta_slow": -1.0}`,
		`FILE: llama.rope.scaling.yarn_beta_slow: got -1, want 0 or more; the file is damaged`},
	{"a norm by an endless number", `metadata={"llama.attention.layer_norm_rms_epsilon": float("-inf")}`,
		`FILE: llama.attention.layer_norm_rms_epsilon: got -Inf, want a finite number; the file is damaged`},
}

// TestWrongModels insists on a message of its own for each way in which a model's file can be wrong.
func TestWrongModels(t *testing.T) {
	dir := t.TempDir()
	for _, c := range wrongModels {
		t.Run(c.name, func(t *testing.T) {
			it := New(Config{Stdout: io.Discard})
			defer it.Close()
			file := filepath.Join(dir, strings.ReplaceAll(c.name, " ", "_")+".gguf")
			it.Predeclare("file", star.String(file))
			src := `save_gguf(file, axes=False, like=open_gguf("` + stories + `"), ` + c.changes + `)`
			if _, err := it.Eval(context.Background(), "save.star", src); err != nil {
				t.Fatal(err)
			}
			_, err := it.Eval(context.Background(), "load.star", `load_model(file)`)
			if err == nil {
				t.Fatal("it loads")
			}
			message := strings.Split(err.Error(), "\n")[0]
			t.Log(strings.ReplaceAll(message, dir, ""))
			want := strings.ReplaceAll(c.want, "FILE", file)
			if !strings.Contains(message, want) || strings.Contains(message, "internal error") {
				t.Errorf("got %s\nwant %s", message, want)
			}
		})
	}
}

// TestOddSettings loads models with settings that are odd but have a meaning in llama.cpp, and insists on that.
func TestOddSettings(t *testing.T) {
	it := forFamilies(t)
	if err := it.RunSource(context.Background(), "t.star", []byte(`
def scores(**metadata):
    changed = {"llama." + k.replace("__", "."): v for k, v in metadata.items()}
    save_gguf("odd.gguf", axes=False, like=open_gguf(model), metadata=changed)
    return load_model("odd.gguf").logits([1, 5, 9]).tolist()

plain = load_model(model).logits([1, 5, 9]).tolist()
equal(scores(rope__scaling__factor=0.0), plain)
equal(scores(rope__scaling__type="none", rope__scaling__factor=-3.0), plain)
equal(scores(rope__scaling__type="linear", rope__scale_linear=1.0), plain)
none = scores(attention__layer_norm_rms_epsilon={"f32": 0.0})[-1]
if not all([abs(a - b) < 0.01 for a, b in zip(none, plain[-1])]):
    fail(none, plain)
`)); err != nil {
		t.Error(err)
	}
}

// TestSoftcapSign loads a model whose caps are negative, which is the same function, and one without.
func TestSoftcapSign(t *testing.T) {
	spec := familySpecs(t)["gemma2"]
	var want string
	for _, cap := range []float32{3, -3} {
		it := New(Config{Stdout: io.Discard})
		defer it.Close()
		d := draftOf(t, spec)
		d.Set("gemma2.attn_logit_softcapping", gguf.Float(cap))
		d.Set("gemma2.final_logit_softcapping", gguf.Float(cap))
		m, err := openFamily(t, it, d)
		if err != nil {
			t.Fatal(err)
		}
		it.Predeclare("m", m)
		v, err := it.Eval(context.Background(), "t.star", "m.logits([1, 2, 3]).tolist()")
		if err != nil {
			t.Fatal(err)
		}
		if got := v.String(); want == "" {
			want = got
		} else if got != want {
			t.Errorf("a cap of %v: got %.200s\nwant %.200s", cap, got, want)
		}
	}
}

// TestPreTokenizerIsNamed loads a model whose file names a pre-tokenizer that nobody knows, as one that is alike.
func TestPreTokenizerIsNamed(t *testing.T) {
	it := forFamilies(t)
	if err := it.RunSource(context.Background(), "t.star", []byte(`
save_gguf("odd.gguf", axes=False, like=open_gguf(model), metadata={
    "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "words-9", "tokenizer.ggml.merges": {"string": ["1 2"]},
    "tokenizer.ggml.token_type": None,
    "tokenizer.ggml.tokens": {"string": ["<unk>", "<s>", "</s>", "1", "2", "12"] + ["t%d" % i for i in range(506)]}})
error = catch(load_model, "odd.gguf").error
if not error.endswith('name one that is alike, as in pre="qwen2"') or ' "words-9", want one of a.x-4.0, ' not in error:
    fail(error)
for pre, want in (("gpt-2", [5]), ("qwen2", [3, 4])):
    m = load_model("odd.gguf", pre=pre)
    equal(m.tokenize("12", special=False), want)
    equal(m.logits(want).tolist(), load_model(model).logits(want).tolist())
`)); err != nil {
		t.Error(err)
	}
}

// TestBadSizes loads models whose sizes cannot be divided by each other.
func TestBadSizes(t *testing.T) {
	for _, c := range []struct {
		family, key string
		value       int64
		want        string
	}{
		{"qwen35-deltanet", "qwen35.ssm.group_count", 0, "qwen35.ssm.group_count: got 0, want 1 … 2147483647"},
		{"qwen35-deltanet", "qwen35.ssm.group_count", 7, "want a multiple of ssm.group_count, which is 7"},
		{"qwen35-deltanet", "qwen35.ssm.time_step_rank", 0, "qwen35.ssm.time_step_rank: got 0, want 1 … 2147483647"},
		{"qwen35-deltanet", "qwen35.full_attention_interval", 0, "qwen35.full_attention_interval: got 0, want 1 …"},
		{"deepseek2-mla", "deepseek2.attention.key_length_mla", 0,
			"deepseek2.attention.key_length_mla: got 0, want 1 … 2147483647"},
	} {
		it := New(Config{Stdout: io.Discard})
		defer it.Close()
		d := draftOf(t, familySpecs(t)[c.family])
		d.Set(c.key, gguf.Int(gguf.KindU32, c.value))
		if _, err := openFamily(t, it, d); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %d: got %v, want %s", c.key, c.value, err, c.want)
		}
	}
}

// forFamilies is an interpreter in a folder of its own, for families' files, with the path of a Llama as model.
func forFamilies(t *testing.T) *Interp {
	t.Helper()
	it := newTest(Config{Stdout: io.Discard, Dir: t.TempDir()})
	t.Cleanup(it.Close)
	path, err := filepath.Abs(stories)
	if err != nil {
		t.Fatal(err)
	}
	it.Predeclare("model", star.String(path))
	return it
}

// TestBatchHints insists that the hints of what b does are code of a family's file.
func TestBatchHints(t *testing.T) {
	it := forFamilies(t)
	if err := it.RunSource(context.Background(), "t.star", []byte(`
def hint(call):
    path = fmt("{}.star", abs(hash(call)))
    save_text(path, """
load("@models//llama.star", e = "embed", s = "logits", w = "load_weights")
embed, logits, load_weights = e, s, w
def layer(m, i, x, b):
    x = x.rename(embed = "channel")
    q = x.split("channel", heads = 8, head_dim = 8)
    k = x.slice(channel = (0, 32)).split("channel", kv_head = 4, head_dim = 8)
    v, c, w = k, k, zeros(channel = 64, kernel = 2)
    return """ + call)
    error = catch(load_model(model, family=path).logits, [1, 2]).error
    return error.partition("; ")[2]

equal(hint("b.attend(i, q, k, v)"), 'its axes are row, heads, head_dim: q.rename(heads="head")')
equal(hint("b.attend_latent(i, q, k, 4)"), 'its axes are row, heads, head_dim: q.rename(heads="head")')
equal(hint("b.rope(x, axis=\"channel\", dims=5)"),
      'dims is an even number up to 64: b.rope(x, axis="channel", dims=4)')
equal(hint("b.conv(i, x.rename(channel=\"in\"), w)"), 'rename the one that is meant: x.rename(in_="channel")')
equal(hint("b.conv(i, x, w.rename(kernel=\"k\"))"), 'rename the one that is meant: w.rename(k="kernel")')
equal(hint("b.wkv(i, q, k, v, c, c)"), 'its axes are row, heads, head_dim: r.rename(head_dim="key")')
equal(hint("b.last(x.rename(row=\"rows\"))"), "layers keep the rows that embed was given")
`)); err != nil {
		t.Error(err)
	}
}

// TestLayerReturnsWhatWasThere insists that a tensor which a layer did not make stays after the next layer.
func TestLayerReturnsWhatWasThere(t *testing.T) {
	it := forFamilies(t)
	if err := it.RunSource(context.Background(), "t.star", []byte(`
save_text("f.star", """
load("@models//llama.star", e = "embed", s = "logits", w = "load_weights")
embed, logits, load_weights = e, s, w
def layer(m, i, x, b):
    if i == 0:
        return b.positions
    return zeros(row = 3, embed = 64) + b.positions.cast("f32") * i
""")
equal(load_model(model, family="f.star").logits([1, 2, 3]).dtype, "f32")
`)); err != nil {
		t.Error(err)
	}
}

// TestFamilyFile gives a model a family's file that is not one of the project's, and files that are none.
func TestFamilyFile(t *testing.T) {
	it := forFamilies(t)
	if err := it.RunSource(context.Background(), "t.star", []byte(`
save_text("mine.star", """
load("@models//llama.star", e = "embed", l = "layer", s = "logits", w = "load_weights")
embed, layer, load_weights = e, l, w
def logits(m, x, b):
    return -s(m, x, b)
""")
a, b = load_model(model), load_model(model, family="mine.star")
equal((a.logits([1, 5]) + b.logits([1, 5])).abs().max().item(), 0.0)
save_text("half.star", "def embed(m, tokens, b):\n    return tokens\n")
equal(catch(load_model, model, family="half.star").error,
      "load_model: half.star does not define the function load_weights, which a family has")
r = catch(load_model, model, family="none.star").error
if "none.star" not in r or "no such file" not in r:
    fail(r)
save_text("twice.star", """
load("@models//llama.star", e = "embed", l = "layer", s = "logits", w = "load_weights")
embed, layer, logits = e, l, s
def load_weights(g):
    made = w(g)
    g.tensor("output_norm.weight", embed=64)
    return made
""")
equal(catch(load_model, model, family="twice.star").error, model + ": tensor output_norm.weight is taken twice")
save_text("wrong.star", "def f(:")
if "wrong.star:1:8" not in catch(load_model, model, family="wrong.star").error:
    fail(catch(load_model, model, family="wrong.star").error)
`)); err != nil {
		t.Error(err)
	}
}

// TestFamilyThatKeepsTensors gives a model the file of a family that leaves tensors in a list of the program, by a
// function of Go, and that returns the positions: those that have ended say so, however much is computed afterwards.
func TestFamilyThatKeepsTensors(t *testing.T) {
	it := forFamilies(t)
	if err := it.RunSource(context.Background(), "t.star", []byte(`
save_text("mine.star", """
load("@models//llama.star", e = "embed", l = "layer", s = "logits", w = "load_weights")
embed, load_weights, logits = e, w, s
def layer(m, i, x, b):
    y = l(m, i, x, b)
    args.extend([x, y * 2, y])
    return y
""")
load_model(model, family="mine.star").logits([1, 5, 9])
ended = 0
for x in args:
    error = catch(x.sum).error
    if "made at" not in error or "ended" not in error:
        fail(error)
    ended += 1
equal(ended, 15)
save_text("places.star", """
load("@models//llama.star", e = "embed", s = "logits", w = "load_weights")
embed, load_weights = e, w
def layer(m, i, x, b):
    return b.positions if i < 3 else ones(row=3, embed=64)
def logits(m, x, b):
    zeros(row=3) + 7
    return s(m, x, b) * 0 + b.positions.cast("f32")
""")
equal(load_model(model, family="places.star").logits([1, 5, 9]).max("vocab").tolist(), [0.0, 1.0, 2.0])
`)); err != nil {
		t.Error(err)
	}

	it = forFamilies(t)
	var kept []*core.Tensor
	norm := it.names["rms_norm"].(star.Callable)
	it.Predeclare("rms_norm", star.NewBuiltin("rms_norm", func(t *star.Thread, _ *star.Builtin, args star.Tuple,
		kwargs []star.Tuple) (star.Value, error) {
		v, err := star.Call(t, norm, args, kwargs)
		if err == nil {
			kept = append(kept, v.(Tensor).Tensor)
		}
		return v, err
	}))
	if err := it.RunSource(context.Background(), "t.star", []byte(`load_model(model).logits([1, 5])`)); err != nil {
		t.Fatal(err)
	}
	for _, x := range kept {
		if !x.Closed() {
			t.Errorf("a tensor that has ended is another now, %s", x.Shape())
		}
	}
	if len(kept) != 11 {
		t.Errorf("%d tensors were kept", len(kept))
	}
}
