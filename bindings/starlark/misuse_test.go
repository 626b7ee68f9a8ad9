package starlark

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/fucina-go/fucina/core"
)

// A mistake is a chunk of testdata/misuse/*.star: a program whose line with ### is wrong. Behind ### stands the
// message; the caret is in a comment on the next line. Comments that begin with #! are directions:
//
//	#! OLD → NEW     how to paste the fix, which FIX stands for in NEW, where that cannot be told from the message
//	#! computes      why something is computed before the message
//	#! data          why there is no fix: what is wrong is not in the script
//	#! memory 4096   the limit of tensor memory, in bytes
type mistake struct {
	file  string
	line  int    // of the file, where the chunk begins
	src   string // the program, without messages and carets
	wrong int    // its wrong line
	msg   string // expected
	col   int    // of the caret, expected
	paste [][2]string
	flags []string
	limit int64
}

// readMisuses reads a file of chunks.
func readMisuses(t *testing.T, file string) (list []*mistake) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := 1
	for _, chunk := range strings.Split(string(text), "---\n") {
		m := &mistake{file: file, line: line}
		line += strings.Count(chunk, "\n") + 1
		var program []string
		for _, s := range strings.Split(strings.TrimSuffix(chunk, "\n"), "\n") {
			code, msg, marked := strings.Cut(s, " ### ")
			switch direction, ok := strings.CutPrefix(s, "#! "); {
			case ok:
				m.direct(direction)
			case caret.MatchString(s) && m.wrong == len(program):
				m.col = len([]rune(s))
			default:
				program = append(program, strings.TrimSuffix(code, " ###"))
			}
			if marked || strings.HasSuffix(s, " ###") {
				m.wrong, m.msg = len(program), msg
			}
		}
		m.src = strings.Join(program, "\n") + "\n"
		if m.wrong == 0 {
			t.Fatalf("%s:%d: no line is marked with ###", file, m.line)
		}
		list = append(list, m)
	}
	return list
}

// caret is a line that marks a place on the line before.
var caret = regexp.MustCompile(`^# *\^$`)

func (m *mistake) direct(text string) {
	if from, to, ok := strings.Cut(text, " → "); ok {
		m.paste = append(m.paste, [2]string{from, to})
		return
	}
	word, rest, _ := strings.Cut(text, " ")
	word = strings.TrimSuffix(word, ":")
	if word == "memory" {
		m.limit, _ = strconv.ParseInt(rest, 10, 64)
	}
	m.flags = append(m.flags, word)
}

// interp is a fresh interpreter for the chunk.
func (m *mistake) interp(t *testing.T) *Interp {
	it := New(Config{Stdout: io.Discard, MemLimit: m.limit, Dir: "testdata/misuse"})
	t.Cleanup(it.Close)
	return it
}

const misuseName = "testdata/misuse/case.star"

// run runs a program of the chunk's.
func (m *mistake) run(t *testing.T, src string) error {
	return m.interp(t).RunSource(context.Background(), misuseName, []byte(src))
}

// wrongLine is the line that is wrong.
func (m *mistake) wrongLine() string { return strings.Split(m.src, "\n")[m.wrong-1] }

// TestMisuses insists on the message, the place and the properties of every misuse of testdata/misuse. With
// -update it writes messages and places anew.
func TestMisuses(t *testing.T) {
	files, err := os.ReadDir("testdata/misuse")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".star") {
			continue
		}
		file := "testdata/misuse/" + f.Name()
		list := readMisuses(t, file)
		if *update {
			updateMisuses(t, file, list)
			continue
		}
		for _, m := range list {
			count++
			t.Run(fmt.Sprintf("%s:%d", f.Name(), m.line), m.check)
		}
	}
	if count < 60 && !*update {
		t.Errorf("%d cases, want 60 at least", count)
	}
}

func (m *mistake) check(t *testing.T) {
	var failed *Error
	if err := m.run(t, m.src); !errors.As(err, &failed) {
		t.Fatalf("%s: got %v, want %s", m.wrongLine(), err, m.msg)
	}
	if failed.Msg != m.msg {
		t.Errorf("got  %s\nwant %s", failed.Msg, m.msg)
	}
	if failed.File != misuseName || failed.Line != m.wrong || failed.Col != m.col {
		t.Errorf("got %v, want line %d, column %d", failed, m.wrong, m.col)
	}
	if strings.ContainsAny(failed.Msg, "\n") || failed.Stack != nil {
		t.Errorf("not one line of plain words: %s", failed.Msg)
	}
	m.checkName(t, failed)
	m.checkOperands(t, failed)
	if !slices.Contains(m.flags, "computes") {
		m.checkNothingComputed(t)
	}
	if !slices.Contains(m.flags, "data") {
		m.checkFix(t, failed)
	}
}

