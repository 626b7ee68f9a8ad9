package fucina

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/bindings/starlark"
)

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
