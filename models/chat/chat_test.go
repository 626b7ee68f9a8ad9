package chat

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = func() time.Time { return time.Date(2025, 3, 14, 12, 0, 0, 0, time.UTC) }

// render parses and renders with the time of the recorded renderings.
func render(source string, vars *Dict) (string, error) {
	t, err := Parse(source)
	if err != nil {
		return "", err
	}
	t.Now = noon
	return t.Render(context.Background(), vars)
}

// ordered reads a JSON object with its keys in order.
func ordered(t *testing.T, data []byte) *Dict {
	t.Helper()
	r := &run{ctx: context.Background(), left: 1 << 30}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := r.decode(d)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*Dict)
}

func read(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err == nil && strings.HasSuffix(name, ".gz") {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, err = io.ReadAll(z)
		}
	}
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// listed is the cases that docs/coverage.md says differ, each with what stands there.
func listed(t *testing.T) (page string, cases map[string]string) {
	t.Helper()
	data, err := os.ReadFile("../../docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ = strings.Cut(string(data), "\n## chat-templates and jinja\n")
	page, _, _ = strings.Cut(page, "\n## ")
	cases = map[string]string{}
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) == 4 && strings.Contains(cells[1], "/") {
			cases[strings.TrimSpace(cells[1])] = strings.TrimSpace(cells[2])
		}
	}
	return page, cases
}

// check reports a case that neither passes nor is listed, or both, and counts it.
func check(t *testing.T, differ map[string]string, name, want, got string, refuse bool, err error) (passed int) {
	t.Helper()
	same := got == want && (err != nil) == refuse
	switch _, listed := differ[name]; {
	case same && listed:
		t.Errorf("%s passes, but docs/coverage.md lists it", name)
	case !same && !listed:
		t.Errorf("%s: error %v, want one: %v; (-want +got):\n%s", name, err, refuse, cmp.Diff(want, got))
	}
	delete(differ, name)
	if same {
		passed = 1
	}
	return passed
}

func TestCases(t *testing.T) {
	page, differ := listed(t)
	count := func(suite string, passed, all int) {
		if text := fmt.Sprintf("%d of its %d", passed, all); !strings.Contains(page, text) {
			t.Errorf("docs/coverage.md does not say of %s: %s", suite, text)
		}
	}
	var templates map[string]string
	var file struct {
		Contexts map[string]json.RawMessage
		Cases    []struct {
			Template, Context string
			Expect            string
			Error             bool
		}
	}
	read(t, "chat-templates.json.gz", &templates)
	read(t, "renderings.json.gz", &file)
	passed := 0
	for _, c := range file.Cases {
		got, err := render(templates[c.Template], ordered(t, file.Contexts[c.Context]))
		passed += check(t, differ, c.Template+"/"+c.Context, c.Expect, got, c.Error, err)
	}
	count("chat-templates", passed, len(file.Cases))

	var cases []struct {
		Name, Template, Expect string
		Vars                   json.RawMessage
	}
	read(t, "jinja-cases.json", &cases)
	passed = 0
	for _, c := range cases {
		got, err := render(c.Template, ordered(t, c.Vars))
		passed += check(t, differ, "jinja/"+c.Name, c.Expect, got, false, err)
	}
	count("jinja", passed, len(cases))
	for name := range differ {
		t.Errorf("docs/coverage.md lists %s, which is no case", name)
	}
}

func TestAgreesWithJinja2(t *testing.T) {
	var file struct {
		Cases []struct {
			Template, Expect, Error string
			Vars                    json.RawMessage
		}
	}
	read(t, "jinja2.json", &file)
	for _, c := range file.Cases {
		got, err := render(c.Template, ordered(t, c.Vars))
		if (err != nil) != (c.Error != "") || got != c.Expect {
			t.Errorf("%q: got %q, %v, want %q, %s", c.Template, got, err, c.Expect, c.Error)
		}
		if refused := (*Error)(nil); err != nil && !errors.As(err, &refused) {
			t.Errorf("%q: got an error of type %T", c.Template, err)
		}
	}
	if len(file.Cases) != 151 {
		t.Errorf("%d cases, want the 151 of docs/coverage.md", len(file.Cases))
	}
}
