package starlark

import (
	"io"
	"testing"

	star "go.starlark.net/starlark"
)

// The text of a prompt is the same alone and among others, for any number of workers, with one seed.
func TestGenerateList(t *testing.T) {
	it := New(Config{Stdout: io.Discard})
	defer it.Close()
	it.Predeclare("workers", star.NewBuiltin("workers", func(_ *star.Thread, _ *star.Builtin, args star.Tuple,
		_ []star.Tuple) (star.Value, error) {
		n, err := star.AsInt32(args[0])
		it.env.Control.Workers = n
		return star.None, err
	}))
	runIn(t, it, `
m = load_model("`+stories+`")
starts = ["Once", "Once upon a time there was a cat", "The", "One day, Tom and his mom went to the park and", "A"]
prompts = [starts[i % 5] for i in range(70)]
how = dict(max_tokens=12, temperature=1.0, seed=7)

def alone(prompt, **how):
    return "".join([p for p in m.generate(prompt, **how)])

def together(prompts, **how):
    texts = ["" for p in prompts]
    for i, piece in m.generate(prompts, **how):
        texts[i] += piece
    return texts

workers(1)
want = {p: alone(p, **how) for p in starts}
for n in [1, 2, 3, 8]:
    workers(n)
    got = together(prompts, **how)
    for i, p in enumerate(prompts):
        if got[i] != want[p]:
            fail(n, i, got[i], want[p])
if len({want[p]: 1 for p in starts}) < 4:
    fail(want)

# Texts end at different times; lists of ids are prompts too.
how = dict(max_tokens=60, stop=["."], temperature=0)
got = together([m.tokenize(p) for p in starts] + ["Lily"], **how)
for i, p in enumerate(starts):
    if got[i] != alone(p, **how):
        fail(got[i], alone(p, **how))

# Probabilities are those of a prompt alone.
told = {}
for i, piece in m.generate(starts, max_tokens=3, n_probs=2, temperature=0):
    told.setdefault(i, []).append(piece)
for i, p in enumerate(starts):
    if told[i] != [piece for piece in m.generate(p, max_tokens=3, n_probs=2, temperature=0)]:
        fail(told[i])

for i, piece in m.generate(starts, max_tokens=50):
    break
for bad, want in [(["a", 3], "prompt 1: "), (["a", []], "prompt 1: "), ([], "has no tokens")]:
    got = catch(m.generate, bad).error
    if got == None or want not in got:
        fail(got)
r = catch(lambda: list(m.generate(starts, max_tokens=-1)))
if r.error == None:
    fail()
`)
	if s := it.Env().Memory(); s.InUse != 0 {
		t.Errorf("%d bytes of tensors are still in use", s.InUse)
	}
}
