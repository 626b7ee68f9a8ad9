package fucina_test

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxFileLines         = 600
	maxFuncLines         = 80
	maxColumns           = 120
	tabColumns           = 4
	maxContributingLines = 150
	maxDataFile          = 64 << 10 // bytes
	maxData              = 5 << 20  // bytes

	testCommand = "go test ./..."
)

// allowedData names the data files that may be larger than maxDataFile.
var allowedData = []struct {
	pattern string
	bytes   int64
	reason  string
}{
	{"examples/data/stories260K.gguf", 1280 << 10, "the smallest trained model: a first script that tells a story"},
	{"examples/data/fashion-mnist/train-images-idx3-ubyte.gz", 130 << 10, "fewer images teach nothing that shows"},
	{"examples/data/names.txt.gz", 104 << 10, "a whole list of names: a published loss is of all of them"},
	{"grad/testdata/torch-ops.json.gz", 132 << 10, "PyTorch's outputs and gradients for every operation, in one list"},
	{"models/testdata/*.gguf", 512 << 10, "a whole model that another program wrote: it must come out byte for byte"},
	{"models/token/testdata/llama-spm.gguf.gz", 192 << 10, "a whole published vocabulary: the ids of a part differ"},
}

// allowedEnv names the variables a command may read: conventions of terminals, none of our own.
var allowedEnv = []string{"NO_COLOR", "TERM"}

func lineCount(src string) int {
	n := strings.Count(src, "\n")
	if src != "" && !strings.HasSuffix(src, "\n") {
		n++
	}
	return n
}

func packageComments(tr *tree) (bad []string) {
	commented := map[string][]string{}
	for _, f := range tr.goFiles {
		if f.test || f.ignored {
			continue
		}
		dir := path.Dir(f.path)
		commented[dir] = append(commented[dir], "")
		if f.syntax.Doc == nil {
			continue
		}
		commented[dir] = append(commented[dir], f.path)
		begin := "Package " + f.syntax.Name.Name + " "
		if f.syntax.Name.Name == "main" {
			begin = "Command " + path.Base(dir) + " "
		}
		if !strings.HasPrefix(f.syntax.Doc.Text(), begin) {
			bad = append(bad, fmt.Sprintf("%s: the package comment must begin %q", f.path, begin))
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(commented)) {
		files := slices.DeleteFunc(commented[dir], func(s string) bool { return s == "" })
		switch {
		case len(files) == 0:
			bad = append(bad, dir+": no file has a package comment")
		case len(files) > 1:
			bad = append(bad, dir+": more than one package comment: "+strings.Join(files, ", "))
		}
	}
	return bad
}

// sources visits the .go and .star files that people write and read.
func sources(tr *tree, visit func(name, src string)) {
	generated := map[string]bool{}
	for _, f := range tr.goFiles {
		generated[f.path] = f.generated
	}
	for _, name := range slices.Sorted(maps.Keys(tr.text)) {
		if ext := path.Ext(name); (ext == ".go" || ext == ".star") && !inTestdata(name) && !generated[name] {
			visit(name, tr.text[name])
		}
	}
}

func fileLengths(tr *tree) (bad []string) {
	sources(tr, func(name, src string) {
		if n := lineCount(src); n > maxFileLines && !strings.HasSuffix(name, "_test.go") {
			bad = append(bad, fmt.Sprintf("%s: %d lines, at most %d", name, n, maxFileLines))
		}
	})
	return bad
}

func functionLengths(tr *tree) (bad []string) {
	for _, f := range tr.goFiles {
		if f.generated || under(f.path, "kernels") {
			continue
		}
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			begin, end := tr.fset.Position(fn.Pos()).Line, tr.fset.Position(fn.End()).Line
			if n := end - begin + 1; n > maxFuncLines {
				bad = append(bad, fmt.Sprintf("%s:%d: %s has %d lines, at most %d",
					f.path, begin, fn.Name.Name, n, maxFuncLines))
			}
		}
	}
	return bad
}

