package starlark

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.starlark.net/syntax"

	"github.com/fucina-go/fucina/core"
)

// This file pastes the fixes that messages end with into the scripts that caused them.

// hintForms are the forms of a hint: see core.Error.
var hintForms = regexp.MustCompile(`^(?:use (.+)|did you mean (.+)\?(?: \(and \d+ more\))?|(.*?): (.+))$`)

// fixOf is the fix at the end of a message, and the words before it.
func fixOf(msg string) (words, fix string) {
	_, hint, _ := strings.Cut(msg, "; ")
	switch m := hintForms.FindStringSubmatch(hint); {
	case m == nil:
		return "", ""
	case m[1] != "":
		return "use", m[1]
	case m[2] != "":
		return "did you mean", m[2]
	default:
		return m[3], m[4]
	}
}

// checkFix insists on a fix that, pasted, makes the script run.
func (m *mistake) checkFix(t *testing.T, failed *Error) {
	words, fix := fixOf(failed.Msg)
	if fix == "" {
		t.Errorf("no fix: %s", failed.Msg)
		return
	}
	if _, err := dialect.Parse("fix", fix, 0); err != nil {
		t.Errorf("the fix %s: %v", fix, err)
		return
	}
	fixed := m.src
	if len(m.paste) > 0 {
		for _, p := range m.paste {
			fixed = strings.Replace(fixed, p[0], strings.ReplaceAll(p[1], "FIX", fix), 1)
		}
	} else {
		call := findCall(t, m, failed)
		if call == nil {
			t.Errorf("nothing at %v to paste %s for", failed.Place, fix)
			return
		}
		begin, end := call.place(words, fix)
		fixed = m.src[:begin] + call.bind(fix) + m.src[end:]
	}
	if fixed == m.src {
		t.Errorf("the fix %s changes nothing", fix)
	}
	if err := m.run(t, fixed); err != nil {
		t.Errorf("%s\nis, with the fix,\n%s\n%v", failed.Msg, fixed, err)
	}
}

// span is a part of a program, by bytes.
type span struct{ begin, end int }

// param is a parameter of a call and the expression given for it.
type param struct {
	name, text string
	span
}

// found is the call, operator or other expression that a message is about.
type found struct {
	span           // all of it
	op      string // what the message begins with
	callee  span   // what is called, or the attribute
	literal span   // the first argument, if it is a text
	stmt    span   // the statement
	params  []param
}

// place is where the fix goes.
func (f *found) place(words, fix string) (begin, end int) {
	calls := regexp.MustCompile(`\b` + regexp.QuoteMeta(f.op) + `\(`).MatchString(fix)
	whole := calls || strings.HasSuffix(words, "instead") || strings.HasPrefix(words, "as in")
	switch {
	case statements.MatchString(fix):
		return f.stmt.begin, f.stmt.end
	case strings.HasPrefix(fix, `"`):
		return f.literal.begin, f.literal.end
	case words == "did you mean" && !strings.HasSuffix(fix, ")"):
		return f.callee.begin, f.callee.end
	case whole || words == "did you mean":
		return f.begin, f.end
	}
	p := f.first(fix)
	return p.begin, p.end
}

// statements matches a fix that is no expression.
var statements = regexp.MustCompile(`; |^[\w, ]+ = `)

// first is the operand that the fix is about: the one it names first.
func (f *found) first(fix string) span {
	where, best := len(fix), f.span
	for _, p := range f.params {
		name := regexp.MustCompile(`(^|[^\w.])` + regexp.QuoteMeta(p.name) + `($|[^\w=])`)
		at := name.FindStringIndex(fix)
		if at != nil && (at[0] < where || at[0] == where && strings.Contains(p.name, "[")) {
			where, best = at[0], p.span
		}
	}
	return best
}

