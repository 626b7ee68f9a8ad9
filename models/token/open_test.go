package token

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// openBytes is Open for a file of data.
func openBytes(t testing.TB, data []byte, options ...Option) (*Tokenizer, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokenizer")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return Open(path, nil, options...)
}

// learned is a small BPE.
func learned(t testing.TB, pre string) *Tokenizer {
	t.Helper()
	tk, err := Train(slices.Values([]string{mixedText(1<<16, 3, false)}),
		Training{Size: 1500, Special: []string{"<|endoftext|>", "<|pad|>"}, Pre: pre})
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

func same(t *testing.T, want, got *Tokenizer, texts []string) {
	t.Helper()
	for _, text := range texts {
		for mode := range Mode(4) {
			if diff := cmp.Diff(want.Encode(text, mode), got.Encode(text, mode)); diff != "" {
				t.Fatalf("mode %d, %.60q (-want +got):\n%.2000s", mode, text, diff)
			}
		}
	}
}

func texts() []string {
	return []string{"", "hello world", " a</s> 1234 '''s\n\n", "<|endoftext|>x<|pad|>", mixedText(1<<15, 4, false)}
}

func TestTokenizerJSON(t *testing.T) {
	for _, pre := range []string{"gpt-2", "starcoder", "dbrx", "qwen2", "gpt-4o", "tekken", "deepseek-v3", "qwen35",
		"bailingmoe"} {
		t.Run(pre, func(t *testing.T) {
			want := learned(t, pre)
			want.before, want.after = []int32{1}, []int32{0}
			var b bytes.Buffer
			if err := want.WriteHF(&b); err != nil {
				t.Fatal(err)
			}
			got, err := openBytes(t, b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			same(t, want, got, texts())
			if got.BOS() != 1 || got.EOS() != 0 || !got.isControl(1) {
				t.Errorf("got BOS %d and EOS %d, want 1 and 0", got.BOS(), got.EOS())
			}
			if diff := cmp.Diff(mergesOf(want), mergesOf(got)); diff != "" {
				t.Errorf("merges (-want +got):\n%s", diff)
			}
		})
	}
	if err := learned(t, "kimi-k2").WriteHF(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "kimi-k2") {
		t.Errorf("no expression: got %v", err)
	}
}

// TestSharedTokenizerJSON writes published vocabularies as tokenizer.json and reads them back.
func TestSharedTokenizerJSON(t *testing.T) {
	for _, name := range []string{"gpt-2", "qwen2", "mpt"} {
		want := sharedTokenizer(t, name)
		var b bytes.Buffer
		if err := want.WriteHF(&b); err != nil {
			t.Fatal(err)
		}
		got, err := openBytes(t, b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range sharedCases(t, name) {
			if diff := cmp.Diff(c.IDs, got.Encode(c.Text, Plain)); diff != "" {
				t.Errorf("%s: %.60q (-want +got):\n%s", name, c.Text, diff)
			}
		}
	}
}

// ranksOf is a byte-level vocabulary as tiktoken writes it.
func ranksOf(tk *Tokenizer) []byte {
	var b bytes.Buffer
	rank := 0
	for id := range int32(tk.Len()) {
		if !tk.isControl(id) {
			text := appendUnspelled(nil, tk.bytes(id))
			fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString(text), rank)
			rank++
		}
	}
	return b.Bytes()
}

func TestTiktoken(t *testing.T) {
	want := learned(t, "gpt-2")
	data := ranksOf(want)
	if _, err := openBytes(t, data); err == nil ||
		!strings.Contains(err.Error(), "1498 ranks are those of no known encoding; name the pre-tokenizer, as in ") {
		t.Errorf("no encoding: got %v", err)
	}
	got, err := openBytes(t, data, WithPre("gpt-2"))
	if err != nil {
		t.Fatal(err)
	}
	// Special tokens have the first two ids there, and a piece that is a token is one here.
	text := mixedText(1<<15, 4, false)
	ids := got.Encode(text, Plain)
	if got.Decode(ids) != text {
		t.Error("the text does not survive")
	}
	for _, word := range strings.Fields(text)[:500] {
		var back []int32
		for _, id := range want.Encode(word, Plain) {
			back = append(back, id-2)
		}
		if ids := got.Encode(word, Plain); len(ids) > 1 && !slices.Equal(ids, back) {
			t.Errorf("%q: got %v, want %v", word, ids, back)
		}
	}
}

// TestSharedTiktoken writes GPT-2's vocabulary as ranks; the ids are the same.
func TestSharedTiktoken(t *testing.T) {
	got, err := openBytes(t, ranksOf(sharedTokenizer(t, "gpt-2")))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range sharedCases(t, "gpt-2") {
		if diff := cmp.Diff(c.IDs, got.Encode(c.Text, Plain)); diff != "" {
			t.Errorf("%.60q (-want +got):\n%s", c.Text, diff)
		}
	}
	if id, ok := got.ID("<|endoftext|>"); !ok || id != 50256 || !got.IsEOG(id) {
		t.Errorf("<|endoftext|>: got %d, %v, want 50256", id, ok)
	}
}

// llama2Of is a SentencePiece vocabulary as llama2.c writes it.
func llama2Of(tk *Tokenizer) []byte {
	le := func(b []byte, n uint32) []byte { return append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)) }
	b := le(nil, uint32(tk.longest))
	for id := range int32(tk.Len()) {
		text := strings.ReplaceAll(tk.Piece(id), spmSpace, " ")
		if id == 1 || id == 2 {
			text = "\n" + text + "\n"
		}
		b = le(b, floatBits(tk.scores[id]))
		b = append(le(b, uint32(len(text))), text...)
	}
	return b
}

