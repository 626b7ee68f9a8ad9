package starlark

import (
	"os"
	"path/filepath"
	"testing"
)

// collectScript collects over two chunks, and computes the same from the weights.
const collectScript = `
m = load_model("stories.gguf")
text = "Once upon a time there was a little girl. She had a red ball, and a dog that was very big."
ids = m.tokenize(text)
n = 12
got = collect_imatrix(m, text, "im.gguf", chunk=n, dataset="a tale")
equal(len(got), 5 * 7)
equal(got["blk.0.attn_q.weight"].shape, {"in": 64})
equal(got["blk.4.ffn_down.weight"].shape, {"in": 172})

def close(got, want):
    d = ((got - want).abs() / (want.abs() + 1e-9)).max().item()
    if not d < 1e-4:
        fail(fmt("relative difference {}", d))

# The input of the first layer's products is the normalized embedding.
chunks = len(ids) // n
equal(chunks > 1, True)
rows = []
for i in range(chunks):
    rows += [1] + ids[i * n + 1:(i + 1) * n]
w = m.weights.layers[0]
x = rms_norm(embedding(tensor(rows, "row", dtype="i32"), m.weights.table), w.attn_norm, 1e-5)
want = (x * x).mean("row").rename(embed="in")
for name in ("q", "k", "v"):
    close(got["blk.0.attn_{}.weight".format(name)], want)
equal(got["blk.0.attn_q.weight"].tolist(), got["blk.0.attn_v.weight"].tolist())

# That of the first feed-forward, in full, by chunk: attention is computed by hand.
def chunk_input(rows):
    t = embedding(tensor(rows, "row", dtype="i32"), m.weights.table)
    h = rms_norm(t, w.attn_norm, 1e-5)
    p = tensor(list(range(len(rows))), "row", dtype="i32")
    q, k, v = h.dot(w.q, "embed"), h.dot(w.k, "embed"), h.dot(w.v, "embed")
    q, k = rope(q, p, **m.weights.config.rope), rope(k, p, **m.weights.config.rope)
    outs = []
    for head in range(8):
        a, b, c = q.at(head=head), k.at(kv_head=head // 2).rename(row="key"), v.at(kv_head=head // 2).rename(row="key")
        s = a.dot(b, "head_dim") * (1.0 / tensor(8.0).sqrt().item())
        s = s + tensor([[0.0 if j <= i else -1e30 for j in range(len(rows))] for i in range(len(rows))], "row key")
        outs.append(s.softmax("key").dot(c, "key"))
    return t, stack(outs, "head").order("row head head_dim")

o, f = [], []
for i in range(chunks):
    t, y = chunk_input(rows[i * n:(i + 1) * n])
    o.append((y * y).mean("row").merge(**{"in": ("head", "head_dim")}))
    z = rms_norm(t + y.dot(w.o, "head head_dim"), w.ffn_norm, 1e-5)
    f.append((z * z).mean("row").rename(embed="in"))
close(got["blk.0.attn_output.weight"], stack(o, "chunk").mean("chunk"))
close(got["blk.0.ffn_gate.weight"], stack(f, "chunk").mean("chunk"))

# The file says the same, and is what quantize_model asks for.
back = load_imatrix("im.gguf")
equal({k: v.tolist() for k, v in back.items()}, {k: v.tolist() for k, v in got.items()})
g = open_gguf("im.gguf")
equal([g.metadata[k] for k in ("general.type", "imatrix.datasets", "imatrix.chunk_count", "imatrix.chunk_size")],
      ["imatrix", ["a tale"], chunks, n])
equal(g.tensor("blk.0.attn_q.weight.counts", "n").tolist(), [chunks * n * 1.0])
quantize_model("stories.gguf", "plain.gguf", "q4_0")
quantize_model("stories.gguf", "with.gguf", "q4_0", imatrix="im.gguf")
quantize_model("stories.gguf", "iq4.gguf", "iq4_nl", imatrix="im.gguf")
whole = collect_imatrix(m, "one", "small.gguf", output=True)
equal(sorted([k for k in whole if not k.startswith("blk.")]), ["output.weight"])
again = collect_imatrix(m, text, "im2.gguf", chunk=n, dataset="a tale")

# What a family counts on the way ends its own counting, not this.
save_text("nested.star", """
load("@models//llama.star", e = "embed", l = "layer", s = "logits", w = "load_weights")
layer, logits, load_weights = l, s, w
other = load_model("stories.gguf")
def embed(m, tokens, b):
    other.embed("a dog")
    collect_imatrix(other, "a dog", "inner.gguf")
    return e(m, tokens, b)
""")
collect_imatrix(load_model("stories.gguf", family="nested.star"), text, "im3.gguf", chunk=n,
                dataset="a tale")
`

