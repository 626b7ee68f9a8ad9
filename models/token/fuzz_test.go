package token

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// use encodes and decodes text: ids must be tokens, plain text must not become control tokens.
func use(t *testing.T, tk *Tokenizer, text string) {
	t.Helper()
	for mode := range AddSpecial | ParseSpecial + 1 {
		for _, id := range tk.Encode(text, mode) {
			if !tk.has(id) {
				t.Errorf("mode %d: got id %d of %d tokens", mode, id, tk.Len())
			}
			if mode == Plain && tk.isControl(id) && id != tk.UNK() {
				t.Errorf("plain text became the control token %d, %q", id, tk.Piece(id))
			}
		}
	}
	ids := tk.Encode(text, Plain)
	got := tk.Decode(ids)
	d := tk.NewDecoder()
	var streamed strings.Builder
	for _, id := range ids {
		piece := d.Next(id)
		if !utf8.ValidString(piece) {
			t.Errorf("invalid UTF-8 %q", piece)
		}
		streamed.WriteString(piece)
	}
	streamed.WriteString(d.Flush())
	if streamed.String() != got || !utf8.ValidString(got) {
		t.Errorf("decoded %q, streamed %q", got, streamed.String())
	}
}

// FuzzNew reads metadata of any content; what it accepts must work.
func FuzzNew(f *testing.F) {
	f.Add([]byte("<unk>\n<s>\n</s>\n▁\na\nb\nab"), []byte{2, 3, 3, 1, 1, 1, 4}, []byte("0123456"), int32(2), "</s>ab a",
		uint8(0), []byte(""), []byte(""))
	f.Add([]byte("<0x41>\n\n"), []byte{6, 1, 5}, []byte{}, int32(-1), "A", uint8(0), []byte(""), []byte(""))
	for kind := range uint8(len(families)) {
		f.Add([]byte("a\nb\nab\nĠa\nab\\x41\n▁ab\n##b\n<s>"), []byte{}, []byte{}, int32(1), "ab ab<s> 12 É'S", kind,
			[]byte("a b\nĠ a\nĠa b\na É"), []byte{8, 0, 0, 0, 0, 4, 0, 0, 97, 1, 0, 0, 0, 65, 0})
	}
	pres := PreTokenizers()
	for i := range pres {
		f.Add([]byte("a\nb\nab\nĠa"), []byte{}, []byte{}, int32(1), "ab ab 12\n\n 한 É'S  １!", uint8(1+i*len(families)),
			[]byte("a b\nĠ a"), []byte{})
	}
	f.Fuzz(func(t *testing.T, texts, types, scores []byte, id int32, text string, kind uint8, merges, chars []byte) {
		entries := []entry{{"tokenizer.ggml.eos_token_id", id}, {"tokenizer.ggml.add_eos_token", id%2 == 0},
			{"tokenizer.ggml.unknown_token_id", int32(kind) % 3}}
		entries = append(entries, entry{"tokenizer.ggml.model", families[int(kind)%len(families)].model},
			entry{"tokenizer.ggml.pre", pres[int(kind)/len(families)%len(pres)]},
			entry{"tokenizer.ggml.remove_extra_whitespaces", id%3 == 0})
		words := func(texts []byte) (words []string) {
			for _, word := range bytes.Split(texts, []byte("\n")) {
				words = append(words, string(word))
			}
			return words
		}
		entries = append(entries, entry{"tokenizer.ggml.tokens", words(texts)})
		if len(merges) > 0 {
			entries = append(entries, entry{"tokenizer.ggml.merges", words(merges)})
		}
		if len(chars) > 0 {
			entries = append(entries, entry{"tokenizer.ggml.precompiled_charsmap", chars})
		}
		if len(types) > 0 {
			v := make([]int32, len(types))
			for i, b := range types {
				v[i] = int32(int8(b))
			}
			entries = append(entries, entry{"tokenizer.ggml.token_type", v})
		}
		if len(scores) > 0 {
			v := make([]float32, len(scores))
			for i, b := range scores {
				v[i] = float32(int8(b)) / 8
			}
			entries = append(entries, entry{"tokenizer.ggml.scores", v})
		}
		if tk, err := fromEntries(t, entries...); err == nil {
			use(t, tk, text)
		}
	})
}

// FuzzOpen reads files of any content that are not GGUF.
func FuzzOpen(f *testing.F) {
	var b bytes.Buffer
	tk, err := Train(slices.Values([]string{"low lower"}), Training{Size: 262, Special: []string{"<s>"}, Pre: "qwen2"})
	if err != nil {
		f.Fatal(err)
	}
	if err := tk.WriteHF(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), "", "hello world</s>")
	f.Add(ranksOf(tk), "gpt-2", "hello")
	f.Add(llama2Of(tokenizer(f, "stories260k"))[:200], "", "hello")
	f.Add([]byte(`{"added_tokens":[{"id":1,"content":"<s>","special":true}],"model":{"type":"WordPiece",`+
		`"unk_token":"[U]","vocab":{"[U]":0,"a":2,"##b":3}},"normalizer":{"type":"BertNormalizer"}}`), "", "ab AÉb 한")
	f.Add([]byte(`{"model":{"type":"Unigram","unk_id":0,"vocab":[["<u>",0],["▁a",-1],["b",-2.5]]},`+
		`"pre_tokenizer":{"type":"Metaspace"},"normalizer":{"type":"Precompiled","precompiled_charsmap":`+
		`"CAAAAAAEAABhAQAAAEEA"}}`), "", "ab a")
	f.Add([]byte(`{"model":{"type":"BPE","byte_fallback":true,"vocab":{"a":0,"<0x41>":1,"ab":2,"▁":3},`+
		`"merges":[["a","b"]]},"pre_tokenizer":{"type":"Metaspace","prepend_scheme":"first"}}`), "", "ab A")
	f.Fuzz(func(t *testing.T, data []byte, pre, text string) {
		if tk, err := parse(data, config{pre: pre}); err == nil {
			use(t, tk, text)
		}
	})
}

