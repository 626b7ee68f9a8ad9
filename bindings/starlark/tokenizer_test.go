package starlark

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTokenizer(t *testing.T) {
	it := New(Config{Stdout: io.Discard, Dir: t.TempDir()})
	defer it.Close()
	path, err := filepath.Abs(stories)
	if err != nil {
		t.Fatal(err)
	}
	src := `
def same(got, want):
    if got != want:
        fail(fmt("got {}, want {}", got, want))

t = tokenizer("` + filepath.ToSlash(path) + `")
same(t.encode("Once upon a time"), [403, 407, 261, 378])
same(t.encode("Hi</s>", special=True, bos=True), [1, 320, 417, 2])
same(2 in t.encode("Hi</s>", bos=True), False)
same(t.decode([1, 403, 407, 2]), "Once upon")
x = t.encode("Once upon", axis="seq")
same(str(x.dtype) + str(x.axes) + str(x.tolist()), 'i32("seq",)[403, 407]')
same(t.decode(x), "Once upon")
same((t.vocab_size, t.bos, t.eos, t.unk, t.eot, t.sep, t.pad), (512, 1, 2, 0, None, None, None))
same((t.token(403), t.id("▁Once"), t.id("no such")), ("▁Once", 403, None))
same(t.merges(), [])
m = load_model("` + filepath.ToSlash(path) + `")
same(m.tokenizer.encode("Once", bos=True), m.tokenize("Once"))
same(m.detokenize(x), "Once upon")

texts = ["low lower lowest", "newer wider newest"] * 3
b = bpe_train(texts, 270, special=["<|endoftext|>"], min_count=2)
same(b.vocab_size, 270)
same(b.merges()[0], ("w", "e"))
same(b.decode(b.encode("lower\n😀")), "lower\n😀")
same(b.encode("<|endoftext|>", special=True), [0])
same(b.eos, 0)
b.save("tokenizer.json")
c = tokenizer("tokenizer.json")
same(c.merges(), b.merges())
same([c.encode(s, special=True) for s in texts], [b.encode(s, special=True) for s in texts])
same(bpe_train("aaaa", 257).merges(), [("a", "a")])
`
	if err := it.RunSource(context.Background(), "test.star", []byte(src)); err != nil {
		t.Fatal(err)
	}
}

func TestTokenizerErrors(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{"ranks.tiktoken": "YQ== 0\nYg== 1\nYWI= 2\n", "notes.txt": "hello"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	it := New(Config{Stdout: io.Discard, Dir: dir})
	defer it.Close()
	const setup = `t = tokenizer("ranks.tiktoken", pre="gpt-2")`
	if _, err := it.Eval(context.Background(), "setup", setup); err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]string{
		`tokenizer("rank.tiktoken")`:          `tokenizer: cannot open `,
		`tokenizer("ranks.tiktoken")`:         `3 ranks are those of no known encoding; name the pre-tokenizer`,
		`tokenizer("ranks.tiktoken", "none")`: `got the pre-tokenizer "none", want one of a.x-4.0, afmoe`,
		`tokenizer("ranks.tiktoken", pre=1)`:  `tokenizer: pre: got int, want the name of a pre-tokenizer`,
		`tokenizer("notes.txt")`:              `is no tokenizer: want a GGUF file, a tokenizer.json`,
		`t.decode([3])`: `decode: got 3 among the token ids; ids are 0 … 2, as in: ` +
			`t.decode([1, 2])`,
		`t.decode(3)`:                       `decode: got int, want a list or a tensor of token ids`,
		`t.decode(ones(a=2))`:               `decode: got f32[a=2], want integers along one axis`,
		`t.token(-1)`:                       `token: got -1 among the token ids`,
		`t.encode(1)`:                       `encode: for parameter text: got int, want string`,
		`t.encode("ab", axis="a b")`:        `encode: axis: got "a b", want one name`,
		`bpe_train("x", 100)`:               `got a vocabulary of 100 tokens, want 256 to`,
		`bpe_train([1], 300)`:               `bpe_train: texts: got int, want a text or a list of texts`,
		`bpe_train(1, 300)`:                 `bpe_train: texts: got int, want a text or a list of texts`,
		`bpe_train("x", 300, special=[1])`:  `bpe_train: special: got 1, want texts`,
		`bpe_train("x", 300, pre="gemma4")`: `the pre-tokenizer gemma4 is not one of bytes`,
		`bpe_train("x", 300, pre="kimi-k2").save("a.json")`: `no expression for tokenizer.json is known for the ` +
			`pre-tokenizer kimi-k2`,
		`load_model("ranks.tiktoken", pre=1)`: `load_model: pre: got int, want the name of a pre-tokenizer`,
	} {
		_, err := it.Eval(context.Background(), "<block>", src)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", src, err, want)
		}
	}
}
