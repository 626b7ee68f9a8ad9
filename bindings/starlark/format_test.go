package starlark

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"
	"testing"

	star "go.starlark.net/starlark"
)

//go:embed testdata/format.txt
var formatTable string

// TestFormatAgainstPython compares fmt with a table of what Python itself answers.
func TestFormatAgainstPython(t *testing.T) {
	it := New(Config{})
	rows := 0
	for _, line := range strings.Split(formatTable, "\n") {
		call, quoted, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		rows++
		var want string
		if err := json.Unmarshal([]byte(quoted), &want); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got, err := it.Eval(context.Background(), "<format>", call)
		if err != nil {
			t.Errorf("%s: %v", call, err)
		} else if s, _ := star.AsString(got); s != want {
			t.Errorf("%s = %q, Python has %q", call, s, want)
		}
	}
	if rows < 500 {
		t.Errorf("the table has only %d rows", rows)
	}
}

// FuzzFormat gives fmt any format; it may refuse, but must not panic, and its error must quote the format.
func FuzzFormat(f *testing.F) {
	for _, format := range []string{
		"{:>{}.{}f}|{{", "{0!r:_^+#012,.3%}", "{a:é<5}", "{:{a}{", "{!s", "}", "{:.", "{0[x]}", "{:0=3}",
	} {
		f.Add(format)
	}
	args := star.Tuple{star.Float(-2.5), star.MakeInt(7), star.String("é"), star.None, star.True}
	kwargs := []star.Tuple{{star.String("a"), star.MakeInt(3)}}
	f.Fuzz(func(t *testing.T, format string) {
		call := formatter{args: args, kwargs: kwargs}
		if _, err := call.expand(format); err != nil && !strings.ContainsAny(err.Error(), "{}") {
			t.Errorf("%q: got %v", format, err)
		}
	})
}
