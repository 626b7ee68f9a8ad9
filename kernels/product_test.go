// Package kernels_test checks a rule of all packages that promise the same
// bits on every architecture: kernels/* and core/rng.
package kernels_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryProductIsConverted: the compiler may fuse x*y + z into one rounding
// on some architectures, even across statements and inlined calls, unless the
// product is converted explicitly, as in float32(x*y).
func TestEveryProductIsConverted(t *testing.T) {
	dirs := []string{filepath.Join("..", "core", "rng")}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == "." {
			return err
		}
		if d.Name() == "testdata" || d.Name() == "internal" { // the generator computes nothing
			return fs.SkipDir
		}
		dirs = append(dirs, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	products := 0
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "source", nil)
	for _, dir := range dirs {
		products += checkProducts(t, fset, imports, dir)
	}
	if products < 50 {
		t.Errorf("found only %d products of floats: the test misses its object", products)
	}
}

// checkProducts reports the unconverted products in a directory and returns
// how many it has seen in all.
func checkProducts(t *testing.T, fset *token.FileSet, imports types.Importer, dir string) (products int) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return 0
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	// A platform's files may declare a name twice or not at all: the types of products come out all the same.
	config := types.Config{Importer: imports, Error: func(error) {}}
	_, _ = config.Check(dir, fset, files, info)
	converted := map[ast.Expr]bool{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if len(n.Args) == 1 && info.Types[n.Fun].IsType() {
					converted[ast.Unparen(n.Args[0])] = true
				}
			case *ast.BinaryExpr:
				if n.Op == token.MUL && isFloat(info.Types[n]) {
					if products++; !converted[n] {
						t.Errorf("%s: product %s is not converted", fset.Position(n.Pos()), types.ExprString(n))
					}
				}
			case *ast.AssignStmt:
				if n.Tok == token.MUL_ASSIGN && isFloat(info.Types[n.Lhs[0]]) {
					products++
					t.Errorf("%s: a product by *= is not converted", fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
	return products
}

// isFloat reports whether tv is a variable of a float type, or of a type
// parameter that may be one.
func isFloat(tv types.TypeAndValue) bool {
	if tv.Type == nil || tv.Value != nil {
		return false
	}
	if p, ok := tv.Type.(*types.TypeParam); ok {
		float := false
		if constraint, ok := p.Constraint().Underlying().(*types.Interface); ok {
			for i := range constraint.NumEmbeddeds() {
				if u, ok := constraint.EmbeddedType(i).(*types.Union); ok {
					for j := range u.Len() {
						float = float || isFloat(types.TypeAndValue{Type: u.Term(j).Type()})
					}
				}
			}
		}
		return float
	}
	b, ok := tv.Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}
