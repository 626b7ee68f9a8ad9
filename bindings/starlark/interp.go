// Package starlark runs Starlark scripts against the engine.
//
// The interpreter shell lives here: running files, sources and REPL blocks, loading modules, the dialect and
// its prelude, limits and cancellation, and errors that point into the script. So do the tensor value and the
// builtins made from core's table of ops, which reach scripts through Predeclare. Reading lines, completion
// and display live in repl; flags and exit codes in cmd.
package starlark

import (
	"context"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"go.starlark.net/resolve"
	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"github.com/fucina-go/fucina/core"
)

// dialect is the Starlark all scripts are written in.
var dialect = &syntax.FileOptions{
	Set:             true,
	While:           true,
	TopLevelControl: true,
	GlobalReassign:  true,
	Recursion:       true,
}

// Config says what scripts may reach. The zero value is an interpreter without limits that reads from the
// current directory and prints to standard output.
type Config struct {
	// Open opens every file a script names: modules, and data through the builtins. Default os.Open; an
	// embedder that confines its scripts passes the method of an os.Root.
	Open func(name string) (fs.File, error)

	// Save writes the file that a script names, all of it or nothing, by what write puts into w. Default: a
	// temporary file beside it that takes its place at the end; if Open is given, scripts save nothing unless
	// Save is given too.
	Save func(name string, write func(w io.Writer) error) error

	rotate func(name string, keep int) error // with Save by default only

	// Dir is what "//" means in a load and what relative data paths are relative to. Default ".".
	Dir string

	// Stdout receives print and write. If it has a Flush method, write calls it. Default os.Stdout.
	Stdout io.Writer

	// Stderr receives what progress shows. Default os.Stderr.
	Stderr io.Writer

	// Terminal says that Stderr is a terminal, on which progress draws one line again and again.
	Terminal bool

	// ReadLine shows a prompt, where a person sees it, and returns the line that is typed, or the next of the standard
	// input; io.EOF after the last. context.Canceled is Ctrl-C at the prompt. When ctx ends, nobody waits any more:
	// then an error is nobody's, and a line that comes nevertheless is the next. Default: scripts read no lines.
	ReadLine func(ctx context.Context, prompt string) (string, error)

	// Args is the list scripts see as args.
	Args []string

	// MaxSteps bounds the bytecode instructions of one run; 0 means no bound.
	MaxSteps uint64

	// MemLimit bounds the bytes of tensors in use; 0 means no bound.
	MemLimit int64

	// Threads is over how many processors an operation is split; 0 means all.
	Threads int

	// MaxDepth bounds the calls in progress at once; 0 means 1000. The depth is looked at every 256 steps,
	// so a run may pass the bound by about a hundred calls.
	MaxDepth int
}

// Interp is one interpreter: its modules, its globals and the thread that runs them. It serves one goroutine
// at a time, and its runs do not nest.
type Interp struct {
	cfg     Config
	thread  *star.Thread
	names   star.StringDict // what every script sees, and the hidden checks under names no script can spell
	globals star.StringDict // of the files, sources and blocks run so far
	written axisTexts       // lists of axes as scripts write them
	frames  []*call         // calls of operations, for reuse
	sources sources
	modules map[string]star.StringDict // exports of the modules loaded, by name
	loading []string                   // files being run, outermost first

	stopped   atomic.Pointer[stop] // why the current run must end
	firstStep uint64               // of the current run
	work      atomic.Uint64        // steps of the current run that builtins did
	onCancel  []cancelHook
	ctx       context.Context // of the current run
	lines     lines

	interrupts interrupts
	explained  []explained

	env   *core.Env
	paths *paths // not nil while check runs

	lists    walkLists // for the next scope that ends
	finished finished

	saveGiven bool // Config.Save was
	complete  bool // New is done
	shadowed  bool // a name that New gave has another value since
}

// threadLocal is the key under which a thread knows its Interp.
const threadLocal = "fucina.interp"

