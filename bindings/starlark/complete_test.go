package starlark

import (
	"strings"
	"testing"
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