func TestLlama2(t *testing.T) {
	want := tokenizer(t, "stories260k")
	data := llama2Of(want)
	got, err := openBytes(t, data)
	if err != nil {
		t.Fatal(err)
	}
	same(t, want, got, texts())
	for n, part := range map[int]string{len(data) - 1: "has", len(data) - 9: "", 1000: "", 20: ""} {
		if _, err := openBytes(t, data[:n]); err == nil || !strings.Contains(err.Error(), "llama2.c: ") {
			t.Errorf("%d bytes: got %v, want an error with %q", n, err, part)
		}
	}
	t.Run("published", func(t *testing.T) {
		got, err := openBytes(t, sharedData(t, "stories260k/tok512.bin"))
		if err != nil {
			t.Fatal(err)
		}
		same(t, want, got, texts())
	})
}

// TestConvertedSentencePiece reads what Hugging Face's converter makes of a SentencePiece model: merges in place of
// scores.
func TestConvertedSentencePiece(t *testing.T) {
	want := tokenizer(t, "stories260k")
	vocab := map[string]int32{}
	type merge struct {
		left, right string
		score       float32
		id          int32
	}
	var list []merge
	for id := range int32(want.Len()) {
		text := want.Piece(id)
		vocab[text] = id
		for at := range text {
			left, okLeft := want.ID(text[:at])
			right, okRight := want.ID(text[at:])
			if at > 0 && okLeft && okRight && want.flags[id]&want.flags[left]&want.flags[right]&normal != 0 {
				list = append(list, merge{text[:at], text[at:], want.scores[id], id})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b merge) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return int(a.id - b.id)
	})
	merges := []string{}
	for _, m := range list {
		merges = append(merges, m.left+" "+m.right)
	}
	file := map[string]any{
		"added_tokens": []any{
			map[string]any{"id": 0, "content": "<unk>", "special": true},
			map[string]any{"id": 1, "content": "<s>", "special": true},
			map[string]any{"id": 2, "content": "</s>", "special": true},
		},
		"normalizer": map[string]any{"type": "Sequence", "normalizers": []any{
			map[string]any{"type": "Prepend", "prepend": "▁"},
			map[string]any{"type": "Replace", "pattern": map[string]any{"String": " "}, "content": "▁"},
		}},
		"post_processor": map[string]any{"type": "TemplateProcessing", "single": []any{
			map[string]any{"SpecialToken": map[string]any{"id": "<s>", "type_id": 0}},
			map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}},
		}, "special_tokens": map[string]any{"<s>": map[string]any{"id": "<s>", "ids": []int{1}}}},
		"model": map[string]any{"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "vocab": vocab,
			"merges": merges},
	}
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := openBytes(t, data)
	if err != nil {
		t.Fatal(err)
	}
	same(t, want, got, texts())
	if text := "Once upon a time"; got.Decode(got.Encode(text, AddSpecial)) != text {
		t.Errorf("got %q back", got.Decode(got.Encode(text, AddSpecial)))
	}
}

