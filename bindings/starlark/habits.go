package starlark

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/stdlib"
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
	sayCatch   = `there is no try; use r = catch(fn, x) and look at r.error and r.value`
	sayLoad    = `there is no import; use load("./file.star", "name"); tensors, json and math are built in`
	sayOuter   = `a function cannot assign an outer variable; return the value, or keep it in a list, dict or struct`
	sayNoStar  = `there is no * in a list or an assignment; add lists, or slice: a, b = xs[0], xs[1:]`
	sayNoTypes = `there are no type annotations; write the type in a comment or the doc string`
)

// syntaxHabits are tried in order on a syntax error; the answer replaces the parser's message.
var syntaxHabits = []habit{
	spot(``, `^\s*‸@\w`, `there are no decorators; write f = decorator(f) below the def`),
	spot(``, `([\w.]+)\s*‸@=\s*([\w.]+)`, `there is no @=; say which axis to sum over: $1 = $1.dot($2, $1.axes[-1])`),
	spot(``, `([\w.]+)\s*‸@\s*([\w.]+)`, `there is no @; say which axis to sum over: $1.dot($2, $1.axes[-1])`),
	spot(``, `‸@`, `there is no @; say which axis to sum over: x.dot(w, x.axes[-1])`),
	spot(``, `[{,]\s*‸\*\*`, `there is no ** in a dict; use a | b`),
	spot(``, `([\w.]+)\s*‸\*\*=\s*([\w.]+)`, `there is no **=; use $1 = pow($1, $2)`),
	spot(``, `([\w.]+)\s*‸\*\*\s*([\w.]+)`, `there is no **; use pow($1, $2)`),
	spot(``, `‸\*\*`, `there is no **; use pow(x, 2)`),
	spot(`want primary`, `[[,=(]\s*‸\*|^\s*‸\*`, sayNoStar),

	spot(``, `‸with\s+(?:\w+\.)*no_grad\b`, `there is no with; use no_grad(fn)`),
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

	spot(`does not associate`, `([\w.]+)\s*([<>]=?)\s*([\w.]+)\s*‸([<>]=?)\s*([\w.]+)`,
		`comparisons do not chain; use $1 $2 $3 and $3 $4 $5`),
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
	spot(``, `^\s*‸!\s*\w`, `there is no shell here, and no !; for the opposite of a condition use not`),
	spot(``, `‸!`, `there is no !; use not`),
	spot(``, `^\s*‸%\s*\w`, `a line begins with no % but, at the prompt, %time and %timeit; see help(profile) too`),
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
	if m := subscript.FindStringSubmatch(line); m != nil {
		return "axes have no positions; name the axis: " + byAxis(m[1], strings.ReplaceAll(m[2], "‸", ""))
	}
	if answer := answerOf(syntaxHabits, msg, line); answer != "" {
		return answer
	}
	return msg
}

// subscript matches one with a comma or an ellipsis that begins or goes on wrongly at ‸.
var subscript = regexp.MustCompile(`([\w.]+)\[([^][‸]*(?:[:.][^][‸]*‸,|‸,|\.*‸\.)[^][]*)`)

// byAxis writes x[parts], where parts are as NumPy takes them, with slice and at.
func byAxis(x, parts string) string {
	var slices, places []string
	rest := strings.Split(parts, ",")
	for k, part := range rest {
		part = strings.TrimSpace(part)
		axis := fmt.Sprintf("%s.axes[%d]", x, k)
		if i := strings.Index(parts, "..."); i >= 0 && i < strings.LastIndex(parts, part) {
			axis = fmt.Sprintf("%s.axes[%d]", x, k-len(rest))
		}
		lo, hi, isRange := strings.Cut(part, ":")
		switch {
		case part == "" || part == "..." || part == ":" || part == "None":
		case isRange:
			hi, step, _ := strings.Cut(hi, ":")
			slices = append(slices, axis+": "+rangeOf(lo, hi, step))
		default:
			places = append(places, axis+": "+part)
		}
	}
	code := x
	if len(slices) > 0 {
		code += ".slice({" + strings.Join(slices, ", ") + "})"
	}
	if len(places) > 0 {
		code += ".at({" + strings.Join(places, ", ") + "})"
	}
	return code
}

// rangeOf is the bounds of a slice as the operation slice takes them.
func rangeOf(bounds ...string) string {
	for i, b := range bounds {
		if bounds[i] = strings.TrimSpace(b); bounds[i] == "" {
			bounds[i] = "None"
		}
	}
	if len(bounds) == 3 && bounds[2] == "None" {
		bounds = bounds[:2]
	}
	return "(" + strings.Join(bounds, ", ") + ")"
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

const builtIn = `tensors are built in, as in: zeros(row=2, col=3)`

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
	"globals":    `help() lists what there is`,
	"locals":     `help() lists what there is`,
	"exit":       leaving,
	"quit":       leaving,
	"np":         builtIn,
	"numpy":      builtIn,
	"torch":      builtIn,
	"jnp":        builtIn,
	"tf":         builtIn,
	"F":          builtIn,

	"array":       made,
	"asarray":     made,
	"from_numpy":  made,
	"Tensor":      made,
	"zeros_like":  `use zeros(x.shape)`,
	"empty_like":  `use zeros(x.shape)`,
	"empty":       `use zeros(row=2, col=3)`,
	"ones_like":   `use ones(x.shape)`,
	"cat":         joined,
	"concatenate": joined,
	"hstack":      joined,
	"vstack":      joined,
	"matmul":      product,
	"mm":          product,
	"bmm":         product,
	"manual_seed": `use seed(1)`,
	"clip":        `use clamp(x, 0, 1)`,
	"transpose":   `use x.order("col row")`,
	"permute":     `use x.order("col row")`,
	"unsqueeze":   `use x.insert("batch")`,
	"expand_dims": `use x.insert("batch")`,
	"DataLoader":  `use batches(xs, 32)`,
}

