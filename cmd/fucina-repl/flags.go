package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

const usage = `usage: fucina-repl [flags] [file [args...]]

Runs the Starlark program in file; from standard input if it is a pipe or file
is -; otherwise starts the interactive prompt. The script sees args.

  -c code            run code instead of a file; args follow
  -m module          run a module of the standard library; args follow
  -i                 go on at the prompt afterwards
  --norc             do not run startup.star before the prompt
  --threads n        use at most n threads for tensors (default: all processors)
  --mem-limit bytes  fail when tensors in use exceed this, e.g. 64MiB or 1GiB
  --max-steps n      stop a run after n interpreter steps
  --version          print the version
  --help             print this

Modules that are programs: %s.
fucina-repl -m chat --help explains one.

Exit code: 0 ok, 1 the script failed, 2 wrong flags or arguments, 130 interrupted.
`

// options is what the command line says.
type options struct {
	interactive bool
	hasCode     bool
	code        string // of -c
	module      string // of -m
	noStartup   bool
	file        string // "" if there is none
	args        []string
	threads     int // 0: all processors
	memLimit    byteSize
	maxSteps    uint64
}

// parseFlags reads the command line. The command has to go on if the exit code is negative.
func parseFlags(argv []string) (*options, int) {
	opt := &options{}
	showVersion := false
	fs := flag.NewFlagSet("fucina-repl", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are printed here, in our form
	fs.BoolVar(&opt.interactive, "i", false, "")
	fs.StringVar(&opt.code, "c", "", "")
	fs.StringVar(&opt.module, "m", "", "")
	fs.BoolVar(&opt.noStartup, "norc", false, "")
	fs.Func("threads", "", positive(&opt.threads))
	fs.Var(&opt.memLimit, "mem-limit", "")
	fs.Uint64Var(&opt.maxSteps, "max-steps", 0, "")
	fs.BoolVar(&showVersion, "version", false, "")
	// As in Python, everything behind -c code or -m module belongs to the program.
	own := len(argv)
	for i, arg := range argv {
		if slices.Contains([]string{"-c", "--c", "-m", "--m"}, arg) {
			own = min(own, i+2, len(argv))
			break
		}
	}
	err := fs.Parse(argv[:own])
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Printf(usage, programs())
		return nil, exitOK
	case err != nil:
		fmt.Fprintf(os.Stderr, "fucina-repl: %v\nfor help: fucina-repl --help\n", err)
		return nil, exitUsage
	case showVersion:
		fmt.Println(version())
		return nil, exitOK
	}
	fs.Visit(func(f *flag.Flag) { opt.hasCode = opt.hasCode || f.Name == "c" })
	opt.args = append(fs.Args(), argv[own:]...)
	if !opt.hasCode && opt.module == "" && len(opt.args) > 0 {
		opt.file, opt.args = opt.args[0], opt.args[1:]
	}
	return opt, -1
}

func positive(n *int) func(string) error {
	return func(s string) error {
		v, err := strconv.Atoi(s)
		if err != nil || v < 1 {
			return errors.New("want a whole number from 1")
		}
		*n = v
		return nil
	}
}

// byteSize is a flag value such as 1048576, 64MiB or 1GiB.
type byteSize struct{ bytes int64 }

var byteUnits = []struct {
	suffix string
	shift  uint
}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"B", 0}, {"", 0}}

// Set implements flag.Value.
func (b *byteSize) Set(s string) error {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 || n > math.MaxInt64>>u.shift {
			break
		}
		b.bytes = n << u.shift
		return nil
	}
	return errors.New("want bytes, such as 1048576, 64MiB or 1GiB")
}

// String implements flag.Value.
func (b *byteSize) String() string { return strconv.FormatInt(b.bytes, 10) }

func version() string {
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return fmt.Sprintf("fucina-repl %s, %s, %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
