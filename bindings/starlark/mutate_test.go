package starlark

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.starlark.net/syntax"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/kernels/cpu"
)

// mutations are the ways to call an operation wrongly that a program is changed by: each gives the texts to put
// in the place of an argument.
var mutations = map[string]func(arg string, last bool) []string{
	"misspelt": func(arg string, _ bool) []string {
		if !regexp.MustCompile(`^"[a-z_ ]+"$`).MatchString(arg) {
			return nil
		}
		return []string{strings.Replace(arg, `"`, `"q`, 1), `"zzz"`}
	},
	"of another kind": func(arg string, _ bool) []string { return []string{"0", `"zzz"`, "[]", "None", "0.5"} },
	"of another dtype": func(arg string, _ bool) []string {
		return []string{"(" + arg + `).cast("i64")`, "(" + arg + `).cast("f16")`, "(" + arg + `).cast("bool")`}
	},
	"with an axis more": func(arg string, _ bool) []string { return []string{"(" + arg + ").expand(zzz=2)"} },
	"left out":          func(string, bool) []string { return []string{""} },
	"one too many": func(arg string, last bool) []string {
		if !last {
			return nil
		}
		return []string{arg + `, "zzz"`, arg + ", 1", arg + ", zzz=1"}
	},
}

// TestMutatedExamples calls every operation wrongly, by changes of its example, and insists that messages keep to
// the form. Nearly all of their fixes, pasted, must run: some take more than one.
func TestMutatedExamples(t *testing.T) {
	if testing.Short() || cpu.Current() == cpu.Generic {
		t.Skip("runs thousands of small scripts for their messages, which depend neither on kernels nor on workers")
	}
	fixed, all := 0, 0
	for _, info := range core.All() {
		doc, err := info.Doc()
		if err != nil || doc.Example == "" {
			t.Fatalf("%s: no example: %v", info.Name, err)
		}
		for _, src := range mutants(t, info, doc.Example) {
			m := &mistake{src: src}
			var failed *Error
			if err := m.run(t, src); err == nil || !errors.As(err, &failed) {
				continue
			}
			misused := (*core.Error)(nil)
			if !errors.As(failed, &misused) || misused.Op != info.Name {
				continue
			}
			all++
			if reason := m.tryFix(t, failed); reason == "" {
				fixed++
			} else {
				t.Logf("%s\n%s%s", failed, src, reason)
			}
			if _, fix := fixOf(failed.Msg); fix == "" || !strings.HasPrefix(failed.Msg, info.Name+": ") {
				t.Errorf("%s\n%s", src, failed)
			}
		}
	}
	if fixed*10 < all*9 {
		t.Errorf("%d of %d fixes run", fixed, all)
	}
	t.Logf("%d of %d fixes run", fixed, all)
}

// tryFix pastes the fix and tells why the program still does not run.
func (m *mistake) tryFix(t *testing.T, failed *Error) string {
	words, fix := fixOf(failed.Msg)
	if _, err := dialect.Parse("fix", fix, 0); err != nil || fix == "" {
		return fmt.Sprint("no fix: ", err)
	}
	call := findCall(t, m, failed)
	if call == nil {
		return "nothing to paste it for"
	}
	begin, end := call.place(words, fix)
	src := m.src[:begin] + call.bind(fix) + m.src[end:]
	if err := m.run(t, src); err != nil {
		return fmt.Sprintf("fixed: %s\n%v", src, err)
	}
	return ""
}

// mutants are the programs that an example becomes by the mutations of the arguments of the operation's call.
func mutants(t *testing.T, info *core.Info, example string) (list []string) {
	f, err := dialect.Parse("example", example, 0)
	if err != nil {
		t.Fatal(err)
	}
	find := &finder{src: example}
	syntax.Walk(f, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || !calls(call, info.Name) {
			return true
		}
		for i, arg := range call.Args {
			s := find.span(arg)
			text := example[s.begin:s.end]
			keyword, value, named := strings.Cut(text, "=")
			if !named || strings.ContainsAny(keyword, "([\"") {
				keyword, value = "", text
			} else {
				keyword += "="
			}
			for _, name := range slices.Sorted(maps.Keys(mutations)) {
				for _, changed := range mutations[name](value, i == len(call.Args)-1) {
					if changed != "" {
						changed = keyword + changed
					}
					list = append(list, example[:s.begin]+changed+example[s.end:])
				}
			}
		}
		return false
	})
	return list
}

func calls(n *syntax.CallExpr, name string) bool {
	switch fn := n.Fn.(type) {
	case *syntax.Ident:
		return fn.Name == name
	case *syntax.DotExpr:
		return fn.Name.Name == name
	}
	return false
}
