package token

import (
	"encoding/hex"
	"encoding/json"
	"path/filepath"
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
