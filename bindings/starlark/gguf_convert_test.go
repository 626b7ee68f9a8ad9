package starlark

import (
	"os"
	"path/filepath"
	"testing"

	star "go.starlark.net/starlark"
)

// checkpointScript makes random checkpoints in the layout of the transformers library, and computes their scores from
// that layout, without GGUF and the model families: rotary pairs are halves of a head, and the heads are looped over.
const checkpointScript = `
E, H, KV, D, F, L = 24, 4, 2, 6, 20, 2

def spm():
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for i in range(256):
        vocab[fmt("<0x{:02X}>", i)] = 3 + i
    merges = [["▁", "t"], ["h", "e"], ["▁t", "he"], ["l", "l"], ["ll", "o"], ["he", "llo"]]
    for piece in ["▁", "t", "h", "e", "l", "o"] + [a + b for a, b in merges]:
        vocab[piece] = len(vocab)
    return {
        "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "vocab": vocab, "merges": merges},
        "added_tokens": [{"id": i, "content": s, "special": True} for i, s in enumerate(["<unk>", "<s>", "</s>"])],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}]},
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                                                                    {"Sequence": {"id": "A", "type_id": 0}}]},
    }

def config(kind, rows, **more):
    c = {"architectures": [kind], "hidden_size": E, "num_attention_heads": H, "num_key_value_heads": KV,
         "num_hidden_layers": L, "intermediate_size": F, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
         "rope_theta": 500.0, "vocab_size": rows, "bos_token_id": 1, "eos_token_id": [2, 1], "head_dim": D}
    c.update(more)
    return c

def weights(rows, bias=False, norms=False, tied=False):
    def random(*sizes):
        return randn(dict(zip("out in".split(), sizes))) * 0.2

    w = {"model.embed_tokens.weight": random(rows, E), "model.norm.weight": random(E) + 1.0}
    if not tied:
        w["lm_head.weight"] = random(rows, E)
    for i in range(L):
        p = "model.layers.{}.".format(i)
        w[p + "input_layernorm.weight"] = random(E) + 1.0
        w[p + "post_attention_layernorm.weight"] = random(E) + 1.0
        for n, o, k in (("q", H * D, E), ("k", KV * D, E), ("v", KV * D, E), ("o", E, H * D)):
            w[p + "self_attn.{}_proj.weight".format(n)] = random(o, k)
            if bias and n != "o":
                w[p + "self_attn.{}_proj.bias".format(n)] = random(o)
        if norms:
            w[p + "self_attn.q_norm.weight"] = random(D) + 1.0
            w[p + "self_attn.k_norm.weight"] = random(D) + 1.0
        for n, o, k in (("gate", F, E), ("up", F, E), ("down", E, F)):
            w[p + "mlp.{}_proj.weight".format(n)] = random(o, k)
    return w

def turned(x, base, factors):
    """x[row, head, dim], whose rows are positions: dim i is turned with dim i + D/2."""
    rows = x.shape["row"]
    angles = [[p / base_power(base, i) / factors[i] for i in range(D // 2)] for p in range(rows)]
    angle = tensor(angles, "row dim")
    a, b = x.slice(dim=(0, D // 2)), x.slice(dim=(D // 2, D))
    c, s = angle.cos(), angle.sin()
    return concat([a * c - b * s, b * c + a * s], "dim")

def base_power(base, i):
    return tensor(base, dtype="f64").pow(2.0 * i / D).item()

def normed(x, w):
    return x / (x * x).mean("in").add(1e-5).sqrt() * w.rename(out="in")

def forward(w, ids, base=500.0, factors=[1.0] * (D // 2), narrow=lambda x: x):
    """narrow is what becomes of activations before they are multiplied by weights."""
    x = stack([w["model.embed_tokens.weight"].at(out=i) for i in ids], "row")
    for i in range(L):
        def get(n, i=i):
            return w["model.layers.{}.{}.weight".format(i, n)]

        h = narrow(normed(x, get("input_layernorm")))
        def heads(n, count, h=h, get=get):
            return h.dot(get("self_attn." + n), "in").split("out", head=count, dim=D)

        q, k = turned(heads("q_proj", H), base, factors), turned(heads("k_proj", KV), base, factors)
        v = heads("v_proj", KV)
        outs = []
        for head in range(H):
            kh, vh = k.at(head=head // (H // KV)).rename(row="key"), v.at(head=head // (H // KV)).rename(row="key")
            s = q.at(head=head).dot(kh, "dim") * (1.0 / sqrt_of(D))
            n = len(ids)
            mask = tensor([[0.0 if key <= row else -1e30 for key in range(n)] for row in range(n)], "row key")
            outs.append((s + mask).softmax("key").dot(vh, "key"))
        x = x + narrow(stack(outs, "head").order("row head dim").merge(**{"in": ("head", "dim")})).dot(
            get("self_attn.o_proj"), "in").rename(out="in")
        h = narrow(normed(x, get("post_attention_layernorm")))
        g, u = h.dot(get("mlp.gate_proj"), "in"), h.dot(get("mlp.up_proj"), "in")
        x = x + narrow(g * g.sigmoid() * u).rename(out="in").dot(get("mlp.down_proj"), "in").rename(out="in")
    last = w["lm_head.weight"] if "lm_head.weight" in w else w["model.embed_tokens.weight"]
    return narrow(normed(x, w["model.norm.weight"])).dot(last, "in")

def sqrt_of(n):
    return tensor(n * 1.0, dtype="f64").sqrt().item()

def close(got, want, most=2e-5):
    d = (got.rename(vocab="out") - want).abs().max().item()
    if not d <= most:
        fail(fmt("the scores differ by {}", d))

seed(5)
t = spm()
rows = len(t["model"]["vocab"]) + 3
`

