package starlark

import (
	"context"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	star "go.starlark.net/starlark"
)

// template is a chat template for the model of the tests, which has none.
const template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}{{ tools | tojson if tools }}" +
	"{{ mood }}{% if add_generation_prompt %}<|assistant|>{% endif %}"

// talking is an interpreter with that model as m.
func talking(t *testing.T, cfg Config) *Interp {
	t.Helper()
	it := newTest(cfg)
	t.Cleanup(it.Close)
	v, err := it.Eval(context.Background(), "t.star", "load_model(\""+stories+"\")")
	if err != nil {
		t.Fatal(err)
	}
	v.(*Model).template = template
	it.Predeclare("m", v)
	return it
}

// TestCallback gives pieces to a function, which may end the text.
func TestCallback(t *testing.T) {
	it := talking(t, Config{Stdout: io.Discard})
	if err := it.RunSource(context.Background(), "t.star", []byte(`
plain = list(m.generate("Once", max_tokens=20))
heard = []
equal(m.generate("Once", max_tokens=20, callback=heard.append), "".join(plain))
equal(heard, plain)
few = []
def three(piece):
    few.append(piece)
    return len(few) < 3

equal(m.generate("Once", max_tokens=20, callback=three), "".join(plain[:3]))
equal(few, plain[:3])
told = []
equal(m.generate("Once", max_tokens=4, n_probs=1, callback=told.append), "".join(plain[:4]))
equal([x.text for x in told], plain[:4])
r = catch(m.generate, "Once", callback=lambda p: fail("enough"))
equal(r.error, "fail: enough")
r = catch(m.generate, "Once", callback=7)
equal(r.error, "generate: callback: got int, want a function; as in: callback=lambda piece: write(piece)")
`)); err != nil {
		t.Error(err)
	}
	if s := it.Env().Memory(); s.InUse != 0 {
		t.Errorf("%d bytes of tensors are still in use", s.InUse)
	}
}

// TestStopTexts ends a text before a stop text, which may begin and end within pieces.
func TestStopTexts(t *testing.T) {
	it := talking(t, Config{Stdout: io.Discard})
	if err := it.RunSource(context.Background(), "t.star", []byte(`
plain = "".join(list(m.generate("Once", max_tokens=60)))
def until(stop, **settings):
    g = m.generate("Once", max_tokens=60, stop=stop, **settings)
    return "".join(list(g)), g.stats.end

for n in range(1, 12):
    for at in range(5, len(plain) - n, 7):
        stop = plain[at:at + n]
        equal(until(stop), (plain[:plain.index(stop)], "stop"))
equal(until(["never", "girl", "little"]), (plain[:plain.index("little")], "stop"))
equal(until("no such text")[0], plain)
equal(until(plain[-3:] + "more"), (plain, "length"))
equal("".join([r.text for r in m.generate("Once", max_tokens=60, stop="girl", n_probs=1)]), plain[:plain.index("girl")])
g = m.generate("Once", max_tokens=5)
for piece in g:
    break
equal(g.stats.end, "left")
equal((g.stats.prompt, g.stats.reused, g.stats.tokens), (2, 0, 1))
equal(list(m.generate("Once", max_tokens=0)), [])
g = m.generate("Once", max_tokens=5, logit_bias={2: 1000})
equal((list(g), g.stats.end, g.stats.tokens), ([], "end", 1))
`)); err != nil {
		t.Error(err)
	}
}

