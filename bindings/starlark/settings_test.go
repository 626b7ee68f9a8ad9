package starlark

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fucina-go/fucina/models/sample"
)

// script runs src with the smallest model as m.
func script(t *testing.T, threads int, src string) (string, error) {
	t.Helper()
	var out strings.Builder
	it := newTest(Config{Stdout: &out, Threads: threads})
	defer it.Close()
	err := it.RunSource(context.Background(), "test.star", []byte("m = load_model(\""+stories+"\")\n"+src))
	return out.String(), err
}

// TestSameSeedSameText insists that a seed gives one text, for any number of workers and however often it is asked for,
// with all settings at work.
func TestSameSeedSameText(t *testing.T) {
	const src = `
def tell(**settings):
    return "".join(list(m.generate("Once upon", max_tokens=40, temperature=1.3, **settings)))

g = m.generate("Once upon", max_tokens=40, temperature=1.3, mirostat=2, seed=3)
if "".join(list(g)) != "".join(list(g)):
    fail("iterating again gives another text")
if tell(seed=3, min_p=0) == tell(seed=4, min_p=0):
    fail("two seeds give one text")
print(tell(seed=3))
print(tell(seed=3, top_k=0, top_p=1, min_p=0, typical_p=0.9, top_n_sigma=2, xtc_probability=0.5, dynatemp_range=0.5))
print(tell(seed=3, mirostat=1))
print(tell(seed=3, repeat_penalty=1.2, frequency_penalty=0.1, presence_penalty=0.1, repeat_last_n=-1))
print(tell(seed=3, samplers=["temperature", "top_k", "dry"], dry_multiplier=1, dry_sequence_breakers=[]))
`
	var first string
	for _, threads := range []int{1, 2, 5} {
		text, err := script(t, threads, src)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = text
		}
		if text != first {
			t.Errorf("with %d workers: got\n%s\nwant\n%s", threads, text, first)
		}
	}
	if lines := strings.Split(strings.TrimSpace(first), "\n"); len(lines) < 5 || lines[0] == lines[1] {
		t.Errorf("the settings make no difference:\n%s", first)
	}
}

func TestGenerateSettings(t *testing.T) {
	_, err := script(t, 2, `
def text(**settings):
    return "".join(list(m.generate("Once", max_tokens=12, **settings)))

plain = text()
if text(temperature=2, top_k=1, seed=5) != plain:
    fail("top_k=1 is not greedy")
if text(repeat_penalty=5) == plain:
    fail("a penalty changes nothing")
if "upon" not in plain:
    fail(plain)
ids = m.tokenize(" upon", special=False)
for bias in ({" upon": False}, {id: -1e30 for id in ids}):
    for r in m.generate("Once", max_tokens=12, n_probs=1, logit_bias=bias):
        if r.id in ids:
            fail("a forbidden token came")
rows = list(m.generate("Once", max_tokens=12, n_probs=3))
if "".join([r.text for r in rows]) != plain or len(rows) < 12:
    fail(rows)
for r in rows[:12]:
    if len(r.top) != 3 or r.top[0][0] != r.id or r.top[0][2] != r.logprob or r.logprob > 0:
        fail(r)
    if r.top[1][2] > r.logprob or type(r.top[1][1]) != "string":
        fail(r)
`)
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{
		`temperature=-1`:            "generate: temperature is -1; want 0 or more, and finite: temperature=0",
		`top_p=1.5`:                 "generate: top_p is 1.5; want 0 to 1: top_p=0.95",
		`top_p=float("nan")`:        "generate: top_p is NaN; want 0 to 1: top_p=0.95",
		`top_k="many"`:              `got string, want a whole number; as in: m.generate("once", top_k=40)`,
		`top_k=1 << 40`:             "generate: top_k is 1099511627776; want a number of 32 bits",
		`min_p="a"`:                 "generate: min_p: got string, want a number",
		`seed=-1`:                   "generate: seed: got int, want a whole number of 0 or more, of 64 bits",
		`samplers=["top_q"]`:        `generate: samplers is "top_q" among others; want some of: penalties dry`,
		`samplers=3`:                "generate: samplers: got int, want a list of texts",
		`max_tokens=-1`:             "generate: max_tokens is -1; want 0 or more: max_tokens=5",
		`n_probs=-1`:                "generate: n_probs is -1; want 0 or more",
		`logit_bias=[1]`:            "generate: logit_bias: got list; want a dict from ids or texts",
		`logit_bias={1: "a"}`:       `generate: logit_bias: got "a" for 1; want a dict`,
		`logit_bias={9999: 1}`:      "generate: got 9999 among the token ids",
		`stop=[""]`:                 "generate: stop: got an empty text; want a text or a list of texts",
		`dry_sequence_breakers=[1]`: "generate: dry_sequence_breakers: got int in the list; want",
		`topk=3`:                    `generate: unexpected keyword argument "topk" (did you mean top_k?)`,
		`temprature=3`:              `unexpected keyword argument "temprature" (did you mean temperature?)`,
		`max_new_tokens=3`:          `unexpected keyword argument "max_new_tokens" (did you mean max_tokens?)`,
		`temp=3`:                    `generate: unexpected keyword argument "temp" (did you mean temperature?)`,
		`repetition_penalty=3`:      `unexpected keyword argument "repetition_penalty" (did you mean repeat_penalty?)`,
		`colour=3`:                  `generate: unexpected keyword argument "colour"`,
	} {
		_, err := script(t, 1, `m.generate("Once", `+call+`)`)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", call, err, want)
		}
	}
}

