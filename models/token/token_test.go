package token

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewErrors(t *testing.T) {
	with := func(entries ...entry) []entry { return append(tokens("a", "b"), entries...) }
	replaced := func(i int, value any) []entry {
		entries := tokens("a", "b")
		entries[i].value = value
		return entries
	}
	for _, c := range []struct {
		name    string
		entries []entry
		want    []string
	}{
		{"other model", with(entry{"tokenizer.ggml.model", "none"}),
			[]string{`tokenizer.ggml.model: got "none", want one of llama, gpt2, gemma4, whitespace, bert, t5, rwkv`}},
		{"model of wrong type", with(entry{"tokenizer.ggml.model", int32(1)}),
			[]string{"tokenizer.ggml.model", "a string"}},
		{"no tokens", nil, []string{"missing key", "tokenizer.ggml.tokens"}},
		{"tokens of wrong type", replaced(0, []int32{1, 2}), []string{"tokenizer.ggml.tokens", "strings"}},
		{"scores too short", replaced(1, make([]float32, 5)),
			[]string{"tokenizer.ggml.scores: got 5 scores, want 6"}},
		{"scores too long", replaced(1, make([]float32, 7)), []string{"tokenizer.ggml.scores: got 7 scores, want 6"}},
		{"scores of wrong type", replaced(1, "x"), []string{"tokenizer.ggml.scores", "array"}},
		{"score not a number", replaced(1, []float32{0, 0, 0, 0, float32(math.NaN()), 0}),
			[]string{"tokenizer.ggml.scores: the score of token 4 is not a number"}},
		{"types too short", replaced(2, make([]int32, 2)),
			[]string{"tokenizer.ggml.token_type: got 2 types, want 6"}},
		{"unknown type", replaced(2, []int32{2, 3, 3, 1, 7, 1}), []string{"token 4 has type 7, want 0 to 6"}},
		{"negative type", replaced(2, []int32{2, 3, 3, 1, -1, 1}),
			[]string{"token 4 has type -1, want 0 to 6"}},
		{"types of wrong type", replaced(2, []string{"x"}), []string{"tokenizer.ggml.token_type", "integers"}},
		{"byte that is none", replaced(2, []int32{2, 3, 3, 1, 1, 6}),
			[]string{`token 5 is a byte but its text is "b"`}},
		{"token twice", tokens("a", "b", "a"), []string{`tokens 4 and 6 are both "a"`}},
		{"id outside", with(entry{"tokenizer.ggml.eos_token_id", uint32(6)}),
			[]string{"tokenizer.ggml.eos_token_id: token 6 is not in the vocabulary of 6 tokens"}},
		{"negative id", with(entry{"tokenizer.ggml.bos_token_id", int32(-2)}), []string{"bos_token_id: token -2"}},
		{"marker outside", with(entry{"tokenizer.ggml.fim_pad_token_id", uint32(9)}),
			[]string{"fim_pad_token_id: token 9"}},
		{"id of wrong type", with(entry{"tokenizer.ggml.eot_token_id", "x"}), []string{"eot_token_id", "an integer"}},
		{"padding of wrong type", with(entry{"tokenizer.ggml.padding_token_id", "x"}), []string{"padding_token_id"}},
		{"option of wrong type", with(entry{"tokenizer.ggml.add_bos_token", int32(1)}),
			[]string{"add_bos_token", "a bool"}},
		{"name of wrong type", with(entry{"general.name", int32(1)}), []string{"general.name", "a string"}},
		{"nothing for unknown text", []entry{{"tokenizer.ggml.tokens", []string{}}},
			[]string{"no token for the byte <0x00> and no unknown token"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := fromEntries(t, c.entries...)
			if err == nil {
				t.Fatalf("got no error, want one with %q", c.want)
			}
			for _, part := range append(c.want, "token: ") {
				if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got error %q, want one line with %q", err, part)
				}
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	tk, err := fromEntries(t, entry{"tokenizer.ggml.tokens", []string{"<unk>", "<s>", "</s>", "▁", "", "", "▁a"}})
	if err != nil {
		t.Fatal(err)
	}
	roles := []int32{tk.BOS(), tk.EOS(), tk.UNK(), tk.EOT(), tk.eom, tk.PAD()}
	if want := []int32{1, 2, 0, -1, -1, -1}; !slices.Equal(roles, want) {
		t.Errorf("roles: got %v, want %v", roles, want)
	}
	if got, want := tk.Encode("a", AddSpecial), []int32{1, 6}; !slices.Equal(got, want) {
		t.Errorf("encode: got %v, want %v", got, want)
	}
	for id, want := range map[int32]string{-1: "", 0: "<unk>", 4: "", 5: "", 6: "▁a", 7: "", math.MinInt32: ""} {
		if got := tk.Piece(id); got != want {
			t.Errorf("piece %d: got %q, want %q", id, got, want)
		}
	}
	if id, ok := tk.ID(""); ok {
		t.Errorf("id of the empty text: got %d, want none", id)
	}
}

func TestRoles(t *testing.T) {
	entries := tokens("[PAD]", "<EOT>", "<|end|>", "x", "<|eom_id|>", "</s", "<PRE>")
	entries = append(entries,
		entry{"tokenizer.ggml.bos_token_id", uint32(math.MaxUint32)}, // says nothing, so 1
		entry{"tokenizer.ggml.eos_token_id", uint32(7)},
		entry{"tokenizer.ggml.unknown_token_id", int32(-1)},
		entry{"tokenizer.ggml.padding_token_id", uint32(40)}, // not in the vocabulary
	)
	tk, err := fromEntries(t, entries...)
	if err != nil {
		t.Fatal(err)
	}
	got := []int32{tk.BOS(), tk.EOS(), tk.UNK(), tk.EOT(), tk.eom, tk.PAD()}
	if want := []int32{1, 7, 0, 6, 8, -1}; !slices.Equal(got, want) {
		t.Errorf("roles: got %v, want %v", got, want)
	}
	var ends, controls []int32
	for id := range int32(tk.Len()) {
		if tk.IsEOG(id) {
			ends = append(ends, id)
		}
		if tk.isControl(id) {
			controls = append(controls, id)
		}
	}
	if want := []int32{2, 4, 5, 6, 7, 8}; !slices.Equal(ends, want) {
		t.Errorf("end of generation: got %v, want %v", ends, want)
	}
	if want := []int32{1, 2, 4, 5, 6, 8, 10}; !slices.Equal(controls, want) {
		t.Errorf("control tokens: got %v, want %v", controls, want)
	}
	if tk.IsEOG(-1) || tk.IsEOG(99) || tk.isControl(-1) || tk.isControl(99) {
		t.Error("an id outside the vocabulary is a control token or ends generation")
	}
}

// In gpt-oss's format <|end|> ends a message but not generation, and what frames messages is text.
func TestEndOfMessageGoesOn(t *testing.T) {
	for _, c := range []struct {
		texts []string
		ends  bool
	}{
		{[]string{"<|end|>", "<|return|>", "<|call|>", "<|channel|>"}, false},
		{[]string{"<|end|>", "<|calls|>", "<|flush|>", "<|channel|>"}, false},
		{[]string{"<|end|>", "<|return|>", "<|flush|>", "<|channel|>"}, true},
	} {
		tk, err := fromEntries(t, tokens(c.texts...)...)
		if err != nil {
			t.Fatal(err)
		}
		if tk.IsEOG(4) != c.ends || tk.isControl(4) != c.ends || !tk.IsEOG(5) || tk.isControl(7) {
			t.Errorf("%v: ends generation %v, want %v", c.texts, tk.IsEOG(4), c.ends)
		}
	}
}

func TestPieceAndIDAgree(t *testing.T) {
	tk := tokenizer(t, "llama-spm")
	if tk.Len() != 32000 {
		t.Fatalf("got %d tokens, want 32000", tk.Len())
	}
	for id := range int32(tk.Len()) {
		if got, ok := tk.ID(tk.Piece(id)); got != id || !ok {
			t.Fatalf("id of %q: got %d, %v, want %d", tk.Piece(id), got, ok, id)
		}
	}
	for _, piece := range []string{"", "no such token", "▁the▁", strings.Repeat("x", 100)} {
		if id, ok := tk.ID(piece); ok {
			t.Errorf("id of %q: got %d, want none", piece, id)
		}
	}
}

// Text can spell a control token, and its joined parts may even be in the vocabulary: only ParseSpecial may make a
// control token of it.
func TestTextNeverBecomesControl(t *testing.T) {
	tk, err := fromEntries(t, tokens("<", "/", "s", ">", "</", "s>", "/s", "<s", "▁<", "k", "unk", "un", "u", "n")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"</s>", "<s>", "a</s>", "</s></s>", "<unk>"} {
		for _, id := range tk.Encode(text, Plain) {
			if tk.isControl(id) {
				t.Errorf("%q: got control token %d", text, id)
			}
		}
	}
	if got := tk.Decode(tk.Encode("</s>", Plain)); got != "</s>" {
		t.Errorf("round trip: got %q, want %q", got, "</s>")
	}
	if got, want := tk.Encode("</s><s>", ParseSpecial), []int32{2, 1}; !slices.Equal(got, want) {
		t.Errorf("parsed: got %v, want %v", got, want)
	}
}

func TestModes(t *testing.T) {
	tk := tokenizer(t, "gemma-like") // adds BOS and EOS
	eot, ok := tk.ID("<end_of_turn>")
	if !ok {
		t.Fatal("no <end_of_turn>")
	}
	hi := tk.Encode("hi", Plain)
	for _, c := range []struct {
		mode Mode
		want []int32
	}{
		{Plain, append(slices.Clone(hi), tk.Encode("<end_of_turn>", Plain)...)},
		{ParseSpecial, append(slices.Clone(hi), eot)},
		{AddSpecial | ParseSpecial, append(append([]int32{1}, hi...), eot, 2)},
	} {
		if diff := cmp.Diff(c.want, tk.Encode("hi<end_of_turn>", c.mode)); diff != "" {
			t.Errorf("mode %d (-want +got):\n%s", c.mode, diff)
		}
	}
	if got := tk.Encode("", AddSpecial); !slices.Equal(got, []int32{1, 2}) {
		t.Errorf("empty text: got %v, want BOS and EOS", got)
	}
}

// The longest token wins at a place, and the leftmost place, in whatever order the vocabulary has them.
func TestUserDefinedTokens(t *testing.T) {
	texts := []string{"ab", "abcd", "a", "bcdef", "é", "éé"}
	entries := tokens(append(texts, "c", "d", "e", "f", "x")...)
	types := entries[2].value.([]int32)
	for i := range texts {
		types[4+i] = 4
	}
	entries = append(entries, entry{"tokenizer.ggml.add_space_prefix", false})
	tk, err := fromEntries(t, entries...)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"ab":        {"ab"},
		"abc":       {"ab", "c"},
		"abcdef":    {"abcd", "e", "f"},
		"xabab":     {"x", "ab", "ab"},
		"aaa":       {"a", "a", "a"},
		"bcdefa":    {"bcdef", "a"},
		"ééé":       {"éé", "é"},
		"\xc3éx":    {"<unk>", "é", "x"},
		"xbcde\xc3": {"x", "<unk>", "c", "d", "e", "<unk>"},
	} {
		var got []string
		for _, id := range tk.Encode(text, Plain) {
			got = append(got, tk.Piece(id))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// A vocabulary of 32,000 tokens must not be 32,000 objects for the garbage collector.
func TestNoObjectPerToken(t *testing.T) {
	tokenizer(t, "llama-spm")
	cache.Lock()
	delete(cache.tokenizers, "llama-spm")
	cache.Unlock()
	count := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	before := count()
	tk := tokenizer(t, "llama-spm")
	if after := count(); after > before+2000 {
		t.Errorf("a vocabulary of %d tokens is %d objects, want a few", tk.Len(), after-before)
	}
	runtime.KeepAlive(tk)
}

func TestConcurrentUse(t *testing.T) {
	tk := tokenizer(t, "llama-spm")
	texts := []string{"Hello world", "日本語のテキスト", "a b c d e f g", strings.Repeat("word ", 300)}
	var group sync.WaitGroup
	for _, text := range texts {
		want := tk.Encode(text, Plain)
		for range 3 {
			group.Go(func() {
				for range 20 {
					if got := tk.Encode(text, Plain); !slices.Equal(got, want) {
						t.Errorf("%.20q: other ids while other goroutines encode", text)
					}
				}
			})
		}
	}
	group.Wait()
}

// isControl says whether id steers the model and stands for no text, as BOS and EOS do.
func (t *Tokenizer) isControl(id int32) bool { return t.flag(id)&control != 0 }