// TestContext refuses what does not fit, with the numbers.
func TestContext(t *testing.T) {
	it := talking(t, Config{Stdout: io.Discard})
	if err := it.RunSource(context.Background(), "t.star", []byte(`
equal(m.context, 2048)
long = [403] * 2046
def refused(want, fn, *args, **kwargs):
    got = catch(fn, *args, **kwargs).error
    equal(got, want.replace("MODEL", "../../examples/data/stories260K.gguf"))

refused("generate: a prompt of 2046 tokens and 3 asked for are 2049, but the context of MODEL is 2048; " +
        "ask for fewer: max_tokens=2", m.generate, long, max_tokens=3)
refused("generate: a prompt of 3000 tokens and 256 asked for are 3256, but the context of MODEL is 2048; " +
        "give it a shorter text", m.generate, [403] * 3000)
refused("logits: 2049 tokens, but the context of MODEL is 2048; give it a shorter text", m.logits, [403] * 2049)
refused("embed: 2049 tokens, but the context of MODEL is 2048; give it a shorter text", m.embed, [403] * 2049)
refused("perplexity: 2049 tokens, but the context of MODEL is 2048; give it a shorter text", m.perplexity, [403] * 2049)
refused("chat: a prompt of 3021 tokens and 5 asked for are 3026, but the context of MODEL is 2048; " +
        "give it a shorter text", m.chat, [{"role": "user", "content": "z" * 3000}], max_tokens=5)
k = m.cache()
m.forward(k, long)
refused("forward: 2046 tokens were evaluated and 3 more are 2049, but the context of MODEL is 2048; " +
        "forget some: k.truncate(0)", m.forward, k, [1, 2, 3])
refused("prompt 1: generate: a prompt of 3000 tokens and 1 asked for are 3001, but the context of MODEL is 2048; " +
        "give it a shorter text", m.generate, ["a", [403] * 3000], max_tokens=1)

# Where nobody asks for a number, the context is filled, and stats say so.
g = m.generate(long, temperature=3, seed=1, logit_bias={1: False, 2: False})
list(g)
equal((g.stats.end, g.stats.tokens), ("context", 2))
g = m.generate(long, max_tokens=2, logit_bias={1: False, 2: False})
list(g)
equal((g.stats.end, g.stats.tokens), ("length", 2))
`)); err != nil {
		t.Error(err)
	}
}

// TestInvalidText refuses prompts that are not UTF-8.
func TestInvalidText(t *testing.T) {
	it := talking(t, Config{Stdout: io.Discard})
	if err := it.RunSource(context.Background(), "t.star", []byte(`
half = "né"[:2]
for fn in (m.generate, m.logits, m.embed, m.perplexity):
    equal(catch(fn, half).error.partition(": ")[2],
          "the prompt is no UTF-8: byte 0xc3 at 1; a text that is cut should be cut between characters: s.codepoints()")
for fn in (m.chat, m.chat_prompt):
    equal(catch(fn, [{"role": "user", "content": half}]).error.partition(": ")[2].partition(";")[0],
          'messages[0]["content"] is no UTF-8: byte 0xc3 at 1')
`)); err != nil {
		t.Error(err)
	}
}

// TestChat answers, with the settings of generate and the variables of the template.
func TestChat(t *testing.T) {
	it := talking(t, Config{Stdout: io.Discard})
	if err := it.RunSource(context.Background(), "t.star", []byte(`
talk = [{"role": "user", "content": "hello"}]
prompt = m.chat_prompt(talk)
equal(prompt, "<|user|>hello\n<|assistant|>")
want = "".join(list(m.generate(prompt, max_tokens=20)))
equal("".join(list(m.chat(talk, max_tokens=20))), want)
equal(m.chat(talk, max_tokens=20, callback=lambda p: None), want)
equal("".join(list(m.chat(messages=talk, max_tokens=20, stop=want[5:9]))), want[:want.index(want[5:9])])

# Tools and others are the template's.
tools = [{"name": "add"}]
equal(m.chat_prompt(talk, tools, mood="!"), '<|user|>hello\n[{"name": "add"}]!<|assistant|>')
equal("".join(list(m.chat(talk, tools, mood="!", max_tokens=9))),
      "".join(list(m.generate(m.chat_prompt(talk, tools=tools, mood="!"), max_tokens=9))))
own = "{{ messages[0].content }}{{ eos_token }}"
equal(m.chat_prompt(talk, chat_template=own), "hello</s>")
equal(m.chat_prompt(talk, chat_template=chat_template(own, eos_token="!")), "hello!")
equal(list(m.chat(talk, chat_template="Once", max_tokens=9)), list(m.generate("Once", max_tokens=9)))
equal(list(m.chat(talk, chat_template="<s>Once", max_tokens=9)), list(m.generate("Once", max_tokens=9)))

def refused(want, *args, **kwargs):
    got = catch(m.chat, *args, **kwargs).error
    if got == None or want not in got:
        fail(got)

refused('chat: got no messages; as in: [{"role": "user", "content": "hello"}]')
refused("chat: got temprature, which neither it nor the template reads; did you mean temperature?", talk, temprature=1)
refused("chat: temperature is -1", talk, temperature=-1)
refused("chat: stop: got an empty text", talk, stop="")
refused("chat: the template makes an empty prompt", talk, chat_template="{{ nothing }}")
refused('chat_template: chat template, line 1: unknown tag "oops"', talk, chat_template="{% oops %}")
refused("chat_template: got int, want a text", talk, chat_template=3)
refused("cache: got int, want a cache; as in: cache=m.cache()", talk, cache=3)
refused("the cache is another model's", talk, cache=load_model("`+stories+`").cache())
`)); err != nil {
		t.Error(err)
	}
}

