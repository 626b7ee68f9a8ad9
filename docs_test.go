package fucina

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/bindings/plot"
	"github.com/fucina-go/fucina/bindings/starlark"
)

var update = flag.Bool("update", false, "write the pictures and outputs of the guides anew")

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// The code in the guides is real: a python block runs, a go block stands in a program or test that is compiled.
func TestGuides(t *testing.T) {
	guides, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var compiled strings.Builder
	for _, pattern := range []string{"*_test.go", "examples/*/*.go"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			compiled.WriteString(unindented(string(src)))
		}
	}
	for _, guide := range append(guides, "CONTRIBUTING.md") {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
			switch lang, code := m[1], m[2]; {
			case lang == "go" && filepath.Base(guide) == "embedding.md":
				if !strings.Contains(compiled.String(), unindented(code)) {
					t.Errorf("%s: this is in no program or test:\n%s", guide, code)
				}
			case lang == "python":
				it := starlark.New(starlark.Config{Stdout: &bytes.Buffer{}})
				if err := it.RunSource(context.Background(), guide, []byte(code)); err != nil {
					t.Errorf("%s: %v", guide, err)
				}
				it.Close()
			}
		}
	}
}

// unindented is code without the tabs and spaces its lines begin with.
func unindented(code string) string {
	lines := strings.Split(code, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t ")
	}
	return strings.Join(lines, "\n")
}

var picture = regexp.MustCompile(`!\[[^\]]+\]\(([\w.-]+)\)`)

// The snippets of a page in docs/guides run one after the other, in one session; a text block after one is what it
// prints, and the pictures of the page are those that they save. One whose first line is the name of a script is that
// script, one for the console a command with what is typed, behind >, and what it prints, unless there is none. The
// smallest model of the examples is in their folder.
func TestWalks(t *testing.T) {
	walks, err := filepath.Glob("docs/guides/*.md")
	if err != nil || len(walks) == 0 {
		t.Fatal(walks, err)
	}
	for _, walk := range walks {
		src, err := os.ReadFile(walk)
		if err != nil {
			t.Fatal(err)
		}
		page := string(src)
		dir := t.TempDir()
		model, err := os.ReadFile("examples/data/stories260K.gguf")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "stories260K.gguf"), model, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		it := starlark.New(starlark.Config{Stdout: &out, Dir: dir})
		defer it.Close()
		plot.Add(it)
		renewed, done := "", 0
		for _, m := range fence.FindAllStringSubmatchIndex(page, -1) {
			switch lang, code := page[m[2]:m[3]], page[m[4]:m[5]]; lang {
			case "python":
				if name := isFile.FindStringSubmatch(code); name != nil {
					if err := os.WriteFile(filepath.Join(dir, name[1]), []byte(code), 0o666); err != nil {
						t.Fatal(err)
					}
					break
				}
				out.Reset()
				line := strings.Count(page[:m[4]], "\n")
				if _, err := it.Eval(context.Background(), walk, strings.Repeat("\n", line)+code); err != nil {
					t.Fatal(err)
				}
			case "console":
				command, shown, _ := strings.Cut(code, "\n")
				out.Reset()
				runConsole(t, dir, &out, command, shown)
				if shown == "" {
					break
				}
				if out.String() != shown && !*update {
					t.Errorf("%s: %s prints\n%swant\n%s", walk, command, out.String(), shown)
				}
				renewed, done = renewed+page[done:m[4]]+command+"\n"+out.String(), m[5]
			case "text":
				if out.String() != code && !*update {
					t.Errorf("%s: a snippet prints\n%swant\n%s", walk, out.String(), code)
				}
				renewed, done = renewed+page[done:m[4]]+out.String(), m[5]
			}
		}
		if *update {
			if err := os.WriteFile(walk, []byte(renewed+page[done:]), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range picture.FindAllStringSubmatch(page, -1) {
			samePicture(t, filepath.Join("docs/guides", m[1]), filepath.Join(dir, m[1]))
		}
	}
}

var (
	isFile = regexp.MustCompile(`^# (\w+\.star)\n`)
	word   = regexp.MustCompile(`'[^']*'|\S+`)
)

// runConsole runs a command, "$ fucina-repl -m module words", typing the lines of what is shown that begin with >.
func runConsole(t *testing.T, dir string, out *bytes.Buffer, command, shown string) {
	t.Helper()
	words := word.FindAllString(command, -1)
	if len(words) < 4 || strings.Join(words[:3], " ") != "$ fucina-repl -m" {
		t.Fatalf("%s: want $ fucina-repl -m module words", command)
	}
	for i, w := range words {
		words[i] = strings.Trim(w, "'")
	}
	var typed []string
	for line := range strings.Lines(shown) {
		if text, ok := strings.CutPrefix(line, "> "); ok {
			typed = append(typed, strings.TrimSuffix(text, "\n"))
		}
	}
	it := starlark.New(starlark.Config{Stdout: out, Stderr: io.Discard, Dir: dir, Args: words[4:],
		ReadLine: func(_ context.Context, prompt string) (line string, err error) {
			if len(typed) == 0 {
				return "", io.EOF
			}
			line, typed = typed[0], typed[1:]
			fmt.Fprintf(out, "> %s\n", line)
			return line, nil
		}})
	defer it.Close()
	err := it.RunFile(context.Background(), "@stdlib//"+words[3]+".star")
	if err == nil {
		_, err = it.Eval(context.Background(), "<command>", "main(args)")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// samePicture compares what a snippet drew with the file in the guide: SVG by its text, PNG by its pixels, as a
// compressor may change.
func samePicture(t *testing.T, want, got string) {
	t.Helper()
	drawn, err := os.ReadFile(got)
	if err != nil {
		t.Errorf("no snippet draws %s: %v", want, err)
		return
	}
	if *update {
		if err := os.WriteFile(want, drawn, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(want) == ".png" {
		a, errA := png.Decode(bytes.NewReader(drawn))
		b, errB := png.Decode(bytes.NewReader(kept))
		if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s is not what the snippet draws: %v, %v", want, errA, errB)
		}
		return
	}
	if !bytes.Equal(drawn, kept) {
		t.Errorf("%s is not what the snippet draws; -update writes it anew", want)
	}
}
