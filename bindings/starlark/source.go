package starlark

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.starlark.net/resolve"
	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"
	"golang.org/x/text/width"
)

// Place is a point in a script. Line and Col count from 1, Col in characters.
type Place struct {
	File      string
	Line, Col int
	Func      string // the function the point is in; "<toplevel>" outside of all
}

func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// Error is what a run ended with. It marks the name of the function called, the attribute, the operator or
// the condition that failed. Unwrap leads to the Go error behind it, and to the context's error if the run
// was cancelled.
type Error struct {
	Msg    string  // one line; two of a UsageError
	Place          // Line is 0 if the error belongs to no place in a script
	Source string  // the line of the script at Place
	Calls  []Place // the calls in progress, innermost first
	Stack  []byte  // the Go stack, for an internal error

	cause error
}

func (e *Error) Unwrap() error { return e.cause }

// maxCallsShown bounds the lines of a backtrace; of a longer one the two ends are shown.
const maxCallsShown = 12

// Error renders the message with its place, the line of source with a caret, and the calls.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Msg
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Place, e.Msg)
	if text, mark := excerpt(e.Source, e.Col); text != "" {
		fmt.Fprintf(&b, "\n    %s\n    %s", text, mark)
	}
	for i, call := range e.Calls {
		if skipped := len(e.Calls) - maxCallsShown; skipped > 0 && i >= maxCallsShown/2 {
			if i < maxCallsShown/2+skipped {
				if i == maxCallsShown/2 {
					fmt.Fprintf(&b, "\n  … %d more calls …", skipped)
				}
				continue
			}
		}
		fmt.Fprintf(&b, "\n  called from %s", call)
		if call.Func != topLevel && call.Func != blockExpr {
			fmt.Fprintf(&b, " in %s", call.Func)
		}
	}
	return b.String()
}

// Starlark's names for the code outside of functions, in a file and in an expression.
const (
	topLevel  = "<toplevel>"
	blockExpr = "<expr>"
)

// sources keeps the text of everything that was run, by name, for errors to quote.
type sources map[string]string

// line returns a line of source without its end.
func (s sources) line(file string, n int) string {
	lines := strings.Split(s[file], "\n")
	if n < 1 || n > len(lines) {
		return ""
	}
	return strings.TrimRight(lines[n-1], "\r \t")
}

// locate makes an Error of what a run returned.
func (it *Interp) locate(err error) *Error {
	stack := callStack(err)
	cause := innermost(err)
	e := &Error{Msg: cause.Error(), cause: err}

	var misused *UsageError
	if errors.As(cause, &misused) && it.stopped.Load() == nil {
		return e
	}
	var bug *panicError
	if errors.As(err, &bug) {
		e.Stack = bug.stack
	}
	var calls []Place
	for _, frame := range slices.Backward(stack) {
		if frame.Pos.Line > 0 { // else a builtin
			calls = append(calls, it.sources.place(frame))
		}
	}
	var badSyntax syntax.Error
	var unresolved resolve.ErrorList
	switch {
	case it.stopped.Load() != nil:
		why := it.stopped.Load()
		e.Msg, e.cause = why.msg, why
	case errors.As(cause, &badSyntax):
		e.Place, e.Msg = it.sources.syntaxError(badSyntax)
		e.Calls = calls
	case errors.As(cause, &unresolved):
		e.Place, e.Msg = it.unresolved(unresolved)
		e.Calls = calls
	default:
		e.Msg = loadMessage(e.Msg)
	}
	if e.Line == 0 && len(calls) > 0 {
		if m := badArguments.FindStringSubmatch(e.Msg); m != nil && len(calls) > 1 && m[1] == calls[0].Func {
			calls = calls[1:] // the mistake is in the call
		}
		e.Place, e.Calls = calls[0], calls[1:]
		before, after := it.sources.around(e.Place)
		e.Msg = runtimeHint(e.Msg, before, after)
	}
	e.Source = it.sources.line(e.File, e.Line)
	return e
}

// notLoaded matches what Starlark says of a module that could not be loaded.
var notLoaded = regexp.MustCompile(`^cannot load (.*?): (.*)$`)

// loadMessage begins a message about loading as the others begin, and names the module once.
func loadMessage(msg string) string {
	m := notLoaded.FindStringSubmatch(msg)
	switch {
	case m == nil:
		return msg
	case strings.Contains(m[2], path.Base(m[1])):
		return "load: " + m[2]
	}
	return "load: " + m[1] + ": " + m[2]
}

// badArguments matches what Starlark says, in the frame of the function called, of arguments that do not fit.
var badArguments = regexp.MustCompile(`^function (\S+) (accepts|missing|got) `)

// callStack returns the stack at the deepest point err comes from, outermost call first. A failed load has an
// error for every module on the way; the innermost has the whole stack.
func callStack(err error) star.CallStack {
	var stack star.CallStack
	for {
		var failed *star.EvalError
		if !errors.As(err, &failed) {
			return stack
		}
		stack = failed.CallStack
		err = failed.Unwrap()
	}
}

// innermost returns the error below all of Starlark's wrapping.
func innermost(err error) error {
	for {
		var failed *star.EvalError
		if !errors.As(err, &failed) || failed.Unwrap() == nil {
			return err
		}
		err = failed.Unwrap()
	}
}

