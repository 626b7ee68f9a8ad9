package fucina_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const modulePath = "github.com/fucina-go/fucina"

// importPolicy says who may import whom. One rule a line:
//
//	a < b < c     b may import a, c may import a and b; nothing else may import a
//	a, b < c      c may import a and b
//	x/{a,b}       x/a and x/b
//	x/*           every package one level below x
//	a, b          packages that import none of ours, named so that they are known
//	a !< b        b must not import a, whatever else is said
//
// Among our own packages the order is transitive. A package of another module is open only to the packages
// named beside it. The standard library is open to all unless a !< rule closes it. "fucina" is the module
// root. Test files are free, except that the Go compiler refuses cycles.
//
// A new package is added here together with its purpose in docs/ARCHITECTURE.md.
const importPolicy = `
	# The floor.
	kernels/cpu < kernels/*
	kernels/num < kernels/gemm < kernels/attn   # the exp and the sums of num, the products of gemm, bit for bit
	kernels/half < kernels/gemm, kernels/attn, kernels/qdot   # 16-bit panels, widened where they are read; scales
	kernels/internal/gen                       # writes the assembly; a program of its own
	core/axis, core/dtype, core/mem, core/par, core/rng

	# Formats and files.
	kernels/*, core/dtype < core/quant < core/gguf
	core/mem, core/dtype < core/gguf, core/safetensors
	core/dtype < core/npy, core/idx

	# The engine.
	core/*, kernels/* < core < grad < grad/{optim,es,lora}

	# Language models.
	core, core/gguf, core/rng, core/quant, core/par < models/*
	core/safetensors < models/kv   # sequences in files
	models/{token,chat,kv,sample,recipe,constrain,spec,stream} < models < models/serve

	# Scripts. Only bindings/starlark and above know Starlark.
	core, grad, grad/*, models, models/*, stdlib < bindings/starlark < repl < cmd/fucina-repl
	bindings/starlark, core < bindings/plot < cmd/fucina-repl   # who imports it links the libraries that draw
	bindings/starlark < fucina < examples/*   # programs with the interpreter inside

	# Other modules, and who may see them.
	golang.org/x/sys/cpu < kernels/cpu
	golang.org/x/sys/{unix,windows} < core/mem
	golang.org/x/text/unicode/norm < models/token
	golang.org/x/text/width < bindings/starlark
	go.starlark.net/*, go.starlark.net/lib/* < bindings/starlark
	go.starlark.net/* < repl, cmd/fucina-repl, fucina
	go.starlark.net/*, gonum.org/v1/plot, gonum.org/v1/plot/*, gonum.org/v1/plot/*/* < bindings/plot
	github.com/guptarohit/asciigraph < bindings/plot
	github.com/chzyer/readline < repl, cmd/fucina-repl
	github.com/fatih/color < repl, cmd/fucina-repl
	golang.org/x/term < repl, cmd/fucina-repl

	# A kernel takes slices and returns; it has nothing to print.
	fmt !< kernels/*
`

func TestImports(t *testing.T) {
	p, err := parsePolicy(importPolicy)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range p.check(importsOf(repoTree(t))) {
		t.Error(v)
	}
}

// importsOf lists the imports of each package, from all its files whatever their build constraints, so that
// one run on one platform judges every platform. Test files and files excluded by "ignore" are left out.
func importsOf(tr *tree) map[string][]string {
	pkgs := map[string][]string{}
	for _, f := range tr.goFiles {
		if f.test || f.ignored || strings.Contains("/"+f.path, "/_") {
			continue
		}
		pkg := path.Dir(f.path)
		if pkg == "." {
			pkg = "fucina"
		}
		if pkgs[pkg] == nil {
			pkgs[pkg] = []string{}
		}
		for _, imp := range f.imports {
			if imp == modulePath {
				imp = "fucina"
			}
			imp = strings.TrimPrefix(imp, modulePath+"/")
			if !slices.Contains(pkgs[pkg], imp) {
				pkgs[pkg] = append(pkgs[pkg], imp)
			}
		}
	}
	return pkgs
}

// An edge lets the packages matching high import those matching low; patterns, not yet packages.
type edge struct{ low, high string }

type policy struct {
	allowed   []edge
	forbidden []edge
	named     []string // every pattern the other rules mention
}

func parsePolicy(text string) (*policy, error) {
	p := &policy{}
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		edges := &p.allowed
		forbid := strings.Contains(line, "!<")
		if forbid {
			edges = &p.forbidden
			line = strings.ReplaceAll(line, "!<", "<")
			if strings.Count(line, "<") != 1 {
				return nil, fmt.Errorf("import policy, line %d: a !< rule has two sides", n+1)
			}
		}
		var low []string
		for _, side := range strings.Split(line, "<") {
			high, err := parseNames(side)
			if err != nil {
				return nil, fmt.Errorf("import policy, line %d: %v", n+1, err)
			}
			if !forbid {
				p.named = append(p.named, high...)
			}
			for _, l := range low {
				for _, h := range high {
					*edges = append(*edges, edge{l, h})
				}
			}
			low = high
		}
	}
	return p, nil
}

// parseNames reads "a, x/{b,c}" as a, x/b, x/c.
func parseNames(s string) ([]string, error) {
	var names []string
	for s = strings.TrimSpace(s); s != ""; {
		end := strings.IndexByte(s, ',')
		if open := strings.IndexByte(s, '{'); open >= 0 && (end < 0 || open < end) {
			inner, rest, ok := strings.Cut(s[open+1:], "}")
			if !ok {
				return nil, fmt.Errorf("%q: missing }", s)
			}
			for _, name := range strings.Split(inner, ",") {
				names = append(names, s[:open]+strings.TrimSpace(name))
			}
			s = strings.TrimLeft(rest, ", \t")
			continue
		}
		if end < 0 {
			end = len(s)
		}
		names = append(names, strings.TrimSpace(s[:end]))
		s = strings.TrimLeft(s[end:], ", \t")
	}
	if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool {
		return n == "" || strings.HasSuffix(n, "/") || strings.ContainsAny(n, " \t{}")
	}) {
		return nil, fmt.Errorf("want a list of names, got %q", names)
	}
	return names, nil
}

