package starlark

import (
	"fmt"
	"slices"
	"strconv"

	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Starlark answers `x == 0` with False and `if x` with True whenever x is of a foreign type, without asking
// the value. So before compiling, every == and !=, every condition and the operands of and, or and not are
// wrapped in an index expression on a hidden value, whose Get asks. An index expression, because it costs the
// least of all that can fail (about 25 ns a condition, 90 ns an ==; a call takes more) and leaves no frame of
// its own in the backtrace. The hidden values are predeclared under keywords and operators, which no script
// can use as a name.

// Conditioner is implemented by values that are not plainly true or false. where is the place that asks:
// "if", "while", "and", "or", "not", "bool", "any" or "all". An answer must agree with the value's Truth.
type Conditioner interface {
	Condition(where string) (bool, error)
}

// Comparer is implemented by values that comparisons must ask, on either side. op is "==", "<" and so on; for a
// value on the right of an ordering it is turned round. condition says that the answer is asked for its truth.
type Comparer interface {
	Compare(op string, other star.Value, condition bool) (star.Value, error)
}

// Refuser is implemented by values that are not what Starlark takes for a sequence and can say what to write
// instead. where is "for", "=" for an assignment to several variables, or "[:]" and the bounds of a slice.
type Refuser interface {
	Refuse(where string) error
}

// checks are the hidden values that all interpreters share, by name; addBounds has the others.
var checks = star.StringDict{
	"if":    &conditionCheck{where: "if"},
	"while": &conditionCheck{where: "while"},
	"and":   &conditionCheck{where: "and"},
	"or":    &conditionCheck{where: "or"},
	"not":   &conditionCheck{where: "not"},
	"for":   &sequenceCheck{where: "for"},
	"=":     &sequenceCheck{where: "="},
	"**":    keywordsCheck{},
	turn:    hiddenValue{},
}

// comparisons are the operators whose operands are asked.
var comparisons = []syntax.Token{syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE}

// turn is the name of the hidden value, always true, that begins the condition of some while loops.
const turn = "while true"

// globalTable is the name of the hidden table of global variables in REPL blocks.
const globalTable = "global"

// check is what the hidden values have in common.
type check interface{ hidden() }

// hiddenValue makes its holder a Starlark value.
type hiddenValue struct{}

func (hiddenValue) hidden()               {}
func (hiddenValue) String() string        { return "<hidden>" }
func (hiddenValue) Type() string          { return "hidden" }
func (hiddenValue) Freeze()               {}
func (hiddenValue) Truth() star.Bool      { return star.True }
func (hiddenValue) Hash() (uint32, error) { return 0, nil }

// conditionCheck is the X of X[v]: the value of v, if v may be a condition.
type conditionCheck struct {
	hiddenValue
	where string
}

func (c *conditionCheck) Get(v star.Value) (star.Value, bool, error) {
	if asked, ok := v.(Conditioner); ok {
		is, err := asked.Condition(c.where)
		return star.Bool(is), true, err
	}
	return v, true, nil
}

// truth is the truth of v as a condition.
func truth(v star.Value, where string) (bool, error) {
	if asked, ok := v.(Conditioner); ok {
		return asked.Condition(where)
	}
	return bool(v.Truth()), nil
}

// comparisonCheck is the X of X[v, w]: the value of v op w, a comparison.
type comparisonCheck struct {
	hiddenValue
	it        *Interp
	op        syntax.Token
	condition bool // the result is asked for its truth
}

func (c *comparisonCheck) Get(operands star.Value) (star.Value, bool, error) {
	pair := operands.(star.Tuple)
	x, y := pair[0], pair[1]
	op := c.op
	asked := asComparer(x)
	if asked == nil {
		if asked = asComparer(y); asked == nil {
			eq, err := c.it.compare(c.op, x, y)
			return star.Bool(eq), true, err
		}
		y = x
		op = mirrored(op)
	}
	v, err := asked.Compare(op.String(), y, c.condition)
	if err == nil && c.condition {
		if again, ok := v.(Conditioner); ok {
			is, err := again.Condition("if")
			return star.Bool(is), true, err
		}
	}
	return v, true, err
}

// mirrored is the operator that says the same with the operands swapped.
func mirrored(op syntax.Token) syntax.Token {
	switch op {
	case syntax.LT:
		return syntax.GT
	case syntax.LE:
		return syntax.GE
	case syntax.GT:
		return syntax.LT
	case syntax.GE:
		return syntax.LE
	}
	return op
}

// asComparer returns v as a Comparer, or nil. A failed conversion to an interface takes longer than to compare
// the common types first.
func asComparer(v star.Value) Comparer {
	switch v.(type) {
	case star.Int, star.String, star.Float, star.Bool, star.NoneType:
		return nil
	}
	asked, _ := v.(Comparer)
	return asked
}

// sequenceCheck is the X of X[v]: v, unless it refuses to be a sequence.
type sequenceCheck struct {
	hiddenValue
	where string
}

func (c *sequenceCheck) Get(v star.Value) (star.Value, bool, error) {
	if asked, ok := v.(Refuser); ok {
		return nil, false, asked.Refuse(c.where)
	}
	return v, true, nil
}

// maxKeywords is how many keyword arguments a dict may give a call. Starlark takes them one by one, and does not look
// meanwhile whether it is to stop.
const maxKeywords = 10_000

// keywordsCheck is the X of X[v] in f(**X[v]): v, unless it is too long.
type keywordsCheck struct{ hiddenValue }

func (keywordsCheck) Get(v star.Value) (star.Value, bool, error) {
	if n := star.Len(v); n > maxKeywords {
		return nil, false, fmt.Errorf("**: got %d keyword arguments, want at most %d; give the dict itself, without **",
			n, maxKeywords)
	}
	return v, true, nil
}

// globalsValue is the X of X["name"]: a global variable of the REPL session.
type globalsValue struct {
	hiddenValue
	vars star.StringDict
}

func (g *globalsValue) Get(name star.Value) (star.Value, bool, error) {
	key := string(name.(star.String))
	v, ok := g.vars[key]
	if !ok {
		return nil, false, fmt.Errorf("global variable %s referenced before assignment", key)
	}
	return v, true, nil
}

func (g *globalsValue) SetKey(name, v star.Value) error {
	g.vars[string(name.(star.String))] = v
	return nil
}

// pass rewrites a syntax tree in place, between parsing and resolving. Positions stay those of the source.
type pass struct {
	globals map[syntax.Position]bool // identifiers to look up in the global table; see Interp.parseBlock
}

func (p *pass) file(f *syntax.File) { f.Stmts = p.stmts(f.Stmts) }

// hidden returns name[y], where name is a hidden value and pos the place errors point at.
func hidden(name string, pos syntax.Position, y syntax.Expr) syntax.Expr {
	return &syntax.IndexExpr{X: &syntax.Ident{NamePos: pos, Name: name}, Lbrack: pos, Y: y, Rbrack: pos}
}

// global returns the access of a global variable of the REPL session.
func global(name string, pos syntax.Position) syntax.Expr {
	return hidden(globalTable, pos,
		&syntax.Literal{Token: syntax.STRING, TokenPos: pos, Raw: strconv.Quote(name), Value: name})
}

// bind returns the statement that copies a name bound by def or load to the global table.
func (p *pass) bind(id *syntax.Ident) []syntax.Stmt {
	if !p.globals[at(id.NamePos)] {
		return nil
	}
	return []syntax.Stmt{&syntax.AssignStmt{
		OpPos: id.NamePos, Op: syntax.EQ, LHS: global(id.Name, id.NamePos),
		RHS: &syntax.Ident{NamePos: id.NamePos, Name: id.Name},
	}}
}

func (p *pass) stmts(list []syntax.Stmt) []syntax.Stmt {
	var out []syntax.Stmt
	for _, s := range list {
		out = append(out, s)
		switch s := s.(type) {
		case *syntax.ExprStmt:
			s.X = p.expr(s.X)
		case *syntax.AssignStmt:
			s.LHS = p.expr(s.LHS)
			if several(s.LHS) {
				s.RHS = p.sequence(s.RHS, "=")
			} else {
				s.RHS = p.expr(s.RHS)
			}
			p.augmented(s)
		case *syntax.DefStmt:
			p.params(s.Params)
			s.Body = p.stmts(s.Body)
			out = append(out, p.bind(s.Name)...)
		case *syntax.IfStmt:
			s.Cond = p.cond(s.Cond, "if")
			s.True = p.stmts(s.True)
			s.False = p.stmts(s.False)
		case *syntax.WhileStmt:
			s.Cond = startAt(s.While, p.cond(s.Cond, "while"))
			s.Body = p.stmts(s.Body)
		case *syntax.ForStmt:
			s.Vars = p.expr(s.Vars)
			s.X = p.sequence(s.X, "for")
			s.Body = p.stmts(s.Body)
		case *syntax.ReturnStmt:
			if s.Result != nil {
				s.Result = p.expr(s.Result)
			}
		case *syntax.LoadStmt:
			for _, id := range s.To {
				out = append(out, p.bind(id)...)
			}
		}
	}
	return out
}

func (p *pass) params(list []syntax.Expr) {
	for _, param := range list {
		if b, ok := param.(*syntax.BinaryExpr); ok {
			b.Y = p.expr(b.Y)
		}
	}
}

func (p *pass) exprs(list []syntax.Expr) {
	for i := range list {
		list[i] = p.expr(list[i])
	}
}

// expr rewrites e where it is evaluated (or assigned to) as a value.
func (p *pass) expr(e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case *syntax.Ident:
		if p.globals[at(e.NamePos)] {
			return global(e.Name, e.NamePos)
		}
	case *syntax.ParenExpr:
		e.X = p.expr(e.X)
	case *syntax.UnaryExpr:
		switch {
		case e.Op == syntax.NOT:
			e.X = p.cond(e.X, "not")
		case e.X != nil:
			e.X = p.expr(e.X)
			switch e.Op {
			case syntax.STAR:
				e.X = hidden(argumentsName, e.OpPos, e.X)
			case syntax.STARSTAR:
				e.X = hidden("**", e.OpPos, e.X)
			}
		}
	case *syntax.BinaryExpr:
		return p.binary(e, false)
	case *syntax.CondExpr:
		e.Cond = p.cond(e.Cond, "if")
		e.True = p.expr(e.True)
		e.False = p.expr(e.False)
	case *syntax.CallExpr:
		e.Fn = p.expr(e.Fn)
		p.exprs(e.Args)
	case *syntax.DotExpr:
		e.X = p.expr(e.X)
		if slices.Contains(boundedMethods, e.Name.Name) {
			e.X = hidden(".", e.Dot, e.X)
		}
	case *syntax.IndexExpr:
		e.X = p.expr(e.X)
		e.Y = p.expr(e.Y)
	case *syntax.SliceExpr:
		e.X = p.sliced(e)
		for _, bound := range []*syntax.Expr{&e.Lo, &e.Hi, &e.Step} {
			if *bound != nil {
				*bound = p.expr(*bound)
			}
		}
	case *syntax.ListExpr:
		p.exprs(e.List)
	case *syntax.TupleExpr:
		p.exprs(e.List)
	case *syntax.DictExpr:
		p.exprs(e.List)
	case *syntax.DictEntry:
		e.Key = p.expr(e.Key)
		e.Value = p.expr(e.Value)
	case *syntax.LambdaExpr:
		p.params(e.Params)
		e.Body = p.expr(e.Body)
	case *syntax.Comprehension:
		e.Body = p.expr(e.Body)
		for _, clause := range e.Clauses {
			switch clause := clause.(type) {
			case *syntax.ForClause:
				clause.Vars = p.expr(clause.Vars)
				clause.X = p.sequence(clause.X, "for")
			case *syntax.IfClause:
				clause.Cond = p.cond(clause.Cond, "if")
			}
		}
	}
	return e
}

