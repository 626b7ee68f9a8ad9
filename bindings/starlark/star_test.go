package starlark

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	star "go.starlark.net/starlark"
)

// handle is a value that, like a tensor, is not a plain operand of == and no plain condition.
type handle struct{ name string }

func (h handle) String() string        { return "handle(" + h.name + ")" }
func (h handle) Type() string          { return "handle" }
func (h handle) Freeze()               {}
func (h handle) Truth() star.Bool      { return true }
func (h handle) Hash() (uint32, error) { return star.String(h.name).Hash() }

func (h handle) Condition(where string) (bool, error) {
	return false, errors.New(where + ": a handle has no truth value")
}

func (h handle) Compare(op string, other star.Value, _ bool) (star.Value, error) {
	if other == star.None {
		return star.Bool(op == "!="), nil
	}
	return nil, errors.New(op + ": would compare the handle " + h.name + " with " + other.String())
}

// newTest returns an interpreter with what the .star tests use: handle(name) and equal(got, want).
func newTest(cfg Config) *Interp {
	it := New(cfg)
	it.Predeclare("handle", star.NewBuiltin("handle",
		func(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
			var name string
			err := star.UnpackArgs(b.Name(), args, kwargs, "name", &name)
			return handle{name}, err
		}))
	it.Predeclare("equal", star.NewBuiltin("equal",
		func(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
			var got, want star.Value
			if err := star.UnpackArgs(b.Name(), args, kwargs, "got", &got, "want", &want); err != nil {
				return nil, err
			}
			if same, err := star.Equal(got, want); !same || err != nil {
				return nil, errors.New("equal: got " + got.String() + ", want " + want.String())
			}
			return star.None, nil
		}))
	return it
}

// TestStarFiles runs the chunks, separated by ---, of testdata/*.star, each as a source and as a REPL block. A
// chunk must run to its end unless a line of it ends with ### and a regular expression: then it must fail on that
// line with a message that matches.
func TestStarFiles(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".star") {
			continue
		}
		text, err := os.ReadFile("testdata/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		line := 1
		for _, chunk := range strings.SplitAfter(string(text), "---\n") {
			src := strings.Repeat("\n", line-1) + strings.TrimSuffix(chunk, "---\n")
			name := "testdata/" + file.Name()
			checkChunk(t, name, src, newTest(Config{}).RunSource(context.Background(), name, []byte(src)))
			_, err := newTest(Config{}).Eval(context.Background(), name, src)
			checkChunk(t, name+" as a block", src, err)
			line += strings.Count(chunk, "\n")
		}
	}
}

func checkChunk(t *testing.T, name, src string, err error) {
	t.Helper()
	wantLine, want := 0, ""
	for i, line := range strings.Split(src, "\n") {
		if _, pattern, ok := strings.Cut(line, "### "); ok && !strings.HasPrefix(line, "#") {
			wantLine, want = i+1, strings.TrimSpace(pattern)
		}
	}
	var failed *Error
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case want != "" && err == nil:
		t.Errorf("%s:%d: got no error, want %s", name, wantLine, want)
	case want == "":
	case !errors.As(err, &failed):
		t.Errorf("%s:%d: got %T, want *Error", name, wantLine, err)
	case failed.Line != wantLine || !regexp.MustCompile(want).MatchString(failed.Msg):
		t.Errorf("%s: got\n%v\nwant on line %d: %s", name, err, wantLine, want)
	}
}