func matches(pattern, pkg string) bool {
	ok, err := path.Match(pattern, pkg)
	return ok && err == nil
}

// isOutside reports whether an import path belongs to another module: its first element is a host name.
func isOutside(name string) bool {
	host, _, _ := strings.Cut(name, "/")
	return strings.Contains(host, ".")
}

// check returns one line for each import the policy does not allow, each package it does not know,
// and each cycle among its own rules.
func (p *policy) check(pkgs map[string][]string) []string {
	var bad []string
	below, cycles := p.order(pkgs)
	bad = append(bad, cycles...)
	for _, pkg := range slices.Sorted(maps.Keys(pkgs)) {
		if !slices.ContainsFunc(p.named, func(n string) bool { return matches(n, pkg) }) {
			bad = append(bad, fmt.Sprintf("%s: not in the import policy: add it", pkg))
			continue
		}
		for _, imp := range slices.Sorted(slices.Values(pkgs[pkg])) {
			_, ours := pkgs[imp]
			permitted := true
			switch {
			case ours:
				permitted = below[pkg][imp]
			case isOutside(imp):
				permitted = holds(p.allowed, imp, pkg)
			}
			if !permitted || holds(p.forbidden, imp, pkg) {
				bad = append(bad, fmt.Sprintf("%s imports %s: the import policy does not allow it", pkg, imp))
			}
		}
	}
	return bad
}

func holds(edges []edge, low, high string) bool {
	return slices.ContainsFunc(edges, func(e edge) bool { return matches(e.low, low) && matches(e.high, high) })
}

// order is the transitive closure of the allowed edges over the packages that exist and those only named.
func (p *policy) order(pkgs map[string][]string) (below map[string]map[string]bool, cycles []string) {
	nodes := slices.Collect(maps.Keys(pkgs))
	for _, n := range p.named {
		if !strings.Contains(n, "*") && !isOutside(n) {
			nodes = append(nodes, n)
		}
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	below = map[string]map[string]bool{}
	for _, high := range nodes {
		below[high] = map[string]bool{}
		for _, low := range nodes {
			if low != high && holds(p.allowed, low, high) {
				below[high][low] = true
			}
		}
	}
	for _, mid := range nodes {
		for _, high := range nodes {
			if below[high][mid] {
				maps.Copy(below[high], below[mid])
			}
		}
	}
	for _, n := range nodes {
		if below[n][n] {
			cycles = append(cycles, fmt.Sprintf("import policy: %s is below itself", n))
		}
	}
	return below, cycles
}

func TestPolicyCheck(t *testing.T) {
	const text = `
		k/cpu < k/*
		base/{a,b}
		base/*, k/* < core < grad   # a chain
		core < m/*
		m/token < m
		golang.org/x/sys/cpu < k/cpu
		fmt !< k/*
	`
	const denied = ": the import policy does not allow it"
	tests := []struct {
		name, pkg, imp string
		want           string // "" if allowed
	}{
		{"named edge", "k/f32", "k/cpu", ""},
		{"chain", "grad", "core", ""},
		{"transitive", "grad", "base/a", ""},
		{"through a package that does not exist yet", "m/token", "k/cpu", ""},
		{"upward", "core", "grad", "core imports grad" + denied},
		{"sideways under a star", "k/f32", "k/gemm", "k/f32 imports k/gemm" + denied},
		{"packages that stand alone", "base/a", "base/b", "base/a imports base/b" + denied},
		{"star is one level", "k/internal/gen", "k/cpu", "k/internal/gen: not in the import policy: add it"},
		{"outside, named", "k/cpu", "golang.org/x/sys/cpu", ""},
		{"outside is not transitive", "k/f32", "golang.org/x/sys/cpu",
			"k/f32 imports golang.org/x/sys/cpu" + denied},
		{"outside, unknown", "core", "example.com/log", "core imports example.com/log" + denied},
		{"standard library", "core", "fmt", ""},
		{"standard library, closed", "k/f32", "fmt", "k/f32 imports fmt" + denied},
	}
	p, err := parsePolicy(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pkgs := map[string][]string{tt.pkg: {tt.imp}}
			if !isOutside(tt.imp) && tt.imp != "fmt" {
				pkgs[tt.imp] = nil
			}
			if got := strings.Join(p.check(pkgs), "\n"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPolicyCycle(t *testing.T) {
	p, err := parsePolicy("a < b < c\nc < a")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.check(nil); len(got) != 3 {
		t.Errorf("a < b < c < a: got %q, want each of a, b, c below itself", got)
	}
}

func TestParsePolicy(t *testing.T) {
	p, err := parsePolicy("a, x/{b, c} < d/* # why\n\nfmt !< a")
	if err != nil {
		t.Fatal(err)
	}
	want := &policy{
		allowed:   []edge{{"a", "d/*"}, {"x/b", "d/*"}, {"x/c", "d/*"}},
		forbidden: []edge{{"fmt", "a"}},
		named:     []string{"a", "x/b", "x/c", "d/*"},
	}
	if diff := cmp.Diff(want, p, cmp.AllowUnexported(policy{}, edge{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, text := range []string{"a <", "< a", "a b < c", "x/{a < b", "x/{a,} y < b", "a !< b !< c", "a < b !< c"} {
		if _, err := parsePolicy(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
