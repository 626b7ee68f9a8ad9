package repl

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCloseTwice gives a terminal back twice.
func TestCloseTwice(t *testing.T) {
	term, err := NewTerminal(func() {}, func(string) []string { return nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if line, err := term.ReadLine(ctx, promptFirst); err == nil {
		t.Errorf("got the line %q from no terminal", line)
	}
	first := term.Close()
	if again := term.Close(); again != first {
		t.Errorf("the second Close returned %v, want %v, as the first", again, first)
	}
}

// chunks is what is read, a chunk at a time.
type chunks []string

func (c *chunks) Read(p []byte) (int, error) {
	if len(*c) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*c)[0])
	*c = (*c)[1:]
	return n, nil
}

// TestKeyboard reads keys with the marks of pasted text between them, whole and in pieces: P stands before each key
// that was pasted.
func TestKeyboard(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   chunks
		want string
	}{
		{"typed", chunks{"ab", "c"}, "abc"},
		{"pasted", chunks{"a\x1b[200~b\nc\x1b[201~d"}, "aPbP\nPcd"},
		{"marks in pieces", chunks{"a\x1b", "[20", "0~b", "\x1b[2", "01", "~c"}, "aPbc"},
		{"another key", chunks{"\x1b[2", "~\x1b[20", "5~\x1b[A"}, "\x1b[2~\x1b[205~\x1b[A"},
		{"ends in a mark", chunks{"a\x1b[20"}, "a\x1b[20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := &keyboard{from: &tt.in, typed: make(chan typed, 1)}
			var got strings.Builder
			p := make([]byte, 100)
			for {
				n, err := k.Read(p)
				if err == io.EOF {
					break
				}
				if err != nil || n != 1 {
					t.Fatalf("got %d keys and %v, want one", n, err)
				}
				if k.pasting.Load() {
					got.WriteByte('P')
				}
				got.WriteByte(p[0])
			}
			if got.String() != tt.want {
				t.Errorf("got %q, want %q", got.String(), tt.want)
			}
		})
	}
}

func TestColumns(t *testing.T) {
	names := strings.Fields("a bb ccc dddd eeeee")
	for _, tt := range []struct {
		width int
		want  string
	}{
		{80, "a      bb     ccc    dddd   eeeee\n"},
		{22, "a      ccc    eeeee\nbb     dddd\n"},
		{3, "a\nbb\nccc\ndddd\neeeee\n"},
		{-1, "a\nbb\nccc\ndddd\neeeee\n"},
	} {
		if diff := cmp.Diff(tt.want, columns(names, tt.width)); diff != "" {
			t.Errorf("%d columns (-want +got)\n%s", tt.width, diff)
		}
	}
}