const (
	made       = `use tensor([1.0, 2.0], "row")`
	joined     = `use concat([x, y], "row")`
	product    = `a product names the axis it sums over: x.dot(w, x.axes[-1])`
	leaving    = `Ctrl-D leaves the prompt, and this ends a script: fail("why")`
	noGradient = `the gradient of a variable is None before: backward(loss)`
)

// sliceAssigned matches an assignment to a slice.
var sliceAssigned = regexp.MustCompile(`([\w.]+)\[([^\]\[:]*):([^\]\[:]*):?([^\]\[:]*)\]\s*=\s*([^#]+)`)

// resolveHint adds what to do about an error of the resolver on the given line; names are those that could be
// meant.
func resolveHint(msg, line string, names []string) string {
	name, undefined := strings.CutPrefix(msg, "undefined: ")
	switch {
	case strings.HasSuffix(msg, "can't assign to sliceexpr"):
		msg = "cannot assign to a slice"
		if m := sliceAssigned.FindStringSubmatch(line); m != nil {
			msg += fmt.Sprintf("; for a tensor: %s.set(%s, {%s.axes[0]: %s})", m[1], strings.TrimSpace(m[5]), m[1],
				rangeOf(m[2], m[3], m[4]))
		}
		return msg
	case !undefined:
		return msg
	}
	if name, near, ok := strings.Cut(name, " (did you mean "); ok {
		return "undefined: " + name + "; did you mean " + strings.TrimSuffix(near, ")")
	}
	if say, ok := undefinedHabits[name]; ok {
		return msg + "; " + say
	}
	if bare, _, _ := strings.Cut(name, " "); stdlib.About(bare) != "" { // maybe "nn (and 2 more)"
		return fmt.Sprintf("%s; it is a module: %s", msg, loading(bare))
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("%s; did you mean %s?", msg, near)
	}
	return msg
}

// loading is the statement that loads a module of the standard library.
func loading(name string) string { return fmt.Sprintf("load(\"@stdlib//%s.star\", %[1]q)", name) }

// runtimeAnswers are tried in order on an error at run time; the answer replaces the message.
var runtimeAnswers = []habit{
	spot(`^%\w format requires \w+: cannot convert tensor`, `‸%\s*([\w.]+)`,
		`%: got a tensor, want a number; use fmt("{}", $1)`),
	spot(`^key `, `([\w.]+)\.shape\s*‸\[\s*(-?\d+)`,
		`shape: sizes go by axis name, got the place $2; use $1.size($1.axes[$2])`),
}

// runtimeHabits are tried in order on an error at run time; the answer is added to the message.
var runtimeHabits = []habit{
	spot(`^unknown conversion %|^format spec features not supported`, ``, `use fmt("{:.4f}", x)`),
	spot(`^string value is not iterable`, ``, `use s.elems() for its bytes, s.codepoints() for its characters`),
	spot(`^got string in sequence assignment`, ``, `use s.elems() for its bytes, s.codepoints() for its characters`),
	spot(`^unknown binary op: (string \+|\w+ \+ string)`, ``, `use str(x) or fmt("{}", x)`),
	spot(`^local variable \w+ referenced before assignment`, `\w\s*[-+*/%&|^]+=`, sayOuter),
	spot(`^unknown (binary|unary) op: .*NoneType`, `\.grad\b`, noGradient),
	spot(`^NoneType has no `, `\.grad\s*‸?\.`, noGradient),
	spot(`^invalid call of non-function \(struct\)`, `‸([\w.]+)\(`, `a struct is not called, what it has is: $1.call`),
	spot(`^invalid call of non-function \(model\)`, `‸([\w.]+)\(`, `use $1.generate("Once upon a time")`),
	spot(`^struct has no \.parameters`, `([\w.]+)\.‸parameters`, `use nn.parameters($1)`),
	spot(`^struct has no \.forward`, `([\w.]+)\.‸forward`, `use $1.call`),
	spot(`^module has no [^(]*$`, `([\w.]+)\.‸`, `see what it has: help($1)`),
	spot(`^dir: got 0 arguments`, ``, `help() lists what there is`),
	spot(`frozen`, ``, `what a loaded module made cannot be changed; copy it first`),
}

// runtimeHint adds what to do about an error at run time between before and after on its line.
func runtimeHint(msg, before, after string) string {
	line := before + "‸" + after
	if answer := answerOf(runtimeAnswers, msg, line); answer != "" {
		return answer
	}
	if more := answerOf(runtimeHabits, msg, line); more != "" {
		return msg + "; " + more
	}
	return msg
}

// answerOf is what the first of the habits that fits says, or "".
func answerOf(habits []habit, msg, line string) string {
	for _, h := range habits {
		if !h.msg.MatchString(msg) {
			continue
		}
		if at := h.code.FindStringSubmatchIndex(line); at != nil {
			return string(h.code.ExpandString(nil, h.say, line, at))
		}
	}
	return ""
}

// nearest returns the one of names that a misspelt name most likely meant, or "".
func nearest(name string, names []string) string {
	best, bestDistance := "", 1+max(1, len(name)/3)
	for _, candidate := range names {
		if d := axis.Distance(name, candidate); 0 < d && d < len(name) && d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}