// checkpointIn is an interpreter in a folder with the checkpoint folder c, of which it has the tokenizer t; the script
// save(config, weights) writes the rest.
func checkpointIn(t *testing.T) (it *Interp, dir string) {
	t.Helper()
	it, dir = inFolder(t)
	for _, name := range []string{"one", "two", "three"} {
		mkdir(t, filepath.Join(dir, name))
	}
	it.Predeclare("write_text", writeTextFor(dir))
	evaluate(t, it, checkpointScript+`
load("@stdlib//convert.star", "convert")
def put(folder, c, w, tokenizer=t):
    write_text(folder + "/config.json", json.encode(c))
    write_text(folder + "/tokenizer.json", json.encode(tokenizer))
    save_safetensors(folder + "/model.safetensors", w)
`)
	return it, dir
}

// TestConvertLlama converts random checkpoints, and has the model compute what they say.
func TestConvertLlama(t *testing.T) {
	it, _ := checkpointIn(t)
	evaluate(t, it, `
ids = [1, 260, 3, 265, 266, 7, 270]
w = weights(rows)
put("one", config("LlamaForCausalLM", rows), w)
files = convert.model("one/", "one.gguf")
equal(files, ["one.gguf"])
m = load_model("one.gguf")
want = forward(w, ids)
close(m.logits(ids), want)
if (m.logits(ids).rename(vocab="out") - want.flip("row")).abs().max().item() < 0.1:
    fail("the scores say nothing")
hello = t["model"]["vocab"]
equal(m.tokenize("the hello"), [1, hello["▁the"], hello["▁"], hello["hello"]])
equal(m.tokenize("x", special=False), [hello["▁"], 3 + 0x78])
equal(m.detokenize(m.tokenize("the hello")), "the hello")
f = open_gguf("one.gguf")
equal((f.metadata["general.name"], f.metadata["general.file_type"], f.metadata["llama.vocab_size"]), ("one", 0, rows))
equal(f.metadata["tokenizer.ggml.token_type"][:4], [2, 3, 3, 6])
equal(f.metadata["tokenizer.ggml.tokens"][-1], "[PAD{}]".format(rows - 1))
equal(list(f)[:3], ["output.weight", "output_norm.weight", "token_embd.weight"])

# Tied, in bf16, frequencies by Llama 3's rule, a chat template, in parts.
w = weights(rows, tied=True)
half = {n: x.cast("bf16") for n, x in w.items()}
s = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 64}
put("two", config("MistralForCausalLM", rows, tie_word_embeddings=True, rope_scaling=s), half)
write_text("two/tokenizer_config.json", json.encode({"chat_template": "{{ x }}"}))
files = convert.model("two", "two.gguf", split=20000)
f = open_gguf(files[0])
equal((f.metadata["tokenizer.chat_template"], f.metadata["general.file_type"], len(files) > 1), ("{{ x }}", 32, True))
equal(f.tensors["token_embd.weight"].dtype, "bf16")
equal(f.tensors["output_norm.weight"].dtype, "f32")
# The waves of the three pairs are 6.28, 49.9 and 396 long: 10.2, 1.28 and 0.16 of them fit into the context.
times = 64 / (2 * 3.141592653589793 * base_power(500.0, 1))
smooth = (times - 1.0) / 3.0
factors = [1.0, 1.0 / ((1.0 - smooth) / 8.0 + smooth), 8.0]
w = {n: x.cast("f32") for n, x in half.items()}
want = forward(w, ids, factors=factors, narrow=lambda x: x.cast("bf16").cast("f32"))
close(load_model(files[0]).logits(ids), want, 1e-4)
close(want.rename(out="vocab"), forward(w, ids, factors=factors), 0.05)
if (forward(w, ids) - forward(w, ids, factors=factors)).abs().max().item() < 1e-2:
    fail("the factors change nothing")
`)
}