// TestCache evaluates only what is new of a prompt, and the text is what it is without.
func TestCache(t *testing.T) {
	it := talking(t, Config{Stdout: io.Discard})
	if err := it.RunSource(context.Background(), "t.star", []byte(`
k = m.cache()
talk = []
seen = 0
for turn in ("hello", "and then?", "why?"):
    talk.append({"role": "user", "content": turn})
    g = m.chat(talk, max_tokens=12, cache=k, temperature=0.7, seed=3)
    answer = "".join(list(g))
    equal(answer, "".join(list(m.chat(talk, max_tokens=12, temperature=0.7, seed=3))))
    equal((g.stats.reused >= seen - 1, g.stats.prompt > g.stats.reused), (True, True))
    equal(len(k.tokens), g.stats.prompt + g.stats.tokens - 1)
    seen = len(m.tokenizer.encode(m.chat_prompt(talk), special=True))
    talk.append({"role": "assistant", "content": answer})

# Asked again, only the last token is evaluated; a prompt that parts earlier goes back.
ids = m.tokenize("Once upon a time")
a = list(m.generate(ids, max_tokens=5, cache=k))
g = m.generate(ids, max_tokens=5, cache=k)
equal(list(g), a)
equal(g.stats.reused, len(ids) - 1)
g = m.generate(m.tokenize("Once there"), max_tokens=5, cache=k)
equal(list(g), list(m.generate("Once there", max_tokens=5)))
equal((g.stats.reused, k.tokens[:2]), (2, ids[:2]))

# By hand.
k.free()
m.forward(k, ids)
g = m.generate("Once upon a time, there", max_tokens=3, cache=k)
equal((list(g), g.stats.reused), (list(m.generate("Once upon a time, there", max_tokens=3)), len(ids)))
equal(catch(m.generate, ["a", "b"], cache=k).error,
      "generate: got 2 prompts, but a cache and a callback are for one; as in: for place, piece in m.generate(prompts)")
k.free()

# Two at once in one cache would spoil each other.
def both():
    for x in m.generate("Once", max_tokens=9, cache=k):
        for y in m.generate("Lily", max_tokens=2, cache=k):
            pass
equal(catch(both).error,
      "generate: its cache was used for something else in between; give each its own: cache=m.cache()")
k.free()
`)); err != nil {
		t.Error(err)
	}
	it.Globals().Freeze()
	if s := it.Env().Memory(); s.InUse > 1<<16 {
		t.Errorf("%d bytes of tensors are still in use", s.InUse)
	}
}

// referenceTexts is the five texts whose log-probabilities llama.cpp gave (see models/testdata/SOURCE.md).
func referenceTexts(t *testing.T) *star.List {
	t.Helper()
	var ref struct {
		Texts []struct {
			Text string `json:"text"`
		}
	}
	readJSON(t, "../../models/testdata/stories260K.nll.json", &ref)
	var texts []star.Value
	for _, text := range ref.Texts {
		texts = append(texts, star.String(text.Text))
	}
	return star.NewList(texts)
}

// TestPerplexity is that of the reference's texts, as llama.cpp has it in six formats.
func TestPerplexity(t *testing.T) {
	it := talking(t, Config{Stdout: io.Discard, Stderr: io.Discard})
	it.Predeclare("texts", referenceTexts(t))
	dir := t.TempDir()
	it.Predeclare("folder", star.String(dir))
	for recipe, want := range map[string]float64{"f32": 3.5482, "f16": 3.5484, "q8_0": 3.5532, "q4_k_m": 3.6066,
		"q5_1": 3.6069, "q4_0": 3.8336} {
		it.Predeclare("recipe", star.String(recipe))
		v, err := it.Eval(context.Background(), "t.star", `load_model(quantize_model("`+stories+
			`", folder + "/" + recipe, recipe) and folder + "/" + recipe).perplexity(texts)`)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := star.AsFloat(v)
		t.Logf("%s: %.4f, llama.cpp %.4f", recipe, got, want)
		if math.Abs(got/want-1) > 1e-3 {
			t.Errorf("%s: perplexity %.5f, want %.4f", recipe, got, want)
		}
	}
}