// operatorsOf are the operators behind the names that messages begin with.
var operatorsOf = map[string][]string{
	"add": {"+"}, "sub": {"-"}, "mul": {"*"}, "div": {"/"}, "floordiv": {"//"}, "mod": {"%"}, "eq": {"=="},
	"ne": {"!="},
	"lt": {"<", ">"}, "le": {"<=", ">="}, "gt": {">", "<"}, "ge": {">=", "<="}, "neg": {"-"}, "index": {"["},
	"slice":       {"["},
	"bitwise_and": {"&"}, "hash": {":"}, "shape": {"["}, "%": {"%"},
}

// asked are the words before a place where a tensor was asked for its truth or its elements.
var asked = []string{"if", "while", "not", "and", "or", "for", "assignment", "any", "all", "bool"}

// checkName insists that the message begins with the name of what was called and that the caret is under it.
func (m *mistake) checkName(t *testing.T, failed *Error) {
	name, _, _ := strings.Cut(failed.Msg, ": ")
	at := string([]rune(m.wrongLine())[failed.Col-1:])
	var badSyntax syntax.Error
	switch {
	case errors.As(failed, &badSyntax) || strings.HasPrefix(failed.Msg, "cannot ") ||
		strings.HasPrefix(name, "unknown binary op") ||
		strings.HasPrefix(name, "undefined"):
		return // an operator or a name that does not exist: the message says which
	case slices.Contains(asked, name):
		return // the caret is under the operand
	case slices.ContainsFunc(operatorsOf[name], func(op string) bool { return strings.HasPrefix(at, op) }):
		return
	}
	if regexp.MustCompile(`^`+regexp.QuoteMeta(name)+`(\W|$)`).FindString(at) == "" && name != "load" {
		t.Errorf("the message begins with %q, and the caret is under %q", name, at)
	}
}

// checkOperands insists that the message of an operation on two tensors describes both.
func (m *mistake) checkOperands(t *testing.T, failed *Error) {
	misused := (*core.Error)(nil)
	if !errors.As(failed, &misused) || core.Lookup(misused.Op) == nil {
		return
	}
	call := findCall(t, m, failed)
	if call == nil {
		return
	}
	it := m.interp(t)
	before := m.src[:call.begin]
	before = before[:strings.LastIndexByte(before, '\n')+1]
	if _, err := it.Eval(context.Background(), misuseName, before); err != nil {
		return // it is within a function
	}
	var seen []*core.Tensor
	var want []string
	for _, p := range call.params {
		v, err := it.Eval(context.Background(), "<operand>", p.text)
		x, ok := v.(Tensor)
		if err != nil || !ok || slices.Contains(seen, x.Tensor) {
			continue
		}
		seen = append(seen, x.Tensor)
		want = append(want, p.name+x.brackets())
	}
	for _, text := range want {
		if len(want) > 1 && !strings.Contains(failed.Msg, text) {
			t.Errorf("the message does not describe %s: %s", text, failed.Msg)
		}
	}
}

// checkNothingComputed insists that no operation computed anything after the statements before the last one.
func (m *mistake) checkNothingComputed(t *testing.T) {
	f, err := dialect.Parse(misuseName, m.src, 0)
	if err != nil {
		return // a syntax error comes before everything
	}
	last, _ := f.Stmts[len(f.Stmts)-1].Span()
	lines := strings.SplitAfter(m.src, "\n")
	src := strings.Join(lines[:last.Line-1], "") + "mark()\n" + strings.Join(lines[last.Line-1:], "")
	it := m.interp(t)
	marked := -1
	it.Predeclare("mark", star.NewBuiltin("mark",
		func(*star.Thread, *star.Builtin, star.Tuple, []star.Tuple) (star.Value, error) {
			marked = it.env.Evals()
			return star.None, nil
		}))
	_ = it.RunSource(context.Background(), misuseName, []byte(src))
	if n := it.env.Evals(); marked >= 0 && n != marked {
		t.Errorf("%d operations computed something before the message", n-marked)
	}
}