// bind writes the script's own expressions for the parameters in the fix.
func (f *found) bind(fix string) string {
	parsed, err := dialect.Parse("fix", fix, 0)
	if err != nil || strings.Contains(fix, "; ") {
		return fix // statements of their own
	}
	type edit struct {
		at   int
		p    param
		size int
	}
	var edits []edit
	var bound []string
	skip := map[*syntax.Ident]bool{}
	syntax.Walk(parsed, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.LambdaExpr:
			for _, p := range n.Params {
				bound = append(bound, p.(*syntax.Ident).Name)
			}
		case *syntax.ForClause:
			bound = append(bound, n.Vars.(*syntax.Ident).Name)
		case *syntax.DotExpr:
			skip[n.Name] = true
		case *syntax.CallExpr:
			for _, arg := range n.Args {
				if b, ok := arg.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
					skip[b.X.(*syntax.Ident)] = true
				}
			}
		case *syntax.Ident:
			i := slices.IndexFunc(f.params, func(p param) bool { return p.name == n.Name })
			if i >= 0 && !skip[n] && !slices.Contains(bound, n.Name) {
				edits = append(edits, edit{int(n.NamePos.Col) - 1, f.params[i], len(n.Name)})
			}
		}
		return true
	})
	slices.SortFunc(edits, func(a, b edit) int { return b.at - a.at })
	for _, e := range edits {
		text := e.p.text
		if strings.ContainsAny(text, " +-*/<") && !strings.HasPrefix(text, "[") {
			text = "(" + text + ")"
		}
		fix = fix[:e.at] + text + fix[e.at+e.size:]
	}
	return fix
}

// finder looks for what a message is about.
type finder struct {
	src    string
	place  Place
	op     string
	result *found
	stmt   span
}

// findCall is what the message is about, nil if it is nothing whole.
func findCall(t *testing.T, m *mistake, failed *Error) *found {
	t.Helper()
	f, err := dialect.Parse(misuseName, m.src, 0)
	if err != nil {
		return nil
	}
	name, _, _ := strings.Cut(failed.Msg, ": ")
	misused := (*core.Error)(nil)
	if errors.As(failed, &misused) {
		name = misused.Op
	}
	find := &finder{src: m.src, place: failed.Place, op: name}
	syntax.Walk(f, find.visit)
	return find.result
}

func (f *finder) offset(p syntax.Position) int {
	at := 0
	for range p.Line - 1 {
		at += strings.IndexByte(f.src[at:], '\n') + 1
	}
	return at + int(p.Col) - 1
}

func (f *finder) span(n syntax.Node) span {
	begin, end := n.Span()
	s := span{f.offset(begin), f.offset(end)}
	switch n.(type) {
	case *syntax.IndexExpr, *syntax.SliceExpr: // Span leaves out the bracket
		s.end++
	}
	return s
}

func (f *finder) at(p syntax.Position) bool {
	return int(p.Line) == f.place.Line && int(p.Col) == f.place.Col
}

func (f *finder) param(name string, n syntax.Node) param {
	s := f.span(n)
	return param{name, f.src[s.begin:s.end], s}
}

func (f *finder) take(n syntax.Node, params ...param) {
	if f.result == nil {
		s := f.span(n)
		f.result = &found{span: s, op: f.op, callee: s, stmt: f.stmt, params: params}
	}
}

// visit takes the outermost node at the place that is of the right kind.
func (f *finder) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.ExprStmt:
		f.stmt = f.span(n)
	case *syntax.LoadStmt:
		if f.op == "load" {
			f.take(n)
			f.result.literal = f.span(n.Module)
		}
	case *syntax.AssignStmt:
		f.stmt = f.span(n)
		if index, ok := n.LHS.(*syntax.IndexExpr); ok && f.at(index.Lbrack) {
			f.take(n, f.param("x", index.X), f.param("k", index.Y), f.param("v", n.RHS))
		}
		f.operand(n.RHS, "assignment")
	case *syntax.IfStmt:
		f.operand(n.Cond, "if")
	case *syntax.WhileStmt:
		f.operand(n.Cond, "while")
	case *syntax.CondExpr:
		f.operand(n.Cond, "if")
	case *syntax.ForStmt:
		f.operand(n.X, "for")
	case *syntax.ForClause:
		f.operand(n.X, "for")
	case *syntax.IfClause:
		f.operand(n.Cond, "if")
	case *syntax.UnaryExpr:
		f.operand(n.X, n.Op.String())
		if f.at(n.OpPos) {
			f.take(n, f.param("x", n.X))
		}
	case *syntax.BinaryExpr:
		f.operand(n.X, n.Op.String())
		f.operand(n.Y, n.Op.String())
		if f.at(n.OpPos) {
			f.binary(n)
		}
	case *syntax.IndexExpr:
		if f.at(n.Lbrack) {
			f.take(n, f.param("x", n.X), f.param("k", n.Y))
		}
	case *syntax.SliceExpr:
		if f.at(n.Lbrack) {
			f.take(n, f.param("x", n.X))
		}
	case *syntax.DictEntry:
		if f.at(n.Colon) {
			f.take(n.Key, f.param("x", n.Key))
		}
	case *syntax.CallExpr:
		f.call(n)
	case *syntax.DotExpr:
		if f.at(n.Name.NamePos) {
			f.take(n, f.param("x", n.X))
		}
	}
	return true
}

