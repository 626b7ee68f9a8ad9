package token

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mergesOf are the merges of a byte-level BPE, in order, as merges.txt has them.
func mergesOf(tk *Tokenizer) []string {
	var list []string
	for left, right := range tk.Merges() {
		list = append(list, left+" "+right)
	}
	return list
}

// TestTrainReference learns what the reference trainer learned.
func TestTrainReference(t *testing.T) {
	var reference struct {
		Corpus string
		Merges []string
		Vocab  map[string]int32
	}
	if err := json.Unmarshal(gunzip(t, "testdata/bpe-training.json.gz"), &reference); err != nil {
		t.Fatal(err)
	}
	corpus := reference.Corpus
	tk, err := Train(slices.Values([]string{corpus}), Training{Size: 500, Special: []string{"<|endoftext|>"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reference.Merges, mergesOf(tk)); diff != "" {
		t.Errorf("merges (-want +got):\n%s", diff)
	}
	got := map[string]int32{}
	for id := range int32(tk.Len()) {
		got[tk.Piece(id)] = id
	}
	if diff := cmp.Diff(reference.Vocab, got); diff != "" {
		t.Errorf("vocabulary (-want +got):\n%s", diff)
	}
	if got := tk.Decode(tk.Encode(corpus, Plain)); got != corpus {
		t.Error("the corpus does not survive")
	}
}

// slowly learns without a queue: it counts all pairs anew before every merge.
func slowly(words []string, n int) (merges []string) {
	var symbols [][]string
	for _, w := range words {
		symbols = append(symbols, strings.Split(w, ""))
	}
	for range n {
		counts := map[[2]string]int{}
		for _, s := range symbols {
			for i := 1; i < len(s); i++ {
				counts[[2]string{s[i-1], s[i]}]++
			}
		}
		var best [2]string
		for p, c := range counts {
			if c > counts[best] || c == counts[best] && (p[0] > best[0] || p[0] == best[0] && p[1] > best[1]) {
				best = p
			}
		}
		if counts[best] == 0 {
			break
		}
		merges = append(merges, best[0]+" "+best[1])
		for k, s := range symbols {
			var to []string
			for i := 0; i < len(s); i++ {
				if i+1 < len(s) && s[i] == best[0] && s[i+1] == best[1] {
					to = append(to, s[i]+s[i+1])
					i++
				} else {
					to = append(to, s[i])
				}
			}
			symbols[k] = to
		}
	}
	return merges
}

func TestTrainAgreesWithCounting(t *testing.T) {
	for _, text := range []string{
		"aaaa aaa aa a", "abababab ababa", "aabaab baabaa", "abcabcabc bcabca cabcab", "mississippi missouri miss",
		"aaaaaaaaaaaaaaaa", "", "x",
	} {
		words := strings.Fields(text)
		var texts []string
		for _, w := range words {
			texts = append(texts, w) // one word a text, so that no space is in it
		}
		tk, err := Train(slices.Values(texts), Training{Size: 256 + 30})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slowly(words, 30), mergesOf(tk)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestTrainSettings(t *testing.T) {
	texts := []string{"low<|sep|>lower<|sep|>lowest", "low low"}
	tk, err := Train(slices.Values(texts), Training{Size: 300, Special: []string{"<|", "<|sep|>"}, MinCount: 3})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := mergesOf(tk), []string{"o w", "l ow"}; !slices.Equal(got, want) {
		t.Errorf("merges: got %q, want %q", got, want)
	}
	if got, want := tk.Encode("low<|sep|>", ParseSpecial), []int32{259, 1}; !slices.Equal(got, want) {
		t.Errorf("encode: got %v, want %v", got, want)
	}
	halt := errors.New("halt")
	if _, err := Train(slices.Values([]string{strings.Repeat("ab cd ", 10000)}),
		Training{Size: 300, Stop: func() error { return halt }}); !errors.Is(err, halt) {
		t.Errorf("stopped: got %v", err)
	}
	for want, training := range map[string]Training{
		"got a vocabulary of 255 tokens, want 256":     {Size: 255},
		"got a vocabulary of 257 tokens, want 258":     {Size: 257, Special: []string{"a", "b"}},
		`got the special token "a"`:                    {Size: 300, Special: []string{"a", "a"}},
		`got the special token ""`:                     {Size: 300, Special: []string{""}},
		`got the pre-tokenizer "gpt-5", want one of`:   {Size: 300, Pre: "gpt-5"},
		"the pre-tokenizer gemma4 is not one of bytes": {Size: 300, Pre: "gemma4"},
	} {
		if _, err := Train(slices.Values(texts), training); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