// binary rewrites a binary expression; condition says that its result is asked for its truth.
func (p *pass) binary(e *syntax.BinaryExpr, condition bool) syntax.Expr {
	switch e.Op {
	case syntax.EQ: // a keyword argument
		e.Y = p.expr(e.Y)
		return e
	case syntax.AND, syntax.OR:
		e.X = p.cond(e.X, e.Op.String())
		if condition {
			e.Y = p.cond(e.Y, e.Op.String())
		} else {
			e.Y = p.expr(e.Y) // the result, whose truth nobody asks
		}
		return e
	}
	e.X = p.expr(e.X)
	e.Y = p.expr(e.Y)
	switch {
	case makesMuch(e) && e.Op == syntax.PLUS: // one look at y costs less, and x alone is no more than there is
		e.Y = hidden("+", e.OpPos, e.Y)
		return e
	case e.Op == syntax.IN || e.Op == syntax.NOT_IN:
		switch e.Y.(type) {
		case *syntax.Ident, *syntax.DotExpr, *syntax.CallExpr, *syntax.IndexExpr:
			e.Y = hidden("in", e.OpPos, e.Y)
		}
		return e
	case makesMuch(e):
	case !slices.Contains(comparisons, e.Op), isLiteral(e.X) && isLiteral(e.Y):
		return e
	}
	name := e.Op.String()
	if condition {
		name = "if " + name
	}
	return hidden(name, e.OpPos, &syntax.TupleExpr{List: []syntax.Expr{e.X, e.Y}})
}

