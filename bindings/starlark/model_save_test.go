package starlark

import "testing"

// createScript makes small models of random weights from configurations.
const createScript = `
load("@stdlib//create.star", "create")
corpus = "the cat sat on the mat, and the dog sat on the cat. " * 20

def config(kind, **more):
    return dict(architectures=[kind], hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2, max_position_embeddings=64, eos_token_id=0) | more

seed(3)
tok = bpe_train(corpus, 270, special=["<end>"], pre="qwen2")
`

// The loop closes: a model made from a configuration learns, and the file it is saved as is the model.
func TestCreatedModelIsSaved(t *testing.T) {
	it, _ := inFolder(t)
	evaluate(t, it, createScript+`
new = create.model(config("Qwen3ForCausalLM"), tok, name="small")
m = new.trainable()
equal(new.tokenize(corpus), tok.encode(corpus))
ids = tensor([tok.encode(corpus)[:33]], "batch seq", dtype="i32")
x, y = ids.slice(seq=(0, -1)), ids.slice(seq=(1, None))
opt = optim.adamw(m.weights, lr=1e-2)
loss = lambda: m.logits(x).cross_entropy(y, "vocab")
first = loss().item()
for _ in steps(30):
    opt.zero_grad()
    l = loss()
    backward(l)
    opt.step()
equal(abs(first - math.log(1.0 * tok.vocab_size)) < 0.2, True)
equal(loss().item() < 0.5 * first, True)

m.save("small.gguf")
back = load_model("small.gguf")
equal(back.logits(x).tolist(), m.logits(x).tolist())
equal(back.logits(x).tolist() == new.logits(x).tolist(), False)
equal(back.tokenize(corpus), tok.encode(corpus))
equal("".join(list(back.generate("the cat", max_tokens=12, temperature=0.0))),
      "".join(list(m.generate("the cat", max_tokens=12, temperature=0.0))))
f = open_gguf("small.gguf")
equal(f.metadata["general.name"], "small")
equal(f.metadata["qwen3.rope.freq_base"], 10000.0)
equal(len(f), 2 + 2 * 11)
equal(f.tensors["blk.1.attn_k.weight"].shape, [16, 32])
back.save("again.gguf")
equal(read_bytes("again.gguf") == read_bytes("small.gguf"), True)

def apart(name):
    return (load_model(name).logits(x) - m.logits(x)).abs().max().item()

quantize_model("small.gguf", "half.gguf", "f16")
quantize_model("small.gguf", "eight.gguf", "q8_0")
equal(0 < apart("half.gguf") and apart("half.gguf") < 0.02, True)
equal(0 < apart("eight.gguf") and apart("eight.gguf") < 0.2, True)

# What was learnt goes into a file of 16 bits in its own types.
half = load_model("half.gguf").trainable()
half.save("half2.gguf")
equal(read_bytes("half2.gguf") == read_bytes("half.gguf"), True)
w = half.weights.layers[1].k
first = {name: (0, 1) for name in w.axes}
no_grad(lambda: w.set(-7e4, first))
equal(catch(half.save, "half2.gguf").error, "save: blk.1.attn_k.weight: 1 of 512 weights are out of the range of " +
      "f16, in which the file has them, such as -7e+04; go on with a copy in f32: " +
      'quantize_model("half.gguf", "f32.gguf", "f32")')
equal(read_bytes("half2.gguf") == read_bytes("half.gguf"), True)
no_grad(lambda: w.set(float("inf"), first))
half.save("half2.gguf")
`)
	for src, want := range map[string]string{
		`create.model(config("GPT"), tok)`:                              `the architecture is "GPT"; known are`,
		`create.model({"architectures": ["Qwen3ForCausalLM"]}, tok)`:    "config.json has no num_attention_heads",
		`create.model(config("Qwen3ForCausalLM", vocab_size=200), tok)`: "but the embedding has 200 rows",
		`new_model({"w": zeros(a=1)}, {})`:                              "general.architecture",
		`new_model({"w": 1}, {})`:                                       "new_model: tensors: got \"w\": int",
		`new_model({}, {1: 2})`:                                         "new_model: metadata: got the key 1",
		`m.save()`:                                                      "save: missing argument for path",
		`m.save("")`:                                                    "got no file name",
	} {
		refuses(t, it, src, want)
	}
}

// Every architecture whose checkpoints are converted can be made anew, with what its configuration says.
func TestCreatedArchitectures(t *testing.T) {
	it, _ := inFolder(t)
	evaluate(t, it, createScript+`
llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
for kind, more in (
    ("LlamaForCausalLM", dict(tie_word_embeddings=False, rope_scaling=llama3)),
    ("MistralForCausalLM", dict(vocab_size=310)),
    ("Qwen2ForCausalLM", dict(rope_theta=500.0)),
    ("Qwen3ForCausalLM", dict(head_dim=12, num_key_value_heads=None)),
):
    m = create.model(config(kind, **more), tok)
    scores = m.logits("the cat")
    equal((scores.size("vocab"), scores.isfinite().all().item()), (more.get("vocab_size", tok.vocab_size), True))
    equal(scores.abs().max().item() < 1.0, True)
`)
}

// A new model must fit into what a script may use.
func TestNewModelBudget(t *testing.T) {
	it := newTest(Config{MemLimit: 1 << 20})
	defer it.Close()
	refuses(t, it, `new_model({"w{}".format(i): lambda: zeros(a=1 << 16) for i in range(8)}, {})`,
		"out of tensor memory")
}

// What a family made of its tensors cannot be saved as them once it is a variable.
func TestSaveOfMadeWeights(t *testing.T) {
	runWithModel(t, "qwen3-qknorm", sameHelpers+`
save_text(folder + "/mine.star", """
load("@models//qwen3.star", base="load_weights", e="embed", l="layer", s="logits")

def load_weights(g):
    w = base(g)
    return struct(**({n: getattr(w, n) for n in dir(w)} | {"norm": w.norm * 2.0}))

embed, layer, logits = e, l, s
""")
mine = load_model(path, family=folder + "/mine.star")
same(mine.logits(ids), whole.mul(2.0))
refused("save: the family made a weight, f32[embed=64], of what is in ", mine.trainable().save, folder + "/x.gguf")
mine.save(folder + "/same.gguf")
if read_bytes(folder + "/same.gguf") != read_bytes(path):
    fail("the model was changed")
m.trainable().save(folder + "/y.gguf")
same(load_model(folder + "/y.gguf").logits(ids), whole)
`)
}