// TestPerplexityChunks is llama-perplexity's way, by hand and as that has it (see testdata/SOURCE.md).
func TestPerplexityChunks(t *testing.T) {
	it := talking(t, Config{Stdout: io.Discard, Stderr: io.Discard})
	it.Predeclare("texts", referenceTexts(t))
	if err := it.RunSource(context.Background(), "t.star", []byte(`
text = "".join(["Once upon a time there was a girl. "] * 9)
ids = m.tokenize(text)
def surprises(ids, first):
    p = m.logits(ids[:-1]).cast("f64").log_softmax("vocab").tolist()
    return [-p[i][id] for i, id in enumerate(ids[1:]) if i >= first]

def near(got, want):
    if abs(got - want) > 1e-6 * want:
        fail(got, want)

def e(xs):
    return tensor(sum(xs) / len(xs), dtype="f64").exp().item()

whole = surprises(ids, 0)
near(m.perplexity(text), e(whole))
near(m.perplexity(ids), e(whole))
d = m.perplexity(text, details=True)
equal((d.tokens, d.chunks), (len(ids) - 1, 1))
spread = tensor(whole, "a", dtype="f64").std("a").item()
near(d.error, d.perplexity * spread / tensor(float(len(whole)), dtype="f64").sqrt().item())

chunks = [ids[at:at + 20] for at in range(0, len(ids) - 19, 20)]
halves = sum([surprises([1] + c[1:], 10) for c in chunks], [])
d = m.perplexity(text, chunk=20, details=True)
equal((d.tokens, d.chunks), (9 * len(chunks), len(chunks)))
near(d.perplexity, e(halves))
near(m.perplexity([text, text], chunk=20), e(halves))

# What llama-perplexity gives for the first five texts and the beginning of another.
text = "\n".join(texts + [read_text("../../examples/data/shakespeare.txt")[:8000]])
for chunk, want, spread in ((128, 31.7658, 1.74943), (512, 35.2452, 1.94734)):
    d = m.perplexity(text, chunk=chunk, details=True)
    if abs(d.perplexity - want) > 1e-4 or abs(d.error - spread) > 1e-5:
        fail(d)

def refused(want, *args, **kwargs):
    equal(catch(m.perplexity, *args, **kwargs).error, "perplexity: " + want)

refused("chunk: got 2, want a number of tokens from 3 on", text, chunk=2)
refused("the text has 3 tokens, but a chunk 20; give it more, or a smaller chunk", "Once upon", chunk=20)
refused("3000 tokens, but the context of `+stories+` is 2048; give it a shorter text", text, chunk=3000)
refused("the text has no token that another comes before; give it more", [7])
refused('prompt: got int, want a text or a list of token ids; as in: m.perplexity("once")', 7)
`)); err != nil {
		t.Error(err)
	}
}

// TestCacheOfState is TestCache for a model with layers that have a state, which is forgotten as a whole.
func TestCacheOfState(t *testing.T) {
	it := newTest(Config{Stdout: io.Discard})
	defer it.Close()
	path := writeDraft(t, filepath.Join(t.TempDir(), "state.gguf"), draftOf(t, familySpecs(t)["qwen35-deltanet"]))
	it.Predeclare("path", star.String(path))
	if err := it.RunSource(context.Background(), "t.star", []byte(`
m = load_model(path)
k = m.cache()
bias = {1: False, 2: False}
def tell(prompt, **more):
    g = m.generate(prompt, max_tokens=6, temperature=1, seed=2, logit_bias=bias, **more)
    return "".join(list(g)), g.stats.reused

begin = m.tokenize("Once upon")
equal(tell(begin, cache=k), tell(begin))
longer = k.tokens + m.tokenize(" and", special=False)
known = len(k)
equal(tell(longer, cache=k), (tell(longer)[0], known))
equal(tell(begin, cache=k)[0], tell(begin)[0])
`)); err != nil {
		t.Error(err)
	}
}