// makesMuch tells whether the operator may make a long text or list, or a large integer.
func makesMuch(e *syntax.BinaryExpr) bool {
	switch e.Op {
	case syntax.STAR:
		return !numeral(e.X, syntax.FLOAT) && !numeral(e.Y, syntax.FLOAT)
	case syntax.PLUS:
		return !numeral(e.X, syntax.FLOAT, syntax.INT) && !numeral(e.Y, syntax.FLOAT, syntax.INT)
	case syntax.PERCENT, syntax.PIPE:
		return !numeral(e.X, syntax.FLOAT, syntax.INT) && !numeral(e.Y, syntax.FLOAT, syntax.INT)
	}
	return false
}

func numeral(e syntax.Expr, kinds ...syntax.Token) bool {
	lit, ok := e.(*syntax.Literal)
	return ok && slices.Contains(kinds, lit.Token)
}

// augmented rewrites s if it is x *= y and the like: into x = x * y, or where x is more than a name, so that y
// bounds the work.
func (p *pass) augmented(s *syntax.AssignStmt) {
	op, ok := map[syntax.Token]syntax.Token{syntax.STAR_EQ: syntax.STAR, syntax.PERCENT_EQ: syntax.PERCENT}[s.Op]
	switch {
	case s.Op == syntax.PLUS_EQ:
		if !numeral(s.RHS, syntax.INT, syntax.FLOAT) {
			s.RHS = hidden("+=", s.OpPos, s.RHS)
		}
	case !ok || numeral(s.RHS, syntax.FLOAT):
	default:
		s.RHS = hidden("*=", s.OpPos, s.RHS)
		if id, ok := s.LHS.(*syntax.Ident); ok {
			x := &syntax.Ident{NamePos: id.NamePos, Name: id.Name}
			s.RHS = hidden(op.String(), s.OpPos, &syntax.TupleExpr{List: []syntax.Expr{x, s.RHS.(*syntax.IndexExpr).Y}})
			s.Op = syntax.EQ
		}
	}
}