// place returns where in the source frame is, at the point the reader should look at.
func (s sources) place(frame star.CallFrame) Place {
	p := Place{File: frame.Pos.Filename(), Line: int(frame.Pos.Line), Col: int(frame.Pos.Col), Func: frame.Name}
	p.Col = pointer(s.line(p.File, p.Line), p.Col)
	return p
}

var (
	nameBefore    = regexp.MustCompile(`[\pL_][\pL\d_]*$`)
	nameAfterDot  = regexp.MustCompile(`^\.\s*`)
	operandOfFor  = regexp.MustCompile(`^for\s.*?\sin\s+`)
	operandOfLoad = regexp.MustCompile(`^load\s*\(\s*`)
)

// pointer moves the column of an instruction to what a reader would call its place: from the parenthesis of
// a call to the function's name, from a dot to the attribute, from for and load to what they go through.
func pointer(line string, col int) int {
	runes := []rune(line)
	if col < 1 || col > len(runes) {
		return col
	}
	before, after := string(runes[:col-1]), string(runes[col-1:])
	if after[0] == '(' {
		return col - len([]rune(nameBefore.FindString(before)))
	}
	for _, skip := range []*regexp.Regexp{nameAfterDot, operandOfFor, operandOfLoad} {
		if s := skip.FindString(after); s != "" {
			return col + len([]rune(s))
		}
	}
	return col
}

// maxExcerpt is how many characters of a line of source are shown.
const maxExcerpt = 110

// excerpt returns a line without its indentation and the line with a caret to go under it. Of a very long
// line it returns the part around col.
func excerpt(line string, col int) (text, mark string) {
	runes := []rune(line)
	col = min(max(col, 1), len(runes)+1)
	start := len(runes) - len([]rune(strings.TrimLeft(line, " \t")))
	start = min(start, col-1)
	end := len(runes)
	left, right := "", ""
	if end-start > maxExcerpt {
		if col-1-start > maxExcerpt/2 {
			start, left = col-1-maxExcerpt/2, "…"
		}
		if end-start > maxExcerpt {
			end, right = start+maxExcerpt, "…"
		}
	}
	var pad strings.Builder
	pad.WriteString(strings.Repeat(" ", len([]rune(left))))
	for _, r := range runes[start : col-1] {
		switch {
		case r == '\t':
			pad.WriteByte('\t')
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case isWide(r):
			pad.WriteString("  ")
		default:
			pad.WriteByte(' ')
		}
	}
	return left + string(runes[start:end]) + right, pad.String() + "^"
}

// isWide reports whether terminals give r two columns.
func isWide(r rune) bool {
	kind := width.LookupRune(r).Kind()
	return kind == width.EastAsianWide || kind == width.EastAsianFullwidth
}

// syntaxError returns where and what a syntax error is, in terms of our dialect where it is a habit of Python's.
func (s sources) syntaxError(e syntax.Error) (Place, string) {
	p := Place{File: e.Pos.Filename(), Line: int(e.Pos.Line), Col: int(e.Pos.Col), Func: topLevel}
	p = s.tokenStart(p, e.Msg)
	before, after := s.around(p)
	return p, syntaxHabit(e.Msg, before, after)
}

// around is what stands before and after p on its line.
func (s sources) around(p Place) (before, after string) {
	runes := []rune(s.line(p.File, p.Line))
	cut := min(max(p.Col-1, 0), len(runes))
	return string(runes[:cut]), string(runes[cut:])
}

// wanted matches the parser's errors that it reports at the end of the token it got, not at its start.
var wanted = regexp.MustCompile(`^got (.+), want (.+)$`)

// chained matches the parser's error of an operator that cannot follow another, reported at its end.
var chained = regexp.MustCompile(`does not associate with (\S+)`)

// stringBefore matches a string literal on one line.
var stringBefore = regexp.MustCompile(`[rb]*("([^"\\]|\\.)*"|'([^'\\]|\\.)*')$`)

// tokenStart moves p from the end of the token that the parser did not want to its start.
func (s sources) tokenStart(p Place, msg string) Place {
	if m := chained.FindStringSubmatch(msg); m != nil {
		p.Col -= len(m[1])
		return p
	}
	m := wanted.FindStringSubmatch(msg)
	if m == nil {
		return p
	}
	if p.Line > 1 && p.Col == 1 && (m[1] == "newline" || m[1] == "end of file") {
		p.Line--
		p.Col = len([]rune(s.line(p.File, p.Line))) + 1
		return p
	}
	if m[2] == "primary expression" {
		return p
	}
	runes := []rune(s.line(p.File, p.Line))
	before := string(runes[:min(p.Col-1, len(runes))])
	var token string
	switch got := strings.Trim(m[1], "'"); {
	case got == "string literal":
		token = stringBefore.FindString(before)
	case strings.HasSuffix(before, got): // an operator or a keyword
		token = got
	default: // an identifier or a number
		token = before[len(strings.TrimRightFunc(before, isWordRune)):]
	}
	p.Col -= len([]rune(token))
	return p
}

func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// unresolved returns where and what the first of the errors of a file is.
func (it *Interp) unresolved(list resolve.ErrorList) (Place, string) {
	first := slices.MinFunc(list, func(a, b resolve.Error) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	p := Place{File: first.Pos.Filename(), Line: int(first.Pos.Line), Col: int(first.Pos.Col), Func: topLevel}
	msg := resolveHint(first.Msg, it.sources.line(p.File, p.Line), it.Names())
	if more := len(list) - 1; more > 0 {
		msg += fmt.Sprintf(" (and %d more)", more)
	}
	return p, msg
}
