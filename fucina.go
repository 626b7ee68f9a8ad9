package fucina

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"sync"
	"unsafe"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/bindings/starlark"
	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// Error is what Run, Call and Get fail with when it is the script's doing: the message, the place and line
// of the script, and the calls in progress. errors.Is and errors.As see the Go error behind it.
type Error = starlark.Error

// Interpreter runs scripts; New makes it, and a zero one runs none. It serves one goroutine at a time; a program may
// have as many as it likes, and they may share frozen values and tensors.
type Interpreter struct {
	it  *starlark.Interp
	err error // of an option

	mu              sync.Mutex // of what follows
	running, closed bool
}

// Option is a setting of New.
type Option func(*settings)

type settings struct {
	config   starlark.Config
	builtins []builtin
	ops      []*core.Info
	adds     []func(*starlark.Interp)
}

type builtin struct {
	name  string
	value any
}

// Stdout is where print and write go. The default is the standard output.
func Stdout(w io.Writer) Option { return func(s *settings) { s.config.Stdout = w } }

// Stderr is where what scripts do at length shows how far it is, as progress does. The default is the standard error.
func Stderr(w io.Writer) Option { return func(s *settings) { s.config.Stderr = w } }

// Lines lets scripts read lines by input(prompt): read returns the next one, or io.EOF after the last. ctx ends when
// nobody waits for the line any more. Without it they read none.
func Lines(read func(ctx context.Context, prompt string) (string, error)) Option {
	return func(s *settings) { s.config.ReadLine = read }
}

// Args is the list that scripts see as args.
func Args(args ...string) Option { return func(s *settings) { s.config.Args = args } }

// MaxSteps bounds the bytecode instructions of one run. What a single instruction does in Go is not counted; the
// context's deadline is the bound for that.
func MaxSteps(n uint64) Option { return func(s *settings) { s.config.MaxSteps = n } }

// MemoryLimit bounds the bytes of tensors in use.
func MemoryLimit(bytes int64) Option { return func(s *settings) { s.config.MemLimit = bytes } }

// Save lets scripts save files in a folder: their paths are relative to it, and none leads out of it, by ../ or through
// a symbolic link. A file is written whole or not at all. Without it scripts save nothing.
func Save(folder *os.Root) Option {
	return func(s *settings) { s.config.Save = starlark.SaveIn(folder) }
}

// Threads is over how many processors one operation is split; 0 means all.
func Threads(n int) Option { return func(s *settings) { s.config.Threads = n } }

// Builtin gives scripts a value under a name: anything starlark.FromGo takes, functions above all.
func Builtin(name string, value any) Option {
	return func(s *settings) { s.builtins = append(s.builtins, builtin{name, value}) }
}

// Op gives scripts an operation defined in Go, as a function and a method, with help and, if T has a VJP,
// gradients. It is this interpreter's alone.
func Op[T any, P interface {
	*T
	core.Op
}](name string) Option {
	info := &core.Define[T, P](name).Info
	return func(s *settings) { s.ops = append(s.ops, info) }
}

// With lets add give scripts more, such as what a package of bindings has: With(plot.Add) gives them the module plot.
func With(add func(it *starlark.Interp)) Option {
	return func(s *settings) { s.adds = append(s.adds, add) }
}

// New is an interpreter without files: scripts reach only what a Run gives them.
func New(options ...Option) *Interpreter {
	s := settings{}
	s.config.Open = noFiles
	for _, option := range options {
		if option != nil {
			option(&s)
		}
	}
	p := &Interpreter{it: starlark.New(s.config)}
	for _, info := range s.ops {
		p.it.AddOp(info)
	}
	for _, add := range s.adds {
		add(p.it)
	}
	for _, b := range s.builtins {
		p.predeclare(b.name, b.value)
	}
	return p
}