// TestConvertQwen looks at what becomes of biases, norms of heads, and a byte-level tokenizer.
func TestConvertQwen(t *testing.T) {
	it, _ := checkpointIn(t)
	evaluate(t, it, `
split = "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
b = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
     "added_tokens": [{"id": 3, "content": "<|end|>", "special": True},
                      {"id": 4, "content": "<think>", "special": False}],
     "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
         {"type": "Split", "pattern": {"Regex": split}}, {"type": "ByteLevel"}]}}
for kind, arch, w in (("Qwen2ForCausalLM", "qwen2", weights(8, bias=True)),
                      ("Qwen3ForCausalLM", "qwen3", weights(8, norms=True))):
    put("three", config(kind, 8, bos_token_id=None, eos_token_id=3), w, b)
    files = convert.model("three", arch + ".gguf", dtype="f16")
    f = open_gguf(files[0])
    equal([f.metadata[k] for k in ("general.architecture", arch + ".attention.key_length", "general.file_type",
                                   "tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.add_bos_token")],
          [arch, D, 1, "gpt2", "qwen2", False])
    equal(f.metadata["tokenizer.ggml.merges"], ["a b"])
    equal(f.metadata["tokenizer.ggml.tokens"], ["a", "b", "ab", "<|end|>", "<think>", "[PAD5]", "[PAD6]", "[PAD7]"])
    equal(f.metadata["tokenizer.ggml.token_type"], [1, 1, 1, 3, 4, 5, 5, 5])
    equal(len(f), len(w))
    name = "model.layers.1.self_attn.q_proj.weight"
    equal(f.tensor("blk.1.attn_q.weight", "out in").tolist(), w[name].cast("f16").tolist())
equal(open_gguf("qwen2.gguf").tensors["blk.0.attn_k.bias"].shape, [KV * D])
equal(open_gguf("qwen3.gguf").tensors["blk.0.attn_k_norm.weight"].shape, [D])
b["pre_tokenizer"] = {"type": "ByteLevel"}
equal(convert.pre_tokenizer(b), "gpt-2")
equal(convert.tokenizer_metadata(b, {}, 8, pre="mine")["tokenizer.ggml.pre"], "mine")
`)
	for src, want := range map[string]string{
		`convert.model("none", "x.gguf")`: "cannot open",
		`convert.model("three", "x.gguf", dtype="q8_0")`: "" +
			`type: got "q8_0", want one of f32, f16, bf16`,
		`convert.gguf_name("model.layers.0.mlp.experts.0.up_proj.weight")`: "for which GGUF has no name",
		`convert.pre_tokenizer({"pre_tokenizer": {"type": "Digits"}})`:     "--pre name",
		`convert.model_metadata({"num_attention_heads": 1}, "llama", "x")`: "config.json has no hidden_size",
		`convert.main(["a"])`:                       "usage: fucina-repl -m convert",
		`convert.main(["a", "b", "--split"])`:       "--split needs a value",
		`convert.main(["a", "b", "--fast"])`:        "unknown option --fast",
		`convert.main(["a", "b", "--split", "1G"])`: "--split: got 1G, want a whole number",
		`put("one", config("GemmaForCausalLM", rows), {})
convert.model("one", "x.gguf")`: `the architecture is "GemmaForCausalLM"; known are LlamaForCausalLM`,
		`put("one", config("LlamaForCausalLM", rows), {"model.norm.weight": ones(a=3)})
convert.model("one", "x.gguf")`: "the checkpoint has no model.embed_tokens.weight",
		`put("one", config("LlamaForCausalLM", 5), weights(5))
convert.model("one", "x.gguf")`: "but the embedding has 5 rows",
		`put("one", config("LlamaForCausalLM", rows, rope_scaling={"type": "dynamic", "factor": 2}), weights(rows))
convert.model("one", "x.gguf")`: "rope scaling of type dynamic is unknown",
		`convert.tokenizer_metadata({"model": {"type": "Unigram"}}, {}, 8)`: "of type Unigram, want BPE",
	} {
		refuses(t, it, src, want)
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

// writeTextFor is write_text(path, text) for the tests.
func writeTextFor(dir string) *star.Builtin {
	return star.NewBuiltin("write_text",
		func(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
			var path, text string
			if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path, "text", &text); err != nil {
				return nil, err
			}
			return star.None, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600)
		})
}
