package fucina_test

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A tree is the repository as the rules see it: paths are slash-separated and relative to the root.
type tree struct {
	sizes   map[string]int64  // every file
	text    map[string]string // contents of the files written by hand
	goFiles []*goFile         // sorted by path
	fset    *token.FileSet
}

type goFile struct {
	path      string
	src       string
	syntax    *ast.File
	imports   []string
	test      bool
	generated bool
	ignored   bool // excluded from every build by //go:build ignore
}

var textNames = []string{"LICENSE", ".gitignore", ".gitattributes", ".ci/run", "go.mod"}
var textExts = []string{".go", ".star", ".s", ".md", ".txt", ".txtar", ".json", ".yml", ".yaml", ".sh", ".toml"}

func readTree(fsys fs.FS) (*tree, error) {
	tr := &tree{sizes: map[string]int64{}, text: map[string]string{}, fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		tr.sizes[name] = info.Size()
		if !slices.Contains(textNames, name) && !slices.Contains(textExts, path.Ext(name)) {
			return nil
		}
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		tr.text[name] = string(b)
		if path.Ext(name) == ".go" && !inTestdata(name) {
			return tr.addGo(name, string(b))
		}
		return nil
	})
	return tr, err
}

func (tr *tree) addGo(name, src string) error {
	syntax, err := parser.ParseFile(tr.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := &goFile{
		path: name, src: src, syntax: syntax,
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(syntax),
	}
	for _, spec := range syntax.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		f.imports = append(f.imports, imp)
	}
	for _, group := range syntax.Comments {
		for _, c := range group.List {
			if x, err := constraint.Parse(c.Text); err == nil && x.String() == "ignore" {
				f.ignored = true
			}
		}
	}
	tr.goFiles = append(tr.goFiles, f)
	return nil
}

// importedAs gives the local name of an imported package: its own name unless the file renames it.
func (f *goFile) importedAs(importPath string) string {
	for i, imp := range f.imports {
		if imp == importPath {
			if name := f.syntax.Imports[i].Name; name != nil {
				return name.Name
			}
			return path.Base(imp)
		}
	}
	return ""
}

// uses lists the selectors pkg.Name of one imported package, with the argument list if it is called.
func (f *goFile) uses(importPath string, visit func(sel *ast.SelectorExpr, args []ast.Expr)) {
	local := f.importedAs(importPath)
	if local == "" {
		return
	}
	args := map[ast.Expr][]ast.Expr{}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			args[n.Fun] = n.Args
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && id.Name == local {
				visit(n, args[n])
			}
		}
		return true
	})
}

func inTestdata(name string) bool {
	return slices.Contains(strings.Split(path.Dir(name), "/"), "testdata")
}

func under(name string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return strings.HasPrefix(name, d+"/") })
}

var readRepo = sync.OnceValues(func() (*tree, error) { return readTree(os.DirFS(".")) })

func repoTree(t *testing.T) *tree {
	t.Helper()
	tr, err := readRepo()
	if err != nil {
		t.Fatal(err)
	}
	return tr
}
