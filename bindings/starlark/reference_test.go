package starlark

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fucina-go/fucina/core"
)

var update = flag.Bool("update", false, "write the reference page anew")

const referencePage = "../../docs/reference.md"

// TestReference insists that the reference page says what the operations' comments say. With -update it writes
// the page.
func TestReference(t *testing.T) {
	page, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(referencePage, page, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	have = bytes.ReplaceAll(have, []byte("\r\n"), []byte("\n"))
	if diff := cmp.Diff(strings.Split(string(have), "\n"), strings.Split(string(page), "\n")); diff != "" {
		t.Errorf("%s is out of date; run: go test ./bindings/starlark -run TestReference -update\n%.2000s",
			referencePage, diff)
	}
}

// reference is the page: every operation in the order of the alphabet, with its usage, its documentation and its
// example, run.
func reference() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("# Operations\n\n" +
		"<!-- Made from the comments in core: go test ./bindings/starlark -run TestReference -update -->\n\n" +
		"Every operation is a function; those whose first argument is a tensor are also its methods. Optional\n" +
		"arguments stand in brackets or have a default. The same text is printed by `help(\"softmax\")`.\n\n")
	infos := core.All()
	for i, info := range infos {
		if i > 0 {
			b.WriteString(" ·\n")
		}
		fmt.Fprintf(&b, "[%s](#%s)", info.Name, info.Name)
	}
	b.WriteString("\n")
	for _, info := range infos {
		if err := referenceOf(&b, info); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func referenceOf(b *bytes.Buffer, info *core.Info) error {
	doc, err := info.Doc()
	if err != nil {
		return err
	}
	c := call{info: info}
	fmt.Fprintf(b, "\n## %s\n\n```\n%s\n```\n\n%s\n", info.Name, c.usage(), strings.TrimSpace(doc.Text))
	if doc.Example == "" {
		return nil
	}
	it := newTest(Config{})
	defer it.Close()
	v, err := runExample(it, info)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\n```python\n%s\n", strings.TrimSpace(doc.Example))
	if v != nil && v.String() != "None" {
		for line := range strings.SplitSeq(v.String(), "\n") {
			fmt.Fprintf(b, "# %s\n", line)
		}
	}
	b.WriteString("```\n")
	return nil
}