// operand takes e if it is what the word of the message asked.
func (f *finder) operand(e syntax.Expr, word string) {
	for {
		p, ok := e.(*syntax.ParenExpr)
		if !ok {
			break
		}
		e = p.X
	}
	if e != nil && f.op == word && f.at(syntax.Start(e)) {
		f.take(e, f.param("x", e))
	}
}

func (f *finder) binary(n *syntax.BinaryExpr) {
	x, y := n.X, n.Y
	_, number := x.(*syntax.Literal)
	compared := comparisonOps[n.Op.String()]
	if compared != "" && (number || compared != f.op) || isText(x) {
		x, y = y, x
	}
	f.take(n, f.param("x", x), f.param("y", y))
}

func isText(e syntax.Expr) bool {
	lit, ok := e.(*syntax.Literal)
	return ok && lit.Token == syntax.STRING
}

// call takes the call of a method or a function at the place.
func (f *finder) call(n *syntax.CallExpr) {
	var params []param
	names := f.paramNames()
	switch fn := n.Fn.(type) {
	case *syntax.DotExpr:
		if !f.at(fn.Name.NamePos) {
			return
		}
		params = append(params, f.param(names[0], fn.X))
		names = names[1:]
	case *syntax.Ident:
		if !f.at(fn.NamePos) {
			return
		}
	default:
		return
	}
	for i, arg := range n.Args {
		if b, ok := arg.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			params = append(params, f.param(b.X.(*syntax.Ident).Name, b.Y))
			continue
		}
		if len(names) == 0 {
			break
		}
		if _, list := arg.(*syntax.ListExpr); f.takesTensors(names[0]) && !list {
			params = append(params, f.arguments(names[0], n.Args[i:])...)
			break
		}
		params = append(params, f.argument(names[0], arg)...)
		names = names[1:]
	}
	f.take(n, params...)
	f.result.callee = f.span(n.Fn)
	if len(n.Args) > 0 {
		f.result.literal = f.span(n.Args[0])
	}
}

// argument is an argument as a parameter, and, if it is a list of tensors, its elements as parameters of their own.
func (f *finder) argument(name string, arg syntax.Expr) []param {
	params := []param{f.param(name, arg)}
	list, ok := arg.(*syntax.ListExpr)
	if info := core.Lookup(f.op); ok && (info == nil || isMethod(info) && name == "x") {
		return append(params, f.param("xs", arg))
	}
	if ok {
		for i, item := range list.List {
			params = append(params, f.param(fmt.Sprintf("%s[%d]", name, i), item))
		}
	}
	return params
}

// takesTensors tells whether the parameter takes a list of tensors, or several.
func (f *finder) takesTensors(name string) bool {
	info := core.Lookup(f.op)
	return info != nil && slices.ContainsFunc(info.Fields, func(field core.Field) bool {
		return field.Name == name && field.Kind == core.KindTensors
	})
}

// arguments is the arguments up to the first text as one parameter that takes several, and one by one.
func (f *finder) arguments(name string, args []syntax.Expr) (params []param) {
	var texts []string
	for i, arg := range args {
		if b, ok := arg.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ || isText(arg) {
			break
		}
		params = append(params, f.param(fmt.Sprintf("%s[%d]", name, i), arg))
		texts = append(texts, params[i].text)
	}
	list := param{name: name, text: "[" + strings.Join(texts, ", ") + "]"}
	return append(params, list)
}

// paramNames are the names of the parameters of what was called.
func (f *finder) paramNames() []string {
	info := core.Lookup(f.op)
	if f.op == "matmul" {
		info = core.Lookup("dot")
	}
	if info == nil {
		names := map[string][]string{"backward": {"loss"}, "grad": {"outputs", "inputs"}, "sorted": {"xs"},
			"max": {"xs"},
			"min": {"xs"}}[f.op]
		return append(names, "x", "y", "z")
	}
	var names []string
	for i := range info.Fields {
		if !info.Fields[i].Rest {
			names = append(names, info.Fields[i].Name)
		}
	}
	return append(names, "", "")
}
