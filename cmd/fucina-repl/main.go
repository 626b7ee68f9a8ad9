// Command fucina-repl runs Starlark programs on tensors: from a file, from -c, from a pipe, or at an
// interactive prompt.
//
// Here: flags, wiring and exit codes. The prompt is in repl, the interpreter in bindings/starlark.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"

	"github.com/fatih/color"
	"golang.org/x/term"

	"github.com/fucina-go/fucina/bindings/plot"
	"github.com/fucina-go/fucina/bindings/starlark"
	"github.com/fucina-go/fucina/repl"
)

// Exit codes.
const (
	exitOK          = 0
	exitError       = 1 // the script failed
	exitUsage       = 2 // the flags or the arguments of a program are wrong
	exitInterrupted = 130
)

func main() { os.Exit(start()) }

// A program is one run of the command.
type program struct {
	options
	interp     *starlark.Interp
	interrupts chan os.Signal
	stdin      *bufio.Reader
	editor     repl.Editor    // once somebody reads lines from a terminal, or there is a prompt
	terminal   *repl.Terminal // the editor, if it is one
	stderr     io.Writer
	colored    bool
	printed    atomic.Bool // the script printed something
	unfinished atomic.Bool // and it does not end in a newline
}

// Write writes what a script prints.
func (p *program) Write(b []byte) (int, error) {
	p.printed.Store(true)
	if len(b) > 0 {
		p.unfinished.Store(b[len(b)-1] != '\n')
	}
	return os.Stdout.Write(b)
}

// endLine ends the line that a script left unfinished, if any.
func (p *program) endLine() {
	if p.unfinished.Swap(false) {
		_, _ = os.Stdout.WriteString("\n")
	}
}

func start() int {
	opt, code := parseFlags(os.Args[1:])
	if code >= 0 {
		return code
	}
	p := &program{options: *opt, interrupts: make(chan os.Signal, 1), stderr: os.Stderr,
		stdin: bufio.NewReader(os.Stdin)}
	signal.Notify(p.interrupts, os.Interrupt)
	p.colored = isTerminal(os.Stderr) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if p.colored {
		p.stderr = color.Error // translates colours for old consoles
	}
	p.interp = starlark.New(starlark.Config{
		Stdout: p, Stderr: os.Stderr, Terminal: isTerminal(os.Stderr),
		ReadLine: p.readLine, Args: opt.args, MaxSteps: opt.maxSteps, MemLimit: opt.memLimit.bytes,
		Threads: opt.threads,
	})
	plot.Add(p.interp)

	defer func() {
		if p.terminal != nil {
			p.terminal.Close()
		}
	}()
	script := p.script()
	if script != nil {
		code = p.batch(script)
	}
	if script == nil || opt.interactive {
		return p.prompt()
	}
	return code
}

// prompt runs the interactive session and returns the exit code.
func (p *program) prompt() int {
	p.startup()
	session := &repl.REPL{
		Interp: p.interp, Out: os.Stdout, Err: p.stderr, Color: p.colored, Interrupts: p.interrupts,
	}
	if isTerminal(os.Stdin) && isTerminal(os.Stdout) {
		fmt.Printf("%s. help() explains, Ctrl-D leaves.\n", version())
		if err := p.edit(); err != nil {
			return p.fail(err)
		}
		session.History = p.history()
	} else {
		p.editor = repl.NewLines(p.stdin, os.Stdout, p.interrupts)
		session.History = &repl.History{}
	}
	session.Editor = p.editor
	if err := session.Run(context.Background()); err != nil {
		return p.fail(err)
	}
	return exitOK
}

// edit opens the editor of lines on the terminal, if nobody has.
func (p *program) edit() error {
	if p.terminal != nil {
		return nil
	}
	var err error
	if p.terminal, err = repl.NewTerminal(p.endLine, p.interp.Complete); err != nil {
		return err
	}
	p.editor = p.terminal
	return nil
}

// startup runs the user's startup.star, whose names are then there at the prompt. An error is shown and the
// prompt comes all the same, as it does after Ctrl-C.
func (p *program) startup() {
	dir, err := os.UserConfigDir()
	if err != nil || p.noStartup {
		return
	}
	file := filepath.Join(dir, "fucina", "startup.star")
	src, err := os.ReadFile(file)
	if err != nil {
		return
	}
	p.interactive = true // the prompt follows
	p.batch(func(ctx context.Context) error {
		_, err := p.interp.Eval(ctx, file, string(src))
		return err
	})
}

// history opens the history of earlier sessions. Without one the prompt still works.
func (p *program) history() *repl.History {
	dir, err := os.UserConfigDir()
	if err != nil {
		return &repl.History{}
	}
	h, err := repl.OpenHistory(filepath.Join(dir, "fucina", "history.jsonl"))
	if err != nil {
		fmt.Fprintf(p.stderr, "history: %v; this session will not be kept\n", err)
	}
	return h
}

func (p *program) fail(err error) int {
	fmt.Fprintf(p.stderr, "fucina-repl: %v\n", err)
	return exitError
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
