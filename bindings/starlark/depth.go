package starlark

import (
	"fmt"

	"go.starlark.net/syntax"
)

// maxSpine bounds how long a chain of operators, calls or attributes may be. Starlark's parser bounds the
// nesting of brackets but not such chains, which its resolver and compiler follow by recursion: a million terms
// would end the process.
const maxSpine = 2000

// checkDepth refuses a file whose chains are too long.
func checkDepth(f *syntax.File) (err error) {
	syntax.Walk(f, func(n syntax.Node) bool {
		if e, ok := n.(syntax.Expr); ok && err == nil && spine(e) > maxSpine {
			start, _ := f.Span()
			err = syntax.Error{Pos: start, Msg: fmt.Sprintf("an expression is a chain of more than %d operators or "+
				"calls; put parts of it into variables, or into a list and a loop", maxSpine)}
		}
		return err == nil
	})
	return err
}

// spine is the length of the chain that goes down e's left side, counted up to the bound.
func spine(e syntax.Expr) (n int) {
	for ; n <= maxSpine; n++ {
		switch x := e.(type) {
		case *syntax.BinaryExpr:
			e = x.X
		case *syntax.DotExpr:
			e = x.X
		case *syntax.CallExpr:
			e = x.Fn
		case *syntax.IndexExpr:
			e = x.X
		case *syntax.SliceExpr:
			e = x.X
		default:
			return n
		}
	}
	return n
}