// TestCacheOfAnother refuses a cache that another interpreter's script made.
func TestCacheOfAnother(t *testing.T) {
	one, two := talking(t, Config{}), newTest(Config{})
	defer two.Close()
	k, err := one.Eval(context.Background(), "t.star", "m.cache()")
	if err != nil {
		t.Fatal(err)
	}
	two.Predeclare("k", k)
	two.Predeclare("m", k.(*modelCache).m)
	if err := two.RunSource(context.Background(), "t.star", []byte(`
equal(catch(m.generate, "a", cache=k).error,
      "generate: the cache belongs to another interpreter; make one here: m.cache()")
`)); err != nil {
		t.Error(err)
	}
}

// TestEmbed pools what the output is multiplied with.
func TestEmbed(t *testing.T) {
	it := talking(t, Config{Stdout: io.Discard})
	it.Predeclare("model", star.String(stories))
	it.Predeclare("tied", star.String("../../models/testdata/llama3-ropefreqs-tied.gguf"))
	if err := it.RunSource(context.Background(), "t.star", []byte(`
text = "Once upon a time"
all = m.embed(text, pooling="none", normalize=False)
equal((all.axes, all.size("row")), (("row", "embed"), len(m.tokenize(text))))

# It is what the scores are made of.
equal(all.dot(m.weights.output, "embed").tolist(), m.logits(text).tolist())
equal(m.embed(text, pooling="last", normalize=False).tolist(), all.at(row=-1).tolist())
equal(m.embed(text, pooling="first", normalize=False).tolist(), all.at(row=0).tolist())

def near(x, y):
    if (x - y).abs().max().item() > 1e-6:
        fail(x, y)

near(m.embed(text, normalize=False), all.mean("row"))
both = m.embed([text, "A dog"])
equal(both.shape, {"batch": 2, "embed": all.size("embed")})
equal(both.at(batch=0).tolist(), m.embed(text).tolist())
equal(both.at(batch=1).tolist(), m.embed("A dog").tolist())
equal("whose vectors of every token make no tensor" in catch(m.embed, [text, text], pooling="none").error, True)

# llama.cpp's first six, with its poolings of the mean and of the last token.
for path, how, first in (
    (model, "mean", [-0.07497936, -1.070609, -0.4364535, -1.4463, 1.197744, -4.473288]),
    (model, "last", [1.394251, -1.707675, 0.1293717, -0.7384496, 1.899355, -6.561469]),
    (tied, "mean", [0.4478202, -0.3892292, -0.2534787, 0.04579045, -0.4303479, 0.6118879]),
    (tied, "last", [0.8659895, 0.1712808, 0.4689353, -0.3445992, -1.569651, -0.9896865]),
):
    got = load_model(path).embed("Once upon a time there was", pooling=how, normalize=False)
    if (got.slice(embed=(0, 6)) - tensor(first, "embed")).abs().max().item() > 1e-5:
        fail(path, how, got)
near(m.embed(text), all.mean("row") / all.mean("row").norm("embed"))
near(m.embed(text, pooling="none").norm("embed"), ones(row=all.size("row")))
near(m.embed(m.tokenize(text), pooling="mean"), m.embed(text))
equal(catch(m.embed, text, pooling="max").error,
      'embed: pooling: got "max", want one of none, mean, first, last; as in: m.embed("once", pooling="mean")')
equal(catch(m.embed, "").error != None or len(m.tokenize("")) > 0, True)
`)); err != nil {
		t.Error(err)
	}
}

// TestModelHelp looks for what the new methods say of themselves.
func TestModelHelp(t *testing.T) {
	it := talking(t, Config{})
	var out strings.Builder
	it.cfg.Stdout = &out
	if err := it.RunSource(context.Background(), "t.star", []byte(`
for fn in (m.chat, m.cache, m.embed, m.perplexity):
    help(fn)
`)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"m.chat(messages,", "temperature=0: ", "m.cache()", "m.embed(text",
		"m.perplexity(text"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("help does not show %s:\n%s", want, out.String())
		}
	}
}
