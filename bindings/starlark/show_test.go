package starlark

import (
	"strings"
	"testing"
	"unicode/utf8"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// What a message shows of a value is what str shows, and of a value with much text the beginning.
func TestBrief(t *testing.T) {
	list := star.NewList([]star.Value{star.MakeInt(1), star.String("a\"b")})
	ring := star.NewList(nil)
	inside := starlarkstruct.FromStringDict(starlarkstruct.Default, star.StringDict{"a": ring})
	if err := ring.Append(inside); err != nil {
		t.Fatal(err)
	}
	var deep star.Value = star.None
	for range 1 << 16 {
		deep = star.Tuple{deep}
	}
	for _, c := range []struct {
		v    star.Value
		want string // the whole, or the beginning if it ends in …
	}{
		{list, `[1, "a\"b"]`},
		{star.Tuple{star.MakeInt(1)}, "(1,)"},
		{ring, "[struct(a = [...])]"},
		{star.Tuple{inside, ring}, "(struct(a = [struct(a = [...])]), [struct(a = [...])])"},
		{deep, "((((…"},
		{star.String(strings.Repeat("ä", 1<<20)), "\"äää…"},
		{star.Bytes(strings.Repeat("x", 1<<20)), "b\"xxx…"},
		{star.Tuple{star.MakeInt(1), nil}, "(1, nothing)"},
	} {
		got := brief(c.v)
		begin, cut := strings.CutSuffix(c.want, "…")
		fits := got == c.want || cut && strings.HasPrefix(got, begin) && strings.HasSuffix(got, "…")
		if !fits || len(got) > maxBrief+len("…") || !utf8.ValidString(got) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