// TestWordPieceJSON writes BERT's vocabulary with "##" as Hugging Face does.
func TestWordPieceJSON(t *testing.T) {
	want, err := newTokenizer(kinds(t)["bert"].write(t))
	if err != nil {
		t.Fatal(err)
	}
	vocab := map[string]int32{}
	for id := range int32(want.Len()) {
		text := want.Piece(id)
		if rest, ok := strings.CutPrefix(text, spmSpace); ok {
			text = rest
		} else if id > 103 {
			text = "##" + text
		}
		vocab[text] = id
	}
	data, err := json.Marshal(map[string]any{
		"normalizer":    map[string]any{"type": "BertNormalizer", "lowercase": true, "strip_accents": nil},
		"pre_tokenizer": map[string]any{"type": "BertPreTokenizer"},
		"post_processor": map[string]any{"type": "BertProcessing", "cls": []any{"[CLS]", 101},
			"sep": []any{"[SEP]", 102}},
		"added_tokens": []any{map[string]any{"id": 103, "content": "[MASK]", "special": true}},
		"model":        map[string]any{"type": "WordPiece", "vocab": vocab, "unk_token": "[UNK]"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := openBytes(t, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"Hello world, unaffable ÀÉ ǅ!", "  the\tcafé 的一 ZZZ x", "xyzzyq 12345 (a)", ""} {
		for _, mode := range []Mode{Plain, AddSpecial} {
			if diff := cmp.Diff(want.Encode(text, mode), got.Encode(text, mode)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", text, diff)
			}
		}
		if a, b := want.Decode(want.Encode(text, Plain)), got.Decode(got.Encode(text, Plain)); a != b {
			t.Errorf("%q: decoded %q, want %q", text, b, a)
		}
	}
	if got.SEP() != 102 || got.BOS() != 101 {
		t.Errorf("got BOS %d and SEP %d, want 101 and 102", got.BOS(), got.SEP())
	}
	if ids := got.Encode(strings.Repeat("a", 101), Plain); !slices.Equal(ids, []int32{100}) {
		t.Errorf("a word of 101 characters: got %v, want [100]", ids)
	}
}

// TestUnigramJSON writes a Unigram vocabulary as Hugging Face does.
func TestUnigramJSON(t *testing.T) {
	k := kinds(t)["t5-chars"]
	want, err := newTokenizer(k.write(t))
	if err != nil {
		t.Fatal(err)
	}
	var vocab [][2]any
	var added []any
	for id, text := range k.Tokens {
		vocab = append(vocab, [2]any{text, k.Scores[id]})
		if k.Types[id] == 3 || k.Types[id] == 4 {
			added = append(added, map[string]any{"id": id, "content": text, "special": k.Types[id] == 3})
		}
	}
	data, err := json.Marshal(map[string]any{
		"normalizer": map[string]any{"type": "Precompiled", "precompiled_charsmap": k.Chars},
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "WhitespaceSplit"}, map[string]any{"type": "Metaspace", "add_prefix_space": true},
		}},
		"added_tokens": added,
		"model":        map[string]any{"type": "Unigram", "vocab": vocab, "unk_id": 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := openBytes(t, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range k.Cases {
		text, _ := hex.DecodeString(c.Text)
		if mode := c.Mode &^ AddSpecial; mode == Plain {
			if diff := cmp.Diff(want.Encode(string(text), mode), got.Encode(string(text), mode)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", text, diff)
			}
		}
	}
}
