package starlark

import (
	"strings"
	"testing"

	star "go.starlark.net/starlark"
)

func TestComplete(t *testing.T) {
	it := New(Config{})
	src := `
total = 1
_hidden = 2
x = ones(a=2)
gone = ones(a=2)
gone.free()
s = struct(inner=struct(alpha=1, beta=2), _own=3)
`
	if err := it.RunSource(t.Context(), "<test>", []byte(src)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ word, want string }{
		{"soft", "softcap softmax softplus"},
		{"tot", "total"},
		{"_hid", "_hidden"},
		{"nosuch", ""},
		{"x.soft", "softcap softmax softplus"},
		{"x.tol", "tolist"},
		{"x.grad.", ""},
		{"gone.tol", "tolist"},
		{"s.", "inner"},
		{"s._", "_own"},
		{"s.inner.", "alpha beta"},
		{"s.nosuch.", ""},
		{"nosuch.", ""},
		{"total.", ""},
		{"optim.adama", "adamax"},
		{"schedule.cos", "cosine cosine_restarts"},
	} {
		if got := strings.Join(it.Complete(tt.word), " "); got != tt.want {
			t.Errorf("Complete(%q) is %q, want %q", tt.word, got, tt.want)
		}
	}
	for _, name := range it.Complete("") {
		if strings.HasPrefix(name, "_") {
			t.Errorf("Complete lists %s, which nobody asked for", name)
		}
	}
}

// panicking is a value of a host that has a bug.
type panicking struct{ star.Value }

func (panicking) AttrNames() []string             { panic("a bug in the host") }
func (panicking) Attr(string) (star.Value, error) { panic("a bug in the host") }

// TestCompleteHostile completes what no script could write, which terminals would take for commands, and values whose
// attributes panic.
func TestCompleteHostile(t *testing.T) {
	it := New(Config{})
	t.Cleanup(it.Close)
	src := `s = struct(**{"é": 1, "a b": 2, "a\x1b[31m": 3, "a\n": 4, "": 5, "1a": 6, "日本": 7, "ok": 8})`
	if err := it.RunSource(t.Context(), "<test>", []byte(src)); err != nil {
		t.Fatal(err)
	}
	it.Globals()["bad"] = panicking{star.None}
	for word, want := range map[string]string{"s.": "ok é 日本", "bad.": "", "bad.x.": ""} {
		if got := strings.Join(it.Complete(word), " "); got != want {
			t.Errorf("Complete(%q) is %q, want %q", word, got, want)
		}
	}
}
