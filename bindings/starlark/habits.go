package starlark

import (
	"fmt"
	"regexp"
	"strings"
)

// This file answers habits brought from Python and NumPy with the way to do it here.

// habit is one of them: what an error looks like and what to say.
type habit struct {
	msg  *regexp.Regexp // matches the parser's message
	code *regexp.Regexp // matches the line of source, with ‸ before the place of the error
	say  string         // may use the groups of code
}

func spot(msg, code, say string) habit {
	return habit{regexp.MustCompile(msg), regexp.MustCompile(code), say}
}

const (
	namesAxis  = `there are no positions of axes; name the axis: x.slice(seq=(1, 5)), x.at(seq=-1)`
	sayCatch   = `there is no try; use r = catch(fn, x) and look at r.error and r.value`
	sayLoad    = `there is no import; use load("@stdlib//nn.star", "nn"); tensors, json and math are built in`
	sayOuter   = `a function cannot assign an outer variable; return the value, or keep it in a list, dict or struct`
	sayNoStar  = `there is no * in a list or an assignment; add lists, or slice: a, b = xs[0], xs[1:]`
	sayNoTypes = `there are no type annotations; write the type in a comment or the doc string`
)

// syntaxHabits are tried in order on a syntax error; the answer replaces the parser's message.
var syntaxHabits = []habit{
	spot(``, `^\s*‸@\w`, `there are no decorators; write f = decorator(f) below the def`),
	spot(``, `([\w.]+)\s*‸@=\s*([\w.]+)`, `there is no @=; use $1 = $1.dot($2, "axis")`),
	spot(``, `([\w.]+)\s*‸@\s*([\w.]+)`, `there is no @; use $1.dot($2, "axis") with the axis to sum over`),
	spot(``, `‸@`, `there is no @; use x.dot(w, "axis") with the axis to sum over`),
	spot(``, `[{,]\s*‸\*\*`, `there is no ** in a dict; use a | b`),
	spot(``, `([\w.]+)\s*‸\*\*=?\s*([\w.]+)`, `there is no **; use $1.pow($2), or pow($1, $2) for numbers`),
	spot(``, `‸\*\*`, `there is no **; use x.pow(2), or pow(x, 2) for numbers`),
	spot(`want primary`, `[[,=(]\s*‸\*|^\s*‸\*`, sayNoStar),

	spot(``, `‸with\b`, `there is no with; use scope(fn), which frees what fn made and returns its result`),
	spot(``, `‸(try|except|finally)\b`, sayCatch),
	spot(``, `‸raise\b`, `there is no raise; use fail("message")`),
	spot(``, `‸class\b`, `there are no classes; use struct(name=value), a dict, or functions inside a function`),
	spot(``, `‸(import|from)\b`, sayLoad),
	spot(``, `‸yield\b`, `there are no generators; return a list`),
	spot(``, `‸(async|await)\b`, `there is no async; calls run one after the other`),
	spot(``, `‸del\b`, `there is no del; use x.free() for a tensor, d.pop(key) for a dict`),
	spot(``, `‸(global|nonlocal)\b`, sayOuter),
	spot(``, `([\w.]+)\s*‸is not\s+([\w.]+)`, `there is no is; use $1 != $2`),
	spot(``, `([\w.]+)\s*‸is\s+([\w.]+)`, `there is no is; use $1 == $2`),
	spot(``, `‸is\b`, `there is no is; use == or !=`),
	spot(``, `\bassert\s*‸`, `there is no assert; use if not ok: fail("message")`),
	spot(``, `^\s*match\s.*‸`, `there is no match; use if, elif and else`),
	spot(``, `\bprint\s+‸`, `print is a function; use print(x)`),

	spot(`got ','`, `\[[^][]*:[^][]*‸,`, namesAxis),
	spot(`got ','`, `\[\s*‸,|\[:\s*‸,`, namesAxis),
	spot(``, `\[\.*‸\.`, namesAxis),
	spot(`does not associate`, ``, `comparisons do not chain; use a < x and x < b`),

	spot(``, `(\w+)\s*‸:=`, `there is no :=; assign $1 on a line of its own`),
	spot(`got ':', want '\)'|got ':', want newline`, `\w\s*‸:`, sayNoTypes),
	spot(``, `\)\s*‸->`, sayNoTypes),
	spot(`got for, want ':'`, ``, `there are no set comprehensions; use set([x for x in xs])`),
	spot(`got for`, ``, `there are no generators; use a list: [x for x in xs]`),
	spot(`got ',', want ':'`, `\{[^{}:]*‸,`, `there are no set literals; use set([a, b])`),

	spot(``, `‸\d+_\d`, `numbers are written without underscores`),
	spot(``, `‸\d+[jJ]\b`, `there are no complex numbers`),
	spot(`got string literal`, `\b[uU]‸`, `strings need no u; they are Unicode`),
	spot(`got string literal`, ``, `strings that follow one another are not joined; put a + between them`),
	spot(``, `‸[“”„‘’]`, `these are typographic quotes; use " or '`),
	spot(``, "‸\u00a0", `here is a no-break space; use an ordinary one`),

	spot(``, `(\+\+|--)\s*(#.*)?‸`, `there is no ++ or --; use x += 1`),
	spot(``, `&‸&`, `there is no &&; use and`),
	spot(``, `\|‸\|`, `there is no ||; use or`),
	spot(``, `‸!`, `there is no !; use not`),
	spot(``, `‸\?`, `there is no ?:; use a if cond else b`),
	spot(`got '=', want ':'`, ``, `= assigns; compare with ==`),
	spot(`got '=', want newline`, `=.*‸=`, `one assignment assigns once; use a = v and then b = a`),
	spot(``, `[(,]\s*‸(\w+)\s*=`, `$1 is a reserved word; write ${1}_=, or give the names in a dict: {"$1": …}`),
	spot(`not an identifier`, `\.(\w+)‸`, `$1 is a reserved word and cannot be a field`),
}

