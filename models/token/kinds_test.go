package token

import (
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kind is a small vocabulary of testdata/kinds.json.gz and what llama.cpp does with it.
type kind struct {
	Name    string
	Like    string // the name of the kind that has the tokens
	Strings map[string]string
	IDs     map[string]uint32
	Bools   map[string]bool
	Tokens  []string
	Scores  []float32
	Types   []int32
	Merges  []string
	Chars   []byte
	Cases   []struct {
		Text string // hexadecimal
		Mode Mode
		IDs  string
	}
}

func kinds(t testing.TB) map[string]kind {
	t.Helper()
	var list []kind
	if err := json.Unmarshal(gunzip(t, "testdata/kinds.json.gz"), &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]kind{}
	for _, k := range list {
		all[k.Name] = k
	}
	for name, k := range all {
		if like, ok := all[k.Like]; ok {
			k.Tokens, k.Scores, k.Types, k.Merges = like.Tokens, like.Scores, like.Types, like.Merges
			all[name] = k
		}
	}
	return all
}

// write writes k as a GGUF file.
func (k kind) write(t testing.TB) string {
	t.Helper()
	entries := []entry{{"general.architecture", "llama"}}
	for _, key := range sortedKeys(k.Strings) {
		entries = append(entries, entry{"tokenizer.ggml." + key, k.Strings[key]})
	}
	for _, key := range sortedKeys(k.IDs) {
		entries = append(entries, entry{"tokenizer.ggml." + key + "_token_id", k.IDs[key]})
	}
	for _, key := range sortedKeys(k.Bools) {
		entries = append(entries, entry{"tokenizer.ggml." + key, k.Bools[key]})
	}
	entries = append(entries, entry{"tokenizer.ggml.tokens", k.Tokens})
	if k.Scores != nil {
		entries = append(entries, entry{"tokenizer.ggml.scores", k.Scores})
	}
	if k.Types != nil {
		entries = append(entries, entry{"tokenizer.ggml.token_type", k.Types})
	}
	if k.Merges != nil {
		entries = append(entries, entry{"tokenizer.ggml.merges", k.Merges})
	}
	if k.Chars != nil {
		entries = append(entries, entry{"tokenizer.ggml.precompiled_charsmap", k.Chars})
	}
	path := filepath.Join(t.TempDir(), k.Name+".gguf")
	if err := writeGGUF(path, entries); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKinds compares every kind of tokenizer with llama.cpp on small vocabularies.
func TestKinds(t *testing.T) {
	all := kinds(t)
	for _, name := range sortedKeys(all) {
		t.Run(name, func(t *testing.T) {
			k := all[name]
			tk, err := newTokenizer(k.write(t))
			if err != nil {
				t.Fatal(err)
			}
			if len(k.Cases) < 100 {
				t.Errorf("got %d cases, want 100 or more", len(k.Cases))
			}
			for _, c := range k.Cases {
				text, err := hex.DecodeString(c.Text)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, id := range tk.Encode(string(text), c.Mode) {
					got = append(got, strconv.Itoa(int(id)))
				}
				if diff := cmp.Diff(c.IDs, strings.Join(got, " ")); diff != "" {
					t.Errorf("mode %d, %.80q (-want +got):\n%s", c.Mode, text, diff)
				}
			}
		})
	}
}

// TestPieces compares every pre-tokenizer's pieces with llama.cpp's.
func TestPieces(t *testing.T) {
	var golden struct {
		Texts  []string
		Pieces map[string][]string // by the first id of a line: the sizes of the pieces of each text
	}
	if err := json.Unmarshal(gunzip(t, "testdata/pieces.json.gz"), &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Texts) < 100 {
		t.Fatalf("got %d texts, want 100 or more", len(golden.Texts))
	}
	for _, p := range preTokenizers {
		id := strings.Fields(p.ids)[0]
		want, ok := golden.Pieces[id]
		if !ok {
			t.Errorf("%s: no pieces to compare with", id)
			continue
		}
		c := newCutter(p.pre.stages)
		for i, text := range golden.Texts {
			var sizes []string
			c.cut(text, func(piece string) bool {
				sizes = append(sizes, strconv.Itoa(len(piece)))
				return true
			})
			if got := strings.Join(sizes, " "); got != want[i] {
				t.Errorf("%s: %q: got %s, want %s", id, text, got, want[i])
			}
		}
	}
}

// TestWholePieces has a token that no merges lead to: some pre-tokenizers look for whole pieces first. Of two merges
// of a pair the first counts.
func TestWholePieces(t *testing.T) {
	for pre, want := range map[string][]int32{"gpt-2": {3, 2}, "llama-bpe": {4}} {
		tk, err := fromEntries(t, entry{"tokenizer.ggml.model", "gpt2"}, entry{"tokenizer.ggml.pre", pre},
			entry{"tokenizer.ggml.tokens", []string{"a", "b", "c", "ab", "abc", "bc"}},
			entry{"tokenizer.ggml.merges", []string{"a b", "b c", "a b"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := tk.Encode("abc", Plain); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", pre, got, want)
		}
	}
}

// TestPreOverride names a pre-tokenizer where the file has an unknown one.
func TestPreOverride(t *testing.T) {
	entries := []entry{{"tokenizer.ggml.model", "gpt2"}, {"tokenizer.ggml.pre", "gpt-9"},
		{"tokenizer.ggml.tokens", []string{"1", "2", "12"}}, {"tokenizer.ggml.merges", []string{"1 2"}}}
	const want = `tokenizer.ggml.pre: got the pre-tokenizer "gpt-9", want one of a.x-4.0, afmoe, bailingmoe, `
	if _, err := fromEntries(t, entries...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	path := filepath.Join(t.TempDir(), "vocab.gguf")
	if err := writeGGUF(path, entries); err != nil {
		t.Fatal(err)
	}
	for pre, want := range map[string][]int32{"gpt-2": {2}, "qwen2": {0, 1}} {
		tk, err := Open(path, nil, WithPre(pre))
		if err != nil {
			t.Fatal(err)
		}
		if got := tk.Encode("12", Plain); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", pre, got, want)
		}
	}
}

// TestUnknownCharactersCost has a character without a token of its own: it costs 10 more than the rarest token.
func TestUnknownCharactersCost(t *testing.T) {
	for score, want := range map[float32][]int32{-13: {2}, -16: {1, 0}} {
		// "ab" as one token costs score; as "a" and an unknown "b", -1 and -10 beneath the least score of -4.
		types := []int32{2, 1, 5, 1}
		tk, err := fromEntries(t, entry{"tokenizer.ggml.model", "t5"},
			entry{"tokenizer.ggml.unknown_token_id", uint32(0)},
			entry{"tokenizer.ggml.tokens", []string{"<unk>", "a", "ab", "x"}},
			entry{"tokenizer.ggml.token_type", types},
			entry{"tokenizer.ggml.scores", []float32{0, -1, score, -4}})
		if err != nil {
			t.Fatal(err)
		}
		if got := tk.Encode("ab", Plain); !slices.Equal(got, want) {
			t.Errorf("score %g: got %v, want %v", score, got, want)
		}
	}
}