// New returns an interpreter with the prelude and no globals.
func New(cfg Config) *Interp {
	saveGiven := cfg.Save != nil
	if !saveGiven && cfg.Open == nil {
		cfg.Save = func(name string, write func(w io.Writer) error) error { return saveFile(anywhere{}, name, write) }
		cfg.rotate = rotateFile
	}
	if cfg.Open == nil {
		cfg.Open = func(name string) (fs.File, error) { return os.Open(name) }
	}
	if cfg.Dir == "" {
		cfg.Dir = "."
	}
	if cfg.Stdout == nil {
		cfg.Stdout = os.Stdout
	}
	if cfg.Stderr == nil {
		cfg.Stderr = os.Stderr
	}
	if cfg.MaxDepth == 0 {
		cfg.MaxDepth = defaultMaxDepth
	}
	it := &Interp{
		cfg: cfg, saveGiven: saveGiven,
		names:   star.StringDict{},
		globals: star.StringDict{},
		sources: sources{},
		modules: map[string]star.StringDict{},
	}
	it.thread = &star.Thread{Name: "main", Load: it.load, OnMaxSteps: it.poll}
	it.thread.SetLocal(threadLocal, it)
	for name, v := range prelude(cfg.Args) {
		it.Predeclare(name, v)
	}
	maps.Copy(it.names, checks)
	it.addBounds()
	it.names[globalTable] = &globalsValue{vars: it.globals}
	it.attach()
	it.complete = true
	return it
}

// interpOf returns the interpreter that runs thread t.
func interpOf(t *star.Thread) *Interp { return t.Local(threadLocal).(*Interp) }

// Thread returns the thread scripts run on, for Go code that calls back into a script's function while a
// builtin is running.
func (it *Interp) Thread() *star.Thread { return it.thread }

// Predeclare makes v visible under name to everything compiled from now on. A panic inside a *star.Builtin, also one of
// a module, becomes an error at the line of its call. An operation shares its name with a function of the prelude: sum
// and max are both. It must not be called during a run.
func (it *Interp) Predeclare(name string, v star.Value) {
	it.shadowed = it.shadowed || it.complete && it.names.Has(name)
	switch f := v.(type) {
	case *star.Builtin:
		if f.Receiver() == nil {
			v = guarded(f)
		}
	case *starlarkstruct.Module:
		m := &starlarkstruct.Module{Name: f.Name, Members: maps.Clone(f.Members)}
		for name, member := range m.Members {
			if b, ok := member.(*star.Builtin); ok {
				m.Members[name] = guarded(b)
			}
		}
		v = m
	case *opFunc:
		if b, ok := it.names[name].(*star.Builtin); ok {
			v = shared(f, b)
		}
	}
	it.names[name] = v
}

// Stdout is where what scripts print goes.
func (it *Interp) Stdout() io.Writer { return it.cfg.Stdout }

// Globals returns the live table of global variables: what RunFile and RunSource left behind, and the variables
// of REPL blocks, which are read and written here even while a block runs.
func (it *Interp) Globals() star.StringDict { return it.globals }

// Names returns, sorted, every name a script could use now: globals, predeclared and universal ones.
func (it *Interp) Names() []string {
	seen := maps.Clone(star.Universe)
	for name, v := range it.names {
		if _, hidden := v.(check); !hidden {
			seen[name] = v
		}
	}
	maps.Copy(seen, it.globals)
	return slices.Sorted(maps.Keys(seen))
}

// RunFile runs the script in file, whose path is relative to the current directory or begins with @stdlib//, and
// keeps its globals.
// Every error is an *Error.
func (it *Interp) RunFile(ctx context.Context, file string) error {
	return it.run(ctx, func() error {
		name := filepath.ToSlash(file)
		if root, _ := builtinRoot(name); root == "" {
			name = path.Clean(name)
		}
		src, err := it.readFile(name, "", "")
		if err != nil {
			return err
		}
		return it.execMain(name, src)
	})
}

// RunSource runs src, called name in errors; loads in it are relative to name's folder, or to Config.Dir if
// name is of the form <stdin>. It keeps the globals. Every error is an *Error.
func (it *Interp) RunSource(ctx context.Context, name string, src []byte) error {
	return it.run(ctx, func() error { return it.execMain(name, string(src)) })
}

// byteOrderMark may begin a source, as in Python, and is no part of it.
const byteOrderMark = "\ufeff"

func (it *Interp) execMain(name, src string) error {
	globals, err := it.exec(name, src)
	maps.Copy(it.globals, globals)
	return err
}

// exec compiles and runs one file and returns its globals, also after an error those assigned so far.
func (it *Interp) exec(name, src string) (star.StringDict, error) {
	depth := len(it.loading)
	it.loading = append(it.loading, name)
	defer func() { it.loading = it.loading[:depth] }()

	src = strings.TrimPrefix(src, byteOrderMark)
	it.sources[name] = src
	f, err := dialect.Parse(name, src, 0)
	if err != nil {
		return nil, err
	}
	if err := checkDepth(f); err != nil {
		return nil, err
	}
	(&pass{}).file(f)
	return it.execTree(f)
}

