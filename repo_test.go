package fucina_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// A rule holds for every file of the repository. Each carries a small tree that breaks it and the complaint
// that tree must raise, so that no rule can pass by looking at nothing.
type rule struct {
	name  string
	check func(*tree) []string
	bad   map[string]string
	want  string
}

var rules = []rule{
	{"package comment", packageComments,
		map[string]string{
			"a/a.go":      "// Package a is.\npackage a",
			"b/b.go":      "package b",
			"b/b_test.go": "// Package b is.\npackage b",
		},
		"b: no file has a package comment"},
	{"package comment once", packageComments,
		map[string]string{"a/a.go": "// Package a is.\npackage a", "a/b.go": "// Package a too.\npackage a"},
		"a: more than one package comment: a/a.go, a/b.go"},
	{"package comment form", packageComments,
		map[string]string{"a/a.go": "// This is a.\npackage a"},
		`a/a.go: the package comment must begin "Package a "`},
	{"file length", fileLengths,
		map[string]string{"a.star": strings.Repeat("x = 1\n", 601), "b.star": strings.Repeat("x = 1\n", 600)},
		"a.star: 601 lines, at most 600"},
	{"function length", functionLengths,
		map[string]string{
			"a/a.go":         "package a\nfunc F() {" + strings.Repeat("\n", 80) + "}",
			"kernels/a/a.go": "package a\nfunc F() {" + strings.Repeat("\n", 80) + "}",
		},
		"a/a.go:2: F has 81 lines, at most 80"},
	{"line width", lineWidths,
		map[string]string{"a.star": "# ok\n\t# " + strings.Repeat("é", 115)},
		"a.star:2: 121 columns, at most 120"},
	{"data file size", dataSizes,
		map[string]string{
			"a/testdata/x.txt": strings.Repeat("x", 64<<10+1),
			"a/big.txt":        strings.Repeat("x", 64<<10+1),
		},
		"a/testdata/x.txt: 65537 bytes, at most 65536 unless allowedData names it with a reason"},
	{"CONTRIBUTING length", contributingLength,
		map[string]string{"CONTRIBUTING.md": strings.Repeat("x\n", 151)},
		"CONTRIBUTING.md: 151 lines, at most 150"},
	{"machine path", machinePaths,
		map[string]string{
			"a.go":      "package a\n\nconst dir = \"/ro" + "ot/models\"",
			"a_test.go": "package a // /tm" + "p/x",
		},
		"a.go:3: path or host of one machine: /ro" + "ot/"},
	{"proxy host", machinePaths,
		map[string]string{"docs/a.md": "see https://pro" + "xy.example.com/"},
		"docs/a.md:1: path or host of one machine: https://pro" + "xy."},
	{"test command in README", testCommandNamed,
		map[string]string{"README.md": "go test .", ".ci/run": testCommand + "\n"},
		"README.md: does not name `go test ./...`"},
	{"test command in CI", testCommandNamed,
		map[string]string{"README.md": testCommand, ".ci/run": "# " + testCommand + "\ngo test -short ./...\n"},
		".ci/run: does not run `go test ./...`"},
	{"environment", environmentReads,
		map[string]string{"a/a.go": "package a\nimport \"os\"\nvar v = os.Getenv(\"NO_COLOR\")"},
		"a/a.go:3: os.Getenv outside cmd and repl"},
	{"environment of the command", environmentReads,
		map[string]string{"repl/a.go": "package a\nimport env \"os\"\nvar v = env.Getenv(\"FUCINA_DEBUG\")"},
		"repl/a.go:3: os.Getenv: not a variable of allowedEnv"},
	{"exit", exitsAndLogs,
		map[string]string{"a/a.go": "package a\nimport \"os\"\nfunc f() { os.Exit(1) }"},
		"a/a.go:3: os.Exit outside a command"},
	{"log", exitsAndLogs,
		map[string]string{
			"a/a.go":     "package a\nimport \"log\"\nfunc f() { log.Print(1) }",
			"cmd/a/a.go": "package main\nimport \"log\"",
		},
		"a/a.go: imports log outside a command"},
	{"print", exitsAndLogs,
		map[string]string{"a/a.go": "package a\nimport \"fmt\"\nfunc f() { fmt.Println(1) }"},
		"a/a.go:3: fmt.Println outside a command: write to a given io.Writer"},
	{"link", markdownLinks,
		map[string]string{
			"docs/a.md": "[a](b.md#part) [b](../README.md) [w](https://example.com/x.md) `[c](c.md)`\n[d](d.md)",
			"docs/b.md": "", "README.md": "",
		},
		"docs/a.md:2: no such file: d.md"},
	{"decision index", decisionsListed,
		map[string]string{"docs/adr/README.md": "[1](0001-a.md)", "docs/adr/0001-a.md": "", "docs/adr/0002-b.md": ""},
		"docs/adr/0002-b.md: not listed in docs/adr/README.md"},
	{"decision number", decisionsListed,
		map[string]string{
			"docs/adr/README.md": "(0001-a.md) (0001-b.md)",
			"docs/adr/0001-a.md": "",
			"docs/adr/0001-b.md": "",
		},
		"docs/adr/0001-b.md: number 0001 is taken by docs/adr/0001-a.md"},
}

func TestRepository(t *testing.T) {
	tr := repoTree(t)
	seen := map[string]bool{}
	for _, r := range rules {
		for _, complaint := range r.check(tr) {
			if !seen[complaint] {
				seen[complaint] = true
				t.Errorf("%s: %s", r.name, complaint)
			}
		}
	}
}

func TestRulesCanFail(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for name, src := range r.bad {
				fsys[name] = &fstest.MapFile{Data: []byte(src)}
			}
			tr, err := readTree(fsys)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.check(tr); len(got) != 1 || got[0] != r.want {
				t.Errorf("got %q, want only %q", got, r.want)
			}
		})
	}
}

func TestDataBudget(t *testing.T) {
	tr := &tree{sizes: map[string]int64{}}
	for i := range 81 {
		tr.sizes[fmt.Sprintf("a/testdata/%d", i)] = maxDataFile
	}
	want := []string{"test data: 5308416 bytes in all, at most 5242880"}
	if got := dataSizes(tr); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