func lineWidths(tr *tree) (bad []string) {
	sources(tr, func(name, src string) {
		for i, line := range strings.Split(src, "\n") {
			n := utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
			if n > maxColumns {
				bad = append(bad, fmt.Sprintf("%s:%d: %d columns, at most %d", name, i+1, n, maxColumns))
			}
		}
	})
	return bad
}

// isData tells inputs and expected outputs from sources and documents.
func isData(name string) bool {
	dirs := strings.Split(path.Dir(name), "/")
	return inTestdata(name) || slices.Contains(dirs, "data") ||
		slices.Contains([]string{".gguf", ".safetensors", ".golden", ".npy", ".bin"}, path.Ext(name))
}

func dataSizes(tr *tree) (bad []string) {
	var total int64
	for _, name := range slices.Sorted(maps.Keys(tr.sizes)) {
		if !isData(name) {
			continue
		}
		size, limit := tr.sizes[name], int64(maxDataFile)
		total += size
		for _, a := range allowedData {
			if matches(a.pattern, name) {
				limit = a.bytes
			}
		}
		if size > limit {
			bad = append(bad, fmt.Sprintf("%s: %d bytes, at most %d unless allowedData names it with a reason",
				name, size, limit))
		}
	}
	if total > maxData {
		bad = append(bad, fmt.Sprintf("test data: %d bytes in all, at most %d", total, maxData))
	}
	return bad
}

func contributingLength(tr *tree) []string {
	if n := lineCount(tr.text["CONTRIBUTING.md"]); n > maxContributingLines {
		return []string{fmt.Sprintf("CONTRIBUTING.md: %d lines, at most %d", n, maxContributingLines)}
	}
	return nil
}

// The brackets keep the patterns from matching their own source.
var (
	machinePath = regexp.MustCompile(`/(w[o]rk|r[o]ot)/|https?://(proxy|registry|deb)\.`)
	scratchPath = regexp.MustCompile(`/t[m]p/`)
)

func machinePaths(tr *tree) (bad []string) {
	for _, name := range slices.Sorted(maps.Keys(tr.text)) {
		isTest := strings.HasSuffix(name, "_test.go") || inTestdata(name)
		for i, line := range strings.Split(tr.text[name], "\n") {
			found := machinePath.FindString(line)
			if found == "" && !isTest {
				found = scratchPath.FindString(line)
			}
			if found != "" {
				bad = append(bad, fmt.Sprintf("%s:%d: path or host of one machine: %s", name, i+1, found))
			}
		}
	}
	return bad
}

func testCommandNamed(tr *tree) (bad []string) {
	if !strings.Contains(tr.text["README.md"], testCommand) {
		bad = append(bad, fmt.Sprintf("README.md: does not name `%s`", testCommand))
	}
	runs := slices.ContainsFunc(strings.Split(tr.text[".ci/run"], "\n"), func(line string) bool {
		return strings.HasSuffix(line, testCommand) && !strings.HasPrefix(strings.TrimSpace(line), "#")
	})
	if !runs {
		bad = append(bad, fmt.Sprintf(".ci/run: does not run `%s`", testCommand))
	}
	return bad
}

func environmentReads(tr *tree) (bad []string) {
	reads := []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "UserHomeDir", "UserConfigDir", "UserCacheDir"}
	for _, f := range tr.goFiles {
		if f.test || f.ignored {
			continue
		}
		for _, pkg := range []string{"os", "syscall"} {
			f.uses(pkg, func(sel *ast.SelectorExpr, args []ast.Expr) {
				name := pkg + "." + sel.Sel.Name
				line := tr.fset.Position(sel.Pos()).Line
				switch {
				case !slices.Contains(reads, sel.Sel.Name):
				case !under(f.path, "cmd", "repl"):
					bad = append(bad, fmt.Sprintf("%s:%d: %s outside cmd and repl", f.path, line, name))
				case strings.HasPrefix(sel.Sel.Name, "User"):
				case len(args) != 1 || !slices.Contains(allowedEnv, literal(args[0])):
					bad = append(bad, fmt.Sprintf("%s:%d: %s: not a variable of allowedEnv", f.path, line, name))
				}
			})
		}
	}
	return bad
}