// sequence rewrites e where its elements are asked for.
func (p *pass) sequence(e syntax.Expr, where string) syntax.Expr {
	switch e.(type) {
	case *syntax.Literal, *syntax.ListExpr, *syntax.DictExpr, *syntax.TupleExpr, *syntax.Comprehension:
		return p.expr(e)
	}
	return hidden(where, syntax.Start(e), p.expr(e))
}

// several tells whether an assignment to e takes its right side apart.
func several(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return several(e.X)
	case *syntax.TupleExpr, *syntax.ListExpr:
		return true
	}
	return false
}

// sliced rewrites what e takes a slice of.
func (p *pass) sliced(e *syntax.SliceExpr) syntax.Expr {
	bounds := "(" + bound(e.Lo) + ", " + bound(e.Hi)
	if e.Step != nil {
		bounds += ", " + bound(e.Step)
	}
	return hidden("[:]", e.Lbrack, &syntax.TupleExpr{List: []syntax.Expr{p.expr(e.X),
		&syntax.Literal{Token: syntax.STRING, TokenPos: e.Lbrack, Raw: strconv.Quote(bounds + ")"),
			Value: bounds + ")"}}})
}

// bound is a bound of a slice as a message shows it, if it is a number.
func bound(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.Literal:
		return e.Raw
	case *syntax.UnaryExpr:
		if lit, ok := e.X.(*syntax.Literal); ok && e.Op == syntax.MINUS {
			return "-" + lit.Raw
		}
	case *syntax.Ident:
		return e.Name
	}
	return "None"
}

// cond rewrites e where its truth is asked by where.
func (p *pass) cond(e syntax.Expr, where string) syntax.Expr {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		e.X = p.cond(e.X, where)
		return e
	case *syntax.UnaryExpr:
		if e.Op == syntax.NOT {
			return p.expr(e)
		}
	case *syntax.BinaryExpr:
		switch e.Op {
		case syntax.AND, syntax.OR:
			return p.binary(e, true)
		}
		if slices.Contains(comparisons, e.Op) {
			return p.binary(e, true)
		}
	case *syntax.Ident:
		if e.Name == "True" || e.Name == "False" {
			return p.expr(e)
		}
	case *syntax.Literal, *syntax.ListExpr, *syntax.DictExpr, *syntax.TupleExpr, *syntax.Comprehension,
		*syntax.LambdaExpr:
		return p.expr(e)
	}
	pos := syntax.Start(e)
	return hidden(where, pos, p.expr(e))
}

// startAt returns cond such that its first instruction has a place in the source: pos unless it has one. Starlark
// gives a place only to what can fail, so an interrupt of `while True: pass` would point at what came before it.
func startAt(pos syntax.Position, cond syntax.Expr) syntax.Expr {
	if id, ok := leftmost(cond).(*syntax.Ident); ok && !star.Universe.Has(id.Name) { // as True is
		return cond
	}
	return &syntax.BinaryExpr{X: &syntax.Ident{NamePos: pos, Name: turn}, OpPos: pos, Op: syntax.AND, Y: cond}
}

// leftmost is the part of a condition that is evaluated first.
func leftmost(e syntax.Expr) syntax.Expr {
	for {
		switch x := e.(type) {
		case *syntax.BinaryExpr:
			e = x.X
		case *syntax.IndexExpr:
			e = x.X
		case *syntax.ParenExpr:
			e = x.X
		default:
			return e
		}
	}
}

func isLiteral(e syntax.Expr) bool {
	_, ok := e.(*syntax.Literal)
	return ok
}
