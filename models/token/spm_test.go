package token

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type textCase struct {
	Text string
	IDs  []int32
}

// check encodes every case's text, and decodes the ids back.
func check(t *testing.T, tk *Tokenizer, cases []textCase, mode Mode) {
	t.Helper()
	for _, c := range cases {
		if diff := cmp.Diff(c.IDs, tk.Encode(c.Text, mode)); diff != "" {
			t.Errorf("encode %.60q (-want +got):\n%s", c.Text, diff)
		}
		if got := tk.Decode(c.IDs); got != c.Text {
			t.Errorf("decode: got %.60q, want %.60q", got, c.Text)
		}
	}
}

func TestLlamaAndPhi3Texts(t *testing.T) {
	var cases []textCase
	if err := json.Unmarshal(gunzip(t, "testdata/llama-spm.json.gz"), &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 117 {
		t.Fatalf("got %d cases, want 117", len(cases))
	}
	for _, name := range []string{"llama-spm", "phi-3"} {
		t.Run(name, func(t *testing.T) { check(t, tokenizer(t, name), cases, Plain) })
	}
}

func TestStories260KTexts(t *testing.T) {
	data, err := os.ReadFile("testdata/stories260k.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []textCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 5 {
		t.Fatalf("got %d cases, want 5", len(cases))
	}
	check(t, tokenizer(t, "stories260k"), cases, AddSpecial)
}

// TestLlamaCpp has special tokens, user-defined ones, white space and invalid UTF-8.
func TestLlamaCpp(t *testing.T) {
	data, err := os.ReadFile("testdata/llama-cpp.json")
	if err != nil {
		t.Fatal(err)
	}
	var files []struct {
		Vocab  string
		EOG    []int32
		Encode []struct {
			Text  string
			Add   bool `json:"add_special"`
			Parse bool `json:"parse_special"`
			IDs   []int32
		}
		Decode []textCase
	}
	if err := json.Unmarshal(data, &files); err != nil {
		t.Fatal(err)
	}
	unhex := func(s string) string {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, f := range files {
		t.Run(f.Vocab, func(t *testing.T) {
			tk := tokenizer(t, f.Vocab)
			var ends []int32
			for id := range int32(tk.Len()) {
				if tk.IsEOG(id) {
					ends = append(ends, id)
				}
			}
			if diff := cmp.Diff(f.EOG, ends); diff != "" {
				t.Errorf("end of generation (-want +got):\n%s", diff)
			}
			for _, c := range f.Encode {
				mode := Plain
				if c.Add {
					mode |= AddSpecial
				}
				if c.Parse {
					mode |= ParseSpecial
				}
				if diff := cmp.Diff(c.IDs, tk.Encode(unhex(c.Text), mode)); diff != "" {
					t.Errorf("encode %q, mode %d (-want +got):\n%s", unhex(c.Text), mode, diff)
				}
			}
			for _, c := range f.Decode {
				// llama.cpp returns bytes as they are
				if want, got := string([]rune(unhex(c.Text))), tk.Decode(c.IDs); got != want {
					t.Errorf("decode %v: got %q, want %q", c.IDs, got, want)
				}
			}
		})
	}
}

// joinSlowly is the definition of SentencePiece's BPE, without runs and heaps.
func joinSlowly(tk *Tokenizer, text string) (pieces []string) {
	for _, r := range strings.ReplaceAll(text, " ", spmSpace) {
		pieces = append(pieces, string(r))
	}
	for {
		best, score := -1, float32(0)
		for i := 1; i < len(pieces); i++ {
			id, ok := tk.ID(pieces[i-1] + pieces[i])
			if ok && tk.flags[id] == normal && (best < 0 || tk.scores[id] > score) {
				best, score = i, tk.scores[id]
			}
		}
		if best < 0 {
			return pieces
		}
		pieces = slices.Replace(pieces, best-1, best+1, pieces[best-1]+pieces[best])
	}
}

func TestJoiningAgreesWithDefinition(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfNDistinct(rapid.StringOfN(rapid.RuneFrom([]rune("abé▁")), 2, 5, -1), 0, 25,
			rapid.ID[string]).Draw(rt, "tokens")
		entries := tokens(append([]string{"a", "b", "é"}, texts...)...)
		scores := entries[1].value.([]float32)
		for i := range scores {
			scores[i] = float32(rapid.IntRange(-4, 4).Draw(rt, "score")) // with ties
		}
		tk, err := fromEntries(t, entries...)
		if err != nil {
			rt.Fatal(err)
		}
		for range 5 {
			text := rapid.StringOfN(rapid.RuneFrom([]rune("aabbé c")), 0, 40, -1).Draw(rt, "text")
			var got, want []string
			for _, id := range tk.Encode(text, Plain) {
				got = append(got, tk.Piece(id))
			}
			if text != "" {
				for _, piece := range joinSlowly(tk, " "+text) {
					if piece == "c" {
						piece = "<unk>"
					}
					want = append(want, piece)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("%q (-want +got):\n%s", text, diff)
			}
		}
	})
}

// One megabyte takes a fraction of a second, whatever it is; a quadratic algorithm would take hours. The race
// detector makes it a hundred times slower, hence less in the short run.
func TestLargeInputs(t *testing.T) {
	size := 1 << 20
	if testing.Short() {
		size = 1 << 16
	}
	for name, units := range map[string][]string{
		"llama-spm":  {"a", "=", "Hello, world! ", "日本語", "\x00"},
		"gemma-like": {" ", "\n"},
		"phi-3":      {"ab", "<|end|"},
	} {
		tk := tokenizer(t, name)
		for _, unit := range units {
			text := strings.Repeat(unit, size/len(unit))
			began := time.Now()
			ids := tk.Encode(text, ParseSpecial)
			if got := tk.Decode(ids); got != text {
				t.Errorf("%s: %d bytes of %q: not the same text after decoding", name, size, unit)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%s: %d bytes of %q took %v", name, size, unit, took)
			}
		}
	}
}

// addSeeds adds texts that have led tokenizers astray.
func addSeeds(f *testing.F) {
	for _, s := range []string{
		"", " ", "  two  spaces ", "Hello, world!", "日本語 😀", "</s><s><unk>", "<0x41>", "\x00\xff\xfe",
		"\xf0\x9f\x98", "\xe2 \x96\x81", "▁", "a\n\n\n\tb", "<|end|> <|user|>\n",
	} {
		f.Add(s)
	}
}

func FuzzRoundTrip(f *testing.F) {
	addSeeds(f)
	tokenizers := []*Tokenizer{tokenizer(f, "stories260k"), tokenizer(f, "phi-3"), tokenizer(f, "gemma-like")}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tk := range tokenizers {
			for mode := range AddSpecial | ParseSpecial + 1 {
				ids := tk.Encode(text, mode)
				got := tk.Decode(ids)
				if !utf8.ValidString(got) {
					t.Errorf("mode %d: %q decodes to invalid UTF-8 %q", mode, text, got)
				}
				exact := mode == Plain && utf8.ValidString(text) && !strings.Contains(text, spmSpace)
				if exact && got != text {
					t.Errorf("mode %d: %q becomes %q through %v", mode, text, got, ids)
				}
				for _, id := range ids {
					if !tk.has(id) {
						t.Errorf("mode %d: %q has id %d outside the vocabulary", mode, text, id)
					}
				}
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	tk := tokenizer(b, "llama-spm")
	for name, unit := range map[string]string{"words": "The quick brown fox, again. ", "one run": "a"} {
		text := strings.Repeat(unit, 1<<20/len(unit))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				tk.Encode(text, Plain)
			}
		})
	}
}