// TestCollectImatrix compares what is collected with what a script computes from the weights, over two chunks.
func TestCollectImatrix(t *testing.T) {
	it, dir := ggufIn(t)
	evaluate(t, it, collectScript)
	in := func(name string) string { return filepath.Join(dir, name) }
	sameFiles(t, in("plain.gguf"), in("with.gguf"), false)
	sameFiles(t, in("im.gguf"), in("im2.gguf"), true)
	sameFiles(t, in("im.gguf"), in("im3.gguf"), true)
	if it.env.Multiplied != nil {
		t.Error("products are still counted")
	}
	before, err := os.ReadFile(in("im.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]string{
		`collect_imatrix(1, "x", "im.gguf")`:          "model: got a int, want a model",
		`collect_imatrix(m, "x", "im.gguf", chunk=1)`: "chunk: got 1 tokens, want 2 or more",
		`collect_imatrix(m, "x", "no/im.gguf")`:       "cannot save no/im.gguf",
		`load_imatrix("in.gguf")`:                     `did you mean "im.gguf"?`,
		`load_imatrix("stories.gguf")`:                "no tensor is called ….in_sum2, so it is none",
	} {
		refuses(t, it, src, want)
	}
	if after, err := os.ReadFile(in("im.gguf")); err != nil || string(after) != string(before) {
		t.Errorf("a mistake changed the target, %v", err)
	}
}

// TestCollectExperts collects for weights of several matrices. Every input of the router meets the chosen experts, so
// that the sums over these are known; the file of a model whose keys are multiplied head by head has columns for each.
func TestCollectExperts(t *testing.T) {
	it, dir := ggufIn(t)
	specs := familySpecs(t)
	for _, family := range []string{"mixtral-moe", "deepseek2-mla"} {
		writeDraft(t, filepath.Join(dir, family+".gguf"), draftOf(t, specs[family]))
	}
	evaluate(t, it, `
text = "Once upon a time there was a little girl. She had a red ball, and a dog that was very big."
name = "mixtral-moe.gguf"
m = load_model(name)
im = collect_imatrix(m, text, "im.gguf", chunk=12)
f, g = open_gguf(name), open_gguf("im.gguf")
experts, choices = f.metadata["llama.expert_count"], f.metadata["llama.expert_used_count"]
tokens = g.metadata["imatrix.chunk_count"] * 12
for layer in range(f.metadata["llama.block_count"]):
    def sums(name, layer=layer):
        name = "blk.{}.{}.weight".format(layer, name)
        e = g.tensors[name + ".counts"].shape
        if len(e) == 1:
            return g.tensor(name + ".in_sum2", "in"), g.tensor(name + ".counts", "one")
        equal(e, [experts, 1])
        return g.tensor(name + ".in_sum2", "expert in"), g.tensor(name + ".counts", "expert one")

    router, rows = sums("ffn_gate_inp")
    equal(rows.tolist(), [tokens])
    for part in ("gate", "up", "down"):
        s, counts = sums("ffn_{}_exps".format(part))
        equal(counts.sum().item(), tokens * choices)
        if part != "down":
            d = (s.sum("expert") / (router * choices) - 1.0).abs().max().item()
            if not d < 1e-5:
                fail(fmt("the experts' sums are off by {}", d))
    equal(im["blk.{}.ffn_down_exps.weight".format(layer)].shape["in"], f.tensors[
        "blk.{}.ffn_down_exps.weight".format(layer)].shape[2] * experts)

for name in (name, "deepseek2-mla.gguf"):
    m = load_model(name)
    a = collect_imatrix(m, text, "im.gguf", chunk=12)
    b = collect_imatrix(m, text, "im.dat", chunk=12)
    old = load_imatrix("im.dat")
    equal({k: v.tolist() for k, v in a.items()}, {k: v.tolist() for k, v in b.items()})
    equal({k: v.tolist() for k, v in load_imatrix("im.gguf").items()}, {k: v.tolist() for k, v in a.items()})
    for k, v in a.items():
        if (old[k] - v).abs().gt(v * 1e-6).any().item():
            fail(k + " differs in the old format")
    quantize_model(name, "plain.gguf", "q4_0")
    for im in ("im.gguf", "im.dat"):
        done = {t["name"]: t for t in quantize_model(name, "with.gguf", "q4_0", imatrix=im)}
        lacking = [k for k, t in done.items() if t["from"] != t["to"] and k not in a and k.startswith("blk.")]
        equal(lacking, [])
    equal(read_bytes("plain.gguf") == read_bytes("with.gguf"), False)
`)
}