// execTree compiles and runs a tree and returns its globals, also after an error those assigned so far. Its functions
// look up a predeclared name wherever they use it: among those of the tree, as the table of all is far more memory,
// which between two products is in no cache.
func (it *Interp) execTree(f *syntax.File) (star.StringDict, error) {
	used := star.StringDict{}
	prog, err := star.FileProgram(f, func(name string) bool {
		v, ok := it.names[name]
		if ok {
			used[name] = v
		}
		return ok
	})
	if err != nil {
		return nil, err
	}
	return prog.Init(it.thread, used)
}

// Eval runs one block of a REPL session: an expression gives its value, statements give nil. Globals belong
// to the session: a function sees what later blocks assign, and what was assigned before an error or an
// interrupt stays. The name should differ from block to block, or errors would quote the wrong source.
// Every error is an *Error.
func (it *Interp) Eval(ctx context.Context, name, src string) (v star.Value, err error) {
	src = strings.TrimPrefix(src, byteOrderMark)
	err = it.run(ctx, func() error {
		it.sources[name] = src
		f, err := it.parseBlock(name, src)
		if err != nil {
			return err
		}
		if len(f.Stmts) == 1 {
			if stmt, ok := f.Stmts[0].(*syntax.ExprStmt); ok {
				v, err = star.EvalExprOptions(dialect, it.thread, stmt.X, it.names)
				return err
			}
		}
		_, err = it.execTree(f)
		return err
	})
	return v, err
}

// parseBlock parses a REPL block and rewrites its uses of global variables into accesses of it.globals.
// Compiled as it stands, a block would have globals of its own, and an older function would never see the
// new value of a variable. Which names are global is asked of Starlark's own resolver, on a first copy of the tree.
func (it *Interp) parseBlock(name, src string) (*syntax.File, error) {
	options := *dialect
	options.LoadBindsGlobally = true
	f, err := options.Parse(name, src, 0)
	if err != nil {
		return nil, err
	}
	if err := checkDepth(f); err != nil {
		return nil, err
	}
	if err := resolve.REPLChunk(f, it.globals.Has, it.names.Has, star.Universe.Has); err != nil {
		return nil, err
	}
	p := &pass{globals: map[syntax.Position]bool{}}
	syntax.Walk(f, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok {
			if b, ok := id.Binding.(*resolve.Binding); ok && b.Scope == resolve.Global {
				p.globals[at(id.NamePos)] = true
			}
		}
		return true
	})
	if f, err = dialect.Parse(name, src, 0); err != nil {
		return nil, err
	}
	p.file(f)
	return f, nil
}

// at is pos without its file name, whose pointer differs between two parses.
func at(pos syntax.Position) syntax.Position {
	return syntax.MakePosition(nil, pos.Line, pos.Col)
}

// ResolvePath returns the name under which to open a data file a script calls p: relative paths are relative
// to Config.Dir, as in Python to the working directory, never to the script's own folder.
func (it *Interp) ResolvePath(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(it.cfg.Dir, p)
}

// named is ResolvePath for op, which the script called; it is an error if the script gave no name.
func (it *Interp) named(op, p string) (string, error) {
	if p == "" {
		return "", &core.Error{Op: op, Msg: "got no file name",
			Hint: "it is a text, and relative to the working directory"}
	}
	return it.ResolvePath(p), nil
}

// prelude returns the predeclared names that need no tensors.
func prelude(args []string) star.StringDict {
	names := star.StringDict{}
	for name, v := range star.Universe {
		if b, ok := v.(*star.Builtin); ok {
			names[name] = b // to be guarded by Predeclare
		}
	}
	maps.Copy(names, libraries)
	maps.Copy(names, builtins)
	argv := make([]star.Value, len(args))
	for i, a := range args {
		argv[i] = star.String(a)
	}
	names["args"] = star.NewList(argv)
	// struct is struct(**fields): a value with the fields as attributes.
	names["struct"] = star.NewBuiltin("struct", starlarkstruct.Make)
	// module is module(name, **members): a value with the members as attributes and a name to be shown by.
	names["module"] = star.NewBuiltin("module", starlarkstruct.MakeModule)
	return names
}
