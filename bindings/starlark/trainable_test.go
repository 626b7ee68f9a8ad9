package starlark

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	star "go.starlark.net/starlark"
)

// A trainable model computes the same bits in training and in inference, learns, and leaves the one it came from as it
// was.
func TestTrainable(t *testing.T) {
	it := newTest(Config{})
	defer it.Close()
	evaluate(t, it, `
m = load_model("`+stories+`")
t = m.trainable()
ids = m.tokenize("Once upon a time there was a boy.")
before = m.logits(ids).tolist()
equal(t.logits(ids).requires_grad, False)
equal(t.logits(ids).tolist(), before)
x = tensor([ids, ids[::-1]], "batch seq")
y = t.logits(x)
equal((y.axes, y.requires_grad, m.logits(x).requires_grad), (("batch", "seq", "vocab"), True, False))
equal(y.at(batch=0).tolist(), before)
equal(y.at(batch=1).tolist(), m.logits(ids[::-1]).tolist())
equal(m.logits(tensor(ids, "seq")).tolist(), before)

params = optim.adamw(t.weights, lr=1e-3)
equal(len(params.params), 48)
equal([k for k, v in params.params.items() if "config" in k], [])
loss = lambda: t.logits(x.slice(seq=(0, -1))).cross_entropy(x.slice(seq=(1, None)), "vocab")
losses = []
for _ in steps(6):
    params.zero_grad()
    value = loss()
    backward(value)
    equal([k for k, v in params.params.items() if v.grad == None], [])
    params.step()
    losses.append(value.item())
equal(losses == sorted(losses)[::-1] and losses[-1] < 0.9 * losses[0], True)
equal(m.logits(ids).tolist(), before)
equal(t.logits(ids).tolist() == before, False)
equal("".join(list(t.generate("Once", max_tokens=3))) == "", False)
`)
	for src, want := range map[string]string{
		`t.logits(tensor([[1.0]], "batch seq"))`:          "want token ids with an axis seq",
		`t.logits(tensor([[1]], "batch row"))`:            "want token ids with an axis seq",
		`t.logits(tensor([[512]], "batch seq"))`:          "got 512 among the token ids; ids are 0 … 511",
		`t.logits(zeros(batch=1, seq=0, dtype="i32"))`:    "want token ids",
		`t.logits(zeros(batch=1, seq=2, dtype="i32"), 1)`: "logits: got 2 arguments, want at most 1",
	} {
		if _, err := it.Eval(background, "test", src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", src, err, want)
		}
	}
	it.Predeclare("file", star.String(filepath.Join(t.TempDir(), "q.gguf")))
	evaluate(t, it, `
quantize_model("`+stories+`", file, "q8_0")
message = catch(load_model(file).trainable).error
equal(message.startswith("trainable: no gradient flows into a weight that is q8_0["), True)
`)
	v, err := it.Eval(background, "test", "t")
	if err != nil || !slices.Contains(v.(*Model).AttrNames(), "trainable") {
		t.Errorf("%v, %v", v, err)
	}
}

// Every family without a state of its own can be trained: its scores are those of inference, a weight with two uses is
// one variable, and what is no weight, such as the factors of positions, is none.
func TestTrainableFamilies(t *testing.T) {
	tied, all := 0, 0
	for name, spec := range familySpecs(t) {
		file := writeDraft(t, filepath.Join(t.TempDir(), name+".gguf"), draftOf(t, spec))
		it := newTest(Config{})
		v, err := it.Eval(background, "test", `m = load_model("`+filepath.ToSlash(file)+`")
t = m.trainable()
ids = list(range(3, 40))
scores = t.logits(tensor(ids, "seq"))
equal(scores.tolist(), m.logits(ids).tolist())
backward(t.logits(tensor([ids], "batch seq")).sum())
result = [p for p in optim.sgd(t.weights).params if t.weights.table.grad == None]
equal(result, [])
tied = "table" not in optim.sgd(t.weights).params  # it is called output, which is met first`)
		stateful := strings.HasPrefix(name, "deepseek2") || strings.HasPrefix(name, "qwen35")
		switch {
		case stateful && (err == nil || !strings.Contains(err.Error(), "keeps no state, which this family needs")):
			t.Errorf("%s: got %v", name, err)
		case stateful:
		case err != nil:
			t.Errorf("%s: %v, %v", name, v, err)
		case it.Globals()["tied"] == star.True:
			tied++
			all++
		default:
			all++
		}
		it.Close()
	}
	if tied == 0 || tied == all {
		t.Errorf("%d of %d models are tied", tied, all)
	}
}
