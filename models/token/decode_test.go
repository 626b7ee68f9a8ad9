package token

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// byteIDs are llama-spm's tokens for single bytes.
func byteIDs(s string) (ids []int32) {
	for _, b := range []byte(s) {
		ids = append(ids, int32(b)+3)
	}
	return ids
}

func TestDecoder(t *testing.T) {
	tk := tokenizer(t, "llama-spm")
	id := func(piece string) int32 {
		id, ok := tk.ID(piece)
		if !ok {
			t.Fatalf("no token %q", piece)
		}
		return id
	}
	hello, world := id("▁Hello"), id("▁world")
	for _, c := range []struct {
		name   string
		prompt []int32
		ids    []int32
		want   []string // of each Next, then Flush
	}{
		{"space in front", nil, []int32{hello, world}, []string{"Hello", " world", ""}},
		{"two spaces in front", nil, []int32{id("▁"), hello}, []string{"", " Hello", ""}},
		{"after BOS", nil, []int32{1, hello}, []string{"", "Hello", ""}},
		{"prompt of BOS", []int32{1}, []int32{hello}, []string{"Hello", ""}},
		{"continuation", []int32{1, hello}, []int32{world}, []string{" world", ""}},
		{"control inside", nil, []int32{hello, 2, 0, world}, []string{"Hello", "", "", " world", ""}},
		{"outside", nil, []int32{-1, 32000, hello, 1 << 30}, []string{"", "", "Hello", "", ""}},
		{"bytes of one character", nil, byteIDs("😀!"), []string{"", "", "", "😀", "!", ""}},
		{"bytes that are none", nil, byteIDs("\xffa\x80"), []string{"\uFFFD", "a", "\uFFFD", ""}},
		{"broken off", nil, byteIDs("a\xf0\x9f"), []string{"a", "", "", "\uFFFD\uFFFD"}},
		{"interrupted", nil, append(byteIDs("\xe2\x82"), world), []string{"", "", "\uFFFD\uFFFD world", ""}},
		{"character across the prompt's end", byteIDs("x\xc3"), byteIDs("\xa9y"), []string{"é", "y", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := tk.NewDecoder(c.prompt...)
			var got []string
			for _, id := range c.ids {
				got = append(got, d.Next(id))
			}
			got = append(got, d.Flush())
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again := d.Flush(); again != "" {
				t.Errorf("second flush: got %q, want nothing", again)
			}
		})
	}
}

func TestStreamEqualsDecode(t *testing.T) {
	for _, name := range []string{"llama-spm", "phi-3", "gemma-like"} {
		tk := tokenizer(t, name)
		rapid.Check(t, func(t *rapid.T) {
			some := rapid.OneOf(rapid.Int32Range(-2, 300), rapid.Int32Range(0, int32(tk.Len())+2))
			ids := rapid.SliceOfN(some, 0, 40).Draw(t, "ids")
			cut := rapid.IntRange(0, len(ids)).Draw(t, "cut")
			d := tk.NewDecoder()
			var stream strings.Builder
			for _, id := range ids {
				s := d.Next(id)
				if !utf8.ValidString(s) {
					t.Fatalf("Next: got %q, which is not UTF-8", s)
				}
				stream.WriteString(s)
			}
			stream.WriteString(d.Flush())
			whole := tk.Decode(ids)
			if got := stream.String(); got != whole {
				t.Fatalf("stream: got %q, want %q", got, whole)
			}
			// What follows a prompt is the rest of the whole text, unless the cut is within a character.
			head := tk.NewDecoder()
			var before strings.Builder
			for _, id := range ids[:cut] {
				before.WriteString(head.Next(id))
			}
			rest := tk.NewDecoder(ids[:cut]...)
			after := ""
			for _, id := range ids[cut:] {
				after += rest.Next(id)
			}
			after += rest.Flush()
			if before.String()+after != whole {
				t.Fatalf("cut at %d: got %q + %q, want %q", cut, before.String(), after, whole)
			}
		})
	}
}

func ExampleTokenizer() {
	tk, err := newTokenizer("../../examples/data/stories260K.gguf")
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := tk.Encode("Once upon a time</s>", AddSpecial)
	fmt.Println(len(ids), ids[0] == tk.BOS(), tk.Piece(ids[1]))
	fmt.Println(tk.Decode(ids))
	// Output:
	// 9 true ▁Once
	// Once upon a time</s>
}