var fString = regexp.MustCompile(`\b([fF][rR]?|[rR][fF])‸(["'].*)`)

// syntaxHabit returns what to say of a syntax error between before and after on its line.
func syntaxHabit(msg, before, after string) string {
	line := before + "‸" + after
	if m := fString.FindStringSubmatch(line); m != nil {
		return "there are no f-strings; use " + formatCall(m[2])
	}
	for _, h := range syntaxHabits {
		if !h.msg.MatchString(msg) {
			continue
		}
		if at := h.code.FindStringSubmatchIndex(line); at != nil {
			return string(h.code.ExpandString(nil, h.say, line, at))
		}
	}
	return msg
}

var (
	stringLiteral = regexp.MustCompile(`^("([^"\\]|\\.)*"|'([^'\\]|\\.)*')`)
	fStringField  = regexp.MustCompile(`\{([^{}!:]+)(![rs])?(:[^{}]*)?\}`)
)

// formatCall returns the call of fmt that says what the f-string at the start of code says, if it is a simple
// one, or else an example.
func formatCall(code string) string {
	literal := stringLiteral.FindString(code)
	var args strings.Builder
	format := fStringField.ReplaceAllStringFunc(literal, func(field string) string {
		m := fStringField.FindStringSubmatch(field)
		args.WriteString(", " + strings.TrimSpace(m[1]))
		return "{" + m[2] + m[3] + "}"
	})
	if args.Len() == 0 || strings.Count(format, "{") != strings.Count(args.String(), ", ") {
		return `fmt("loss {:.4f}", loss)`
	}
	return fmt.Sprintf("fmt(%s%s)", format, &args)
}

// undefinedHabits answer names of Python's that do not exist.
var undefinedHabits = map[string]string{
	"isinstance": `use type(x) == "int"`,
	"map":        `use [f(x) for x in xs]`,
	"filter":     `use [x for x in xs if f(x)]`,
	"reduce":     `use a loop`,
	"iter":       `use a for loop`,
	"next":       `use a for loop`,
	"open":       `scripts read files through the functions of their modules`,
	"format":     `use fmt("{:.4f}", x)`,
	"assert":     `use if not ok: fail("message")`,
	"divmod":     `use x // y and x % y`,
	"frozenset":  `use a tuple`,
	"callable":   `use type(f) in ("function", "builtin_function_or_method")`,
	"self":       `there are no classes; use struct(name=value) or functions inside a function`,
	"super":      `there are no classes; use struct(name=value) or functions inside a function`,
	"object":     `there are no classes; use struct(name=value)`,
	"Exception":  `use fail("message")`,
	"ValueError": `use fail("message")`,
	"true":       `use True`,
	"false":      `use False`,
	"null":       `use None`,
	"nil":        `use None`,
	"np":         `tensors are built in: zeros(batch=2), x.dot(w, "axis")`,
	"numpy":      `tensors are built in: zeros(batch=2), x.dot(w, "axis")`,
	"torch":      `tensors are built in: zeros(batch=2), x.dot(w, "axis")`,
	"jnp":        `tensors are built in: zeros(batch=2), x.dot(w, "axis")`,
}

// resolveHint adds what to do about an error of the resolver; names are those that could be meant.
func resolveHint(msg string, names []string) string {
	name, undefined := strings.CutPrefix(msg, "undefined: ")
	switch {
	case strings.HasSuffix(msg, "can't assign to sliceexpr"):
		return "cannot assign to a slice; use x.set(v, seq=(1, 5)) for a tensor, or build a new list"
	case !undefined || strings.Contains(name, "did you mean"):
		return msg
	}
	if say, ok := undefinedHabits[name]; ok {
		return msg + "; " + say
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("%s (did you mean %s?)", msg, near)
	}
	return msg
}

// runtimeHabits are tried in order on an error at run time; the answer is added to the message.
var runtimeHabits = []habit{
	spot(`^unknown conversion %|^format spec features not supported`, ``, `use fmt("{:.4f}", x)`),
	spot(`^string value is not iterable`, ``, `use s.elems() for its bytes, s.codepoints() for its characters`),
	spot(`^got string in sequence assignment`, ``, `use s.elems() for its bytes, s.codepoints() for its characters`),
	spot(`^unknown binary op: (string \+|\w+ \+ string)`, ``, `use str(x) or fmt("{}", x)`),
	spot(`^local variable \w+ referenced before assignment`, `\w\s*[-+*/%&|^]+=`, sayOuter),
	spot(`frozen`, ``, `what a loaded module made cannot be changed; copy it first`),
}

// runtimeHint adds what to do about an error at run time on the given line.
func runtimeHint(msg, line string) string {
	for _, h := range runtimeHabits {
		if h.msg.MatchString(msg) && h.code.MatchString(line) {
			return msg + "; " + h.say
		}
	}
	return msg
}

// nearest returns the one of names that a misspelt name most likely meant, or "".
func nearest(name string, names []string) string {
	best, bestDistance := "", 1+len(name)/3
	for _, candidate := range names {
		d := editDistance(name, candidate)
		if 0 < d && d < len(name) && (d < bestDistance || d == bestDistance && best == "") {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, substitutions and swaps of neighbours that make b of a.
// It is the optimal string alignment distance.
func editDistance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j]+change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