// updateMisuses writes the file with the messages and places of now.
func updateMisuses(t *testing.T, file string, list []*mistake) {
	var out []string
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for k, chunk := range strings.Split(string(text), "---\n") {
		var failed *Error
		if err := list[k].run(t, list[k].src); !errors.As(err, &failed) {
			t.Fatalf("%s:%d: no error", file, list[k].line)
		}
		var lines []string
		for _, s := range strings.Split(strings.TrimSuffix(chunk, "\n"), "\n") {
			code, _, marked := strings.Cut(s+" ", " ### ")
			switch {
			case caret.MatchString(s):
			case marked:
				lines = append(lines, code+" ### "+failed.Msg, "#"+strings.Repeat(" ", max(0, failed.Col-2))+"^")
			default:
				lines = append(lines, s)
			}
		}
		out = append(out, strings.Join(lines, "\n")+"\n")
	}
	if err := os.WriteFile(file, []byte(strings.Join(out, "---\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestMisusesFromGo checks the mistakes that take more than a script to make.
func TestMisusesFromGo(t *testing.T) {
	ask := func(it *Interp, src string) (star.Value, error) {
		return it.Eval(context.Background(), "<block>", src)
	}
	refused := func(it *Interp, src, want string, col int) {
		t.Helper()
		var failed *Error
		if _, err := ask(it, src); !errors.As(err, &failed) || failed.Msg != want || failed.Col != col {
			t.Errorf("%s: got %v\nwant at %d: %s", src, err, col, want)
		}
	}
	m := &mistake{}
	here, there := m.interp(t), m.interp(t)
	other, err := ask(there, "ones(a=90)")
	if err != nil {
		t.Fatal(err)
	}
	here.Globals()["x"], _ = ask(here, "ones(a=90)")
	here.Globals()["y"] = other
	refused(here, "x + y",
		"add: y[a=90] belongs to another interpreter (with x[a=90]); in Go, share it first: y.Share()", 3)
	other.(Tensor).Share()
	if _, err := ask(here, "x + y"); err != nil {
		t.Error("a shared operand:", err)
	}

	scope := here.Env().Open()
	if _, err := ask(here, "h = ones(a=90)\nk = keep(ones(a=90))"); err != nil {
		t.Fatal(err)
	}
	scope.Close()
	refused(here, "h.sum()", "sum: x[a=90] was ended by the end of its scope at outside of a script (it was made at "+
		"<block>:1:9); return it, or keep it where it was made: keep(x)", 3)
	if _, err := ask(here, "k.sum()"); err != nil {
		t.Error("a kept tensor:", err)
	}
}

// TestBadModels insists that a model file that cannot be used is named with what is wrong with it, at the call.
func TestBadModels(t *testing.T) {
	whole, err := os.ReadFile(stories)
	if err != nil {
		t.Fatal(err)
	}
	quantized := slices.Clone(whole)
	name := []byte("blk.0.ffn_up.weight")
	at := bytes.Index(quantized, name) + len(name)
	dims := int(binary.LittleEndian.Uint32(quantized[at:]))
	binary.LittleEndian.PutUint32(quantized[at+4+8*dims:], 19) // IQ1_S, in blocks that do not divide the rows
	dir := t.TempDir()
	for file, data := range map[string][]byte{
		"truncated.gguf": whole[:len(whole)/2], "text.gguf": []byte("once upon a time"), "quantized.gguf": quantized,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ file, want string }{
		{"truncated.gguf", "tensor .*: data ends at byte .*truncated"},
		{"text.gguf", `not a GGUF file: it starts with "once", want "GGUF"`},
		{"quantized.gguf", "tensor blk.0.ffn_up.weight.*iq1_s"},
		{"missing.gguf", "no such file"},
		{"turncated.gguf", `no such file; did you mean "truncated.gguf"\?`},
	} {
		it := New(Config{Dir: dir})
		var failed *Error
		_, err := it.Eval(context.Background(), "<block>", fmt.Sprintf("m = load_model(%q)", c.file))
		it.Close()
		want := regexp.MustCompile(`^load_model: .*` + regexp.QuoteMeta(c.file) + `.*` + c.want)
		if !errors.As(err, &failed) || failed.Line != 1 || failed.Col != 5 || !want.MatchString(failed.Msg) {
			t.Errorf("%s: got %v, want %v", c.file, err, want)
		}
	}
}
