package repl

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// keys is an Editor that types: each string is a line, a line that ends in ^C is interrupted, and a line
// ^D is the end of the input. After the last line comes the end, too.
type keys struct {
	lines      []string
	prompts    []string
	remembered []string
}

func (k *keys) ReadLine(_ context.Context, prompt string) (string, error) {
	k.prompts = append(k.prompts, prompt)
	if len(k.lines) == 0 {
		return "", io.EOF
	}
	line := k.lines[0]
	k.lines = k.lines[1:]
	if typed, ok := strings.CutSuffix(line, "^C"); ok {
		return typed, ErrInterrupt
	}
	if line == "^D" {
		return "", io.EOF
	}
	return line, nil
}

func (k *keys) Remember(line string) { k.remembered = append(k.remembered, line) }

func TestBlocks(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  []string
	}{
		{"simple", []string{"x = 1", "x"}, []string{"x = 1\n", "x\n"}},
		{"blank lines", []string{"", "  ", "x"}, []string{"\n", "  \n", "x\n"}},
		{"comment", []string{"# hm", "x"}, []string{"# hm\n", "x\n"}},
		{"open bracket", []string{"f(1,", "", "  2)", "x"}, []string{"f(1,\n\n  2)\n", "x\n"}},
		{"backslash", []string{"x = 1 + \\", "  2"}, []string{"x = 1 + \\\n  2\n"}},
		{"long string", []string{`s = """a`, "", "# b", `"""`, "x"}, []string{"s = \"\"\"a\n\n# b\n\"\"\"\n", "x\n"}},
		{"function", []string{"def f():", "    return 1", "", "f()"}, []string{"def f():\n    return 1\n\n", "f()\n"}},
		{"function on one line", []string{"def f(): return 1", "", "f()"}, []string{"def f(): return 1\n\n", "f()\n"}},
		{"blank line of spaces", []string{"if x:", "    y", "    ", "z"}, []string{"if x:\n    y\n    \n", "z\n"}},
		{"else", []string{"if x:", "    y", "else:", "    z", ""}, []string{"if x:\n    y\nelse:\n    z\n\n"}},
		{"comment in a function", []string{"def f():", "    # why", "    a", "# b", "    return 1", ""},
			[]string{"def f():\n    # why\n    a\n# b\n    return 1\n\n"}},
		{"no blank line between functions", []string{"def f():", "    # c", "    a", "def g():", "    b", "", "x"},
			[]string{"def f():\n    # c\n    a\n", "def g():\n    b\n\n", "x\n"}},
		{"statement after a loop", []string{"for i in x:", "    a", "b = (1,", "  2)", "c"},
			[]string{"for i in x:\n    a\n", "b = (1,\n  2)\n", "c\n"}},
		{"end within a function", []string{"def f():", "    return 1"}, []string{"def f():\n    return 1\n"}},
		{"end within brackets", []string{"f(1,"}, []string{"f(1,\n"}},
		{"Ctrl-D ends a block", []string{"def f():", "    a", "^D", "f()"}, []string{"def f():\n    a\n", "f()\n"}},
		{"error", []string{"x = = 1", "y"}, []string{"x = = 1\n", "y\n"}},
		{"error in a function", []string{"def f():", "    x = = 1", "y"}, []string{"def f():\n    x = = 1\n", "y\n"}},
		{"Ctrl-C in a function", []string{"def f():", "    x^C", "y"}, []string{"INTERRUPT def f():\n    x", "y\n"}},
		{"Ctrl-C on an empty line", []string{"^C", "y"}, []string{"INTERRUPT ", "y\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := &blockReader{editor: &keys{lines: tt.lines}}
			var got []string
			for {
				block, err := in.next()
				if errors.Is(err, io.EOF) {
					break
				}
				if errors.Is(err, ErrInterrupt) {
					block = "INTERRUPT " + block
				} else if err != nil {
					t.Fatal(err)
				}
				got = append(got, block)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestPrompts(t *testing.T) {
	k := &keys{lines: []string{"f(1,", "2)", "x"}}
	in := &blockReader{editor: k}
	for {
		if _, err := in.next(); err != nil {
			break
		}
	}
	if diff := cmp.Diff([]string{">>> ", "... ", ">>> ", ">>> "}, k.prompts); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func FuzzBlocks(f *testing.F) {
	f.Add("def f():\n  a\ndef g():\n  b\n\nx = (1,\n2)")
	f.Add("s = '''\n# '''\n\n# a\nif x:\n # b\n y\nz")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		in := &blockReader{editor: &keys{lines: lines}}
		var got strings.Builder
		for {
			block, err := in.next()
			if err != nil {
				break
			}
			got.WriteString(block)
		}
		if strings.Contains(text, "^") { // keys, not text
			return
		}
		if got.String() != text+"\n" {
			t.Errorf("the blocks are not the text\ntext %q\ngot  %q", text, got.String())
		}
	})
}
