package starlark

import (
	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/fucina-go/fucina/core"
)

// operandName is what the script calls operand i of the operation called at a place: the name, or the names
// joined by dots, that it is written as; other if it is written otherwise.
func (it *Interp) operandName(at core.Site, i int, other string) string {
	f, err := dialect.Parse(at.File, it.sources[at.File], 0)
	if err != nil {
		return other
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && c.Lparen.Line == at.Line && c.Lparen.Col == at.Col {
			if name := dotted(operandOf(c, i)); name != "" {
				other = name
			}
		}
		return true
	})
	return other
}

// operandOf is the expression of operand i of a call, or nil. Operands are told from other arguments by
// being no literals.
func operandOf(c *syntax.CallExpr, i int) syntax.Expr {
	var operands []syntax.Expr
	if method, ok := c.Fn.(*syntax.DotExpr); ok {
		operands = append(operands, method.X)
	}
	for _, arg := range c.Args {
		if _, ok := arg.(*syntax.Literal); !ok {
			operands = append(operands, arg)
		}
	}
	if i < len(operands) {
		return operands[i]
	}
	return nil
}

// dotted is the names joined by dots that e is, or "".
func dotted(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.Ident:
		if !star.Universe.Has(e.Name) {
			return e.Name
		}
	case *syntax.DotExpr:
		if x := dotted(e.X); x != "" {
			return x + "." + e.Name.Name
		}
	}
	return ""
}