func noFiles(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// predeclare makes a Go value visible to scripts; the first failure is reported by the next Run.
func (p *Interpreter) predeclare(name string, value any) {
	if fn, err := starlark.Function(name, value); err == nil {
		p.it.Predeclare(name, fn)
		return
	}
	v, err := starlark.FromGo(value)
	if err != nil {
		if p.err == nil {
			p.err = fmt.Errorf("fucina: %s: %w", name, err)
		}
		return
	}
	p.it.Predeclare(name, v)
}

var errNew = errors.New("fucina: this interpreter was not made by New; want p := fucina.New()")

// identifier matches the names of Starlark.
var identifier = regexp.MustCompile(`^[\pL_][\pL\p{Nd}_]*$`)

// Run runs the script called name in files, which are also where it loads modules and data from: an os.DirFS,
// an embed.FS, or the FS of an os.Root, which keeps symbolic links inside. globals are further names it sees. The
// script's own global variables are there for Get and Call afterwards, also after an error those assigned so
// far. A done context stops it, kernels included, within 50 ms.
func (p *Interpreter) Run(ctx context.Context, files fs.FS, name string, globals map[string]any) error {
	if err := p.begin(); err != nil {
		return err
	}
	defer p.end()
	if files == nil {
		return errors.New("fucina: got no files to run from")
	}
	p.it.UseFiles(files.Open)
	for name, value := range globals {
		if !identifier.MatchString(name) {
			return fmt.Errorf("fucina: globals has %q, which is no name that a script could write", name)
		}
		p.predeclare(name, value)
	}
	if err := p.err; err != nil {
		p.err = nil
		return err
	}
	return p.it.RunFile(ctx, name)
}

// Interrupt asks the run in progress to stop after the step it is at, and reports whether it will: a script says so by
// defer_interrupt, as train.run does. Otherwise the context of Run is the way. It may be called from any goroutine.
func (p *Interpreter) Interrupt() bool { return p.it != nil && p.it.Interrupt() }

// Get stores the script's global variable name into the variable that to points to; see starlark.Into.
func (p *Interpreter) Get(name string, to any) error {
	if p.it == nil {
		return errNew
	}
	v, ok := p.it.Globals()[name]
	if !ok {
		return fmt.Errorf("fucina: the script has no global variable %s", name)
	}
	if err := starlark.Into(v, to); err != nil {
		return fmt.Errorf("fucina: %s: %w", name, err)
	}
	return nil
}

// Call calls the script's function name with Go values and stores its result into what to points to, unless
// that is nil.
func (p *Interpreter) Call(ctx context.Context, name string, to any, args ...any) error {
	if err := p.begin(); err != nil {
		return err
	}
	defer p.end()
	fn, ok := p.it.Globals()[name]
	if !ok {
		return fmt.Errorf("fucina: the script has no function %s", name)
	}
	if _, ok := fn.(star.Callable); !ok {
		return fmt.Errorf("fucina: %s is no function of the script but a value of type %s", name, fn.Type())
	}
	values := make(star.Tuple, len(args))
	for i, arg := range args {
		var err error
		if values[i], err = starlark.FromGo(arg); err != nil {
			return fmt.Errorf("fucina: %s: argument %d: %w", name, i+1, err)
		}
	}
	v, err := p.it.Call(ctx, fn, values)
	if err != nil || to == nil {
		return err
	}
	if err := starlark.Into(v, to); err != nil {
		return fmt.Errorf("fucina: result of %s: %w", name, err)
	}
	return nil
}

// begin claims the interpreter for a run, which end ends.
func (p *Interpreter) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.it == nil:
		return errNew
	case p.closed:
		return errors.New("fucina: the interpreter was closed")
	case p.running:
		return errors.New("fucina: the interpreter is running a script; want one interpreter for each goroutine, and " +
			"none that a script's call of Go runs again")
	}
	p.running = true
	return nil
}

func (p *Interpreter) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = false
	if p.closed {
		p.it.Close()
	}
}

// Close ends the interpreter and gives its tensor memory back; of one that is running, at the end of the run. Tensors
// the program still holds stay valid. Run and Call then return an error; a second Close does nothing.
func (p *Interpreter) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.it == nil {
		return
	}
	if p.closed = true; !p.running {
		p.it.Close()
	}
}

// Tensor is a tensor over the program's own numbers, in the order of the axes, which are written "row col". The
// numbers are not copied: scripts read them where they are, cannot change them, and the program must not while
// a script runs. An error says which axis name is wrong, or that the sizes do not fit.
func Tensor(values []float32, axes string, sizes ...int) (t *core.Tensor, err error) {
	defer core.Recover(&err)
	list, err := axis.Parse(axes)
	if err != nil {
		return nil, fmt.Errorf("fucina: %w", err)
	}
	if list.Len() != len(sizes) {
		return nil, fmt.Errorf("fucina: got %d sizes for the axes %q", len(sizes), axes)
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
	return core.Borrow(bytes, values, dtype.F32, list, sizes...), nil
}