// literal is the value of a string literal, "" for any other expression.
func literal(x ast.Expr) string {
	if lit, ok := x.(*ast.BasicLit); ok {
		if s, err := strconv.Unquote(lit.Value); err == nil {
			return s
		}
	}
	return ""
}

// exitsAndLogs refuses, outside package main, what only a program may do: leave, log and print.
func exitsAndLogs(tr *tree) (bad []string) {
	prints := []string{"Print", "Printf", "Println"}
	for _, f := range tr.goFiles {
		if f.test || f.ignored || f.syntax.Name.Name == "main" {
			continue
		}
		for _, pkg := range []string{"log", "log/slog"} {
			if slices.Contains(f.imports, pkg) {
				bad = append(bad, fmt.Sprintf("%s: imports %s outside a command", f.path, pkg))
			}
		}
		for _, pkg := range []string{"os", "syscall"} {
			f.uses(pkg, func(sel *ast.SelectorExpr, _ []ast.Expr) {
				if sel.Sel.Name == "Exit" {
					bad = append(bad, fmt.Sprintf("%s:%d: %s.Exit outside a command",
						f.path, tr.fset.Position(sel.Pos()).Line, pkg))
				}
			})
		}
		f.uses("fmt", func(sel *ast.SelectorExpr, _ []ast.Expr) {
			if slices.Contains(prints, sel.Sel.Name) {
				bad = append(bad, fmt.Sprintf("%s:%d: fmt.%s outside a command: write to a given io.Writer",
					f.path, tr.fset.Position(sel.Pos()).Line, sel.Sel.Name))
			}
		})
	}
	return bad
}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	inlineLink = regexp.MustCompile(`\]\(([^)\s]+)[^)]*\)`)
	namedLink  = regexp.MustCompile(`^\s*\[[^\]]+\]:\s+(\S+)`)
	hasScheme  = regexp.MustCompile(`^[a-z]+:`)
	adrName    = regexp.MustCompile(`^([0-9]{4})-[a-z0-9-]+\.md$`)
)

func markdownLinks(tr *tree) (bad []string) {
	for _, name := range slices.Sorted(maps.Keys(tr.text)) {
		if path.Ext(name) != ".md" || inTestdata(name) {
			continue
		}
		fenced := false
		for i, line := range strings.Split(tr.text[name], "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			if fenced {
				continue
			}
			line = inlineCode.ReplaceAllString(line, "")
			links := inlineLink.FindAllStringSubmatch(line, -1)
			for _, m := range append(links, namedLink.FindAllStringSubmatch(line, -1)...) {
				target, _, _ := strings.Cut(m[1], "#")
				if target == "" || hasScheme.MatchString(target) || tr.has(path.Join(path.Dir(name), target)) {
					continue
				}
				bad = append(bad, fmt.Sprintf("%s:%d: no such file: %s", name, i+1, target))
			}
		}
	}
	return bad
}

// has reports whether name is a file or a folder of the tree.
func (tr *tree) has(name string) bool {
	if _, ok := tr.sizes[name]; ok || name == "." {
		return true
	}
	for file := range tr.sizes {
		if strings.HasPrefix(file, name+"/") {
			return true
		}
	}
	return false
}

func decisionsListed(tr *tree) (bad []string) {
	const index = "docs/adr/README.md"
	taken := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(tr.text)) {
		base := path.Base(name)
		if path.Dir(name) != "docs/adr" || name == index {
			continue
		}
		if !strings.Contains(tr.text[index], "("+base+")") {
			bad = append(bad, fmt.Sprintf("%s: not listed in %s", name, index))
		}
		if base == "template.md" {
			continue
		}
		m := adrName.FindStringSubmatch(base)
		switch {
		case m == nil:
			bad = append(bad, name+": want a name such as 0012-what-was-decided.md")
		case taken[m[1]] != "":
			bad = append(bad, fmt.Sprintf("%s: number %s is taken by %s", name, m[1], taken[m[1]]))
		default:
			taken[m[1]] = name
		}
	}
	return bad
}