func TestChatPromptWithoutTemplate(t *testing.T) {
	_, err := script(t, 1, `m.chat_prompt([{"role": "user", "content": "hi"}])`)
	if err == nil || !strings.Contains(err.Error(), "has no chat template (tokenizer.chat_template)") {
		t.Errorf("got %v", err)
	}
}

// TestChatPrompt gives the model of the tests a template, since its file has none.
func TestChatPrompt(t *testing.T) {
	it := newTest(Config{Stdout: io.Discard})
	defer it.Close()
	v, err := it.Eval(context.Background(), "t.star", "load_model(\""+stories+"\")")
	if err != nil {
		t.Fatal(err)
	}
	m := v.(*Model)
	m.template = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}" +
		"{{ tools | tojson if tools }}{{ mood }}{% if add_generation_prompt %}assistant: {% endif %}"
	it.Predeclare("m", m)
	src := `
talk = [{"role": "user", "content": "hello"}]
equal(m.chat_prompt(talk), "<s>user: hello</s>assistant: ")
equal(m.chat_prompt(talk, tools=[{"b": 1, "a": 2}], add_generation_prompt=False, mood="!"),
      '<s>user: hello</s>[{"b": 1, "a": 2}]!')
`
	if err := it.RunSource(context.Background(), "t.star", []byte(src)); err != nil {
		t.Error(err)
	}
	m.template = "\n{% oops %}"
	err = it.RunSource(context.Background(), "t.star", []byte("m.chat_prompt([])"))
	if err == nil || !strings.Contains(err.Error(), `stories260K.gguf: chat template, line 2: unknown tag "oops"`) {
		t.Errorf("got %v", err)
	}
}

// TestSettingsHelp looks for every setting in the help on generate.
func TestSettingsHelp(t *testing.T) {
	text := helpText(t, `help("generate")`)
	for _, set := range sample.List() {
		if !strings.Contains(text, "    "+set.Name+"=") {
			t.Errorf("the help on generate does not name %s:\n%s", set.Name, text)
		}
	}
}

// TestChatIsInterrupted cancels a rendering that would go on for seconds.
func TestChatIsInterrupted(t *testing.T) {
	it := New(Config{Stdout: io.Discard})
	defer it.Close()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(30*time.Millisecond, cancel)
	err := it.RunSource(ctx, "t.star", []byte(
		`chat_template("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}").render([])`))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