// Parts of files that are wrong.
const (
	noTokens    = `"model":{"type":"BPE","vocab":{}}}`
	oneToken    = `"model":{"type":"Unigram","unk_id":0,"vocab":[["a",0]]}}`
	llama2Start = "\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00<unk>"
)

func bpeJSON(rest string) string {
	return `{"pre_tokenizer":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},` + rest + `}}`
}

// refused is what the error says of files that are wrong.
var refused = []struct{ want, data string }{
	{
		"is no tokenizer: want a GGUF file, a tokenizer.json",
		"once upon a time",
	},
	{
		"want a GGUF file",
		"",
	},
	{
		"tokenizer.json: ",
		"{",
	},
	{
		`model.type: got "WordLevel", want BPE`,
		`{"model":{"type":"WordLevel"}}`,
	},
	{
		"model.vocab: ",
		`{"model":{"type":"BPE","vocab":[1]}}`,
	},
	{
		`"a" has the id 5000, want one below the 1`,
		`{"model":{"type":"BPE","vocab":{"a":5000}}}`,
	},
	{
		`"a" and "b" both have the id 0`,
		`{"model":{"type":"BPE","vocab":{"a":0,"b":0}}}`,
	},
	{
		`added_tokens: token 0 is "x", but "a" in the vocabulary`,
		`{"added_tokens":[{"id":0,"content":"x"}],` + bpeJSON(`"merges":[]`)[1:],
	},
	{
		`added_tokens: "x" has the id 9000, want one near the 3`,
		`{"added_tokens":[{"id":9000,"content":"x"}],` + bpeJSON(`"merges":[]`)[1:],
	},
	{
		"model.merges: want a list",
		bpeJSON(`"merges":3`),
	},
	{
		`merge 0 is "ab", want two texts`,
		bpeJSON(`"merges":["ab"]`),
	},
	{
		`merge 0 joins "" and "b"`,
		bpeJSON(`"merges":[["","b"]]`),
	},
	{
		`model.end_of_word_suffix: got "</w>", want none`,
		bpeJSON(`"end_of_word_suffix":"</w>"`),
	},
	{
		"normalizer: NFKC is not known here, want NFC",
		`{"normalizer":{"type":"NFKC"},` + bpeJSON(`"merges":[]`)[1:],
	},
	{
		`pre_tokenizer: cuts by ["x+"], which is not known here`,
		`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"x+"}},` +
			`{"type":"ByteLevel","use_regex":false}]},` + noTokens,
	},
	{
		"pre_tokenizer: Whitespace is not known here",
		`{"pre_tokenizer":{"type":"Whitespace"},` + noTokens,
	},
	{
		`post_processor: got "Odd", want TemplateProcessing`,
		`{"post_processor":{"type":"Odd"},` + bpeJSON(`"merges":[]`)[1:],
	},
	{
		"post_processor: token 7 is not in the vocabulary of 3",
		`{"post_processor":{"type":"BertProcessing","cls":["x",7],"sep":["x",0]},` + bpeJSON(`"merges":[]`)[1:],
	},
	{
		"model.unk_id: token 4 is not in the vocabulary of 1 tokens",
		`{"model":{"type":"Unigram","unk_id":4,"vocab":[["a",0]]}}`,
	},
	{
		"the vocabulary has no unknown token",
		`{"model":{"type":"Unigram","vocab":[["a",0]]}}`,
	},
	{
		"token 0 is [a x], want a text and a score",
		`{"model":{"type":"Unigram","vocab":[["a","x"]]}}`,
	},
	{
		"normalizer: got a table of 2 bytes, want a multiple of 4",
		`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"AgAAAAAA"},` + oneToken,
	},
	{
		"tiktoken: 1 ranks are those of no known encoding",
		"YQ== 0\n",
	},
	{
		"tiktoken: line 2: got the rank 0 for a second time",
		"YQ== 0\nYg== 0\n",
	},
	{
		"tiktoken: line 2: got the rank 9000, want one near 2",
		"YQ== 0\nYg== 9000\n",
	},
	{
		"tiktoken: line 2: got \"YQ==\", want base64, a space",
		"YQ== 0\nYQ==\n",
	},
	{
		`tiktoken: line 2: got the rank "-1", want a number`,
		"YQ== 0\nYg== -1\n",
	},
	{
		"llama2.c: token 1 has 99 bytes, want at most 1",
		llama2Start + "\x00\x00\x00\x00\x63\x00\x00\x00x",
	},
	{
		"llama2.c: the file ends before the tokens of bytes",
		llama2Start,
	},
}

// TestOpenRefuses has an own message for every file that is wrong.
func TestOpenRefuses(t *testing.T) {
	for _, c := range refused {
		_, err := openBytes(t, []byte(c.data))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: got %v, want one line with %q", c.data, err, c.want)
		}
	}
	if _, err := Open("testdata/none", nil); err == nil || !strings.Contains(err.Error(), "testdata/none") {
		t.Errorf("no file: got %v", err)
	}
	if _, err := openBytes(t, []byte("YQ== 0\n"), WithPre("nope")); err == nil ||
		!strings.Contains(err.Error(), `got the pre-tokenizer "nope", want one of a.x-4.0, afmoe`) {
		t.Errorf("pre: got %v", err)
	}
}
