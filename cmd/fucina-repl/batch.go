package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fucina-go/fucina/bindings/starlark"
	"github.com/fucina-go/fucina/repl"
	"github.com/fucina-go/fucina/stdlib"
)

// interruptGrace is how long an interrupted script may take to say where it was.
const interruptGrace = 30 * time.Millisecond

// script returns what to run before, or instead of, the prompt; nil if there is nothing.
func (p *program) script() func(context.Context) error {
	switch {
	case p.hasCode:
		return func(ctx context.Context) error { return p.interp.RunSource(ctx, "<command>", []byte(p.code)) }
	case p.module != "":
		return p.runModule
	case p.file != "" && p.file != "-":
		return p.runFile
	case p.file == "-", !p.interactive && !isTerminal(os.Stdin):
		return func(ctx context.Context) error {
			src, err := io.ReadAll(p.stdin)
			if err != nil {
				return fmt.Errorf("<stdin>: %w", err)
			}
			return p.interp.RunSource(ctx, "<stdin>", src)
		}
	}
	return nil
}

// runFile runs a script. What is no script but might be run otherwise is told how.
func (p *program) runFile(ctx context.Context) error {
	if strings.EqualFold(filepath.Ext(p.file), ".gguf") {
		return fmt.Errorf("%s is a model, not a script; to talk with it: fucina-repl -m chat %[1]s", p.file)
	}
	err := p.interp.RunFile(ctx, p.file)
	if errors.Is(err, fs.ErrNotExist) && stdlib.About(p.file) != "" {
		err = fmt.Errorf("%w; for the module of this name: fucina-repl -m %s", err, p.file)
	}
	return err
}

// runModule runs a module of the standard library, and its main(args) if it has one. One that only defines functions
// says which. Asked for help, it is not run but says what it is for.
func (p *program) runModule(ctx context.Context) error {
	if len(p.args) > 0 && (p.args[0] == "--help" || p.args[0] == "-h") {
		if about := stdlib.About(p.module); about != "" {
			fmt.Print(about)
			return nil
		}
	}
	if err := p.interp.RunFile(ctx, "@stdlib//"+p.module+".star"); err != nil {
		return err
	}
	if _, ok := p.interp.Globals()["main"]; ok {
		_, err := p.interp.Eval(ctx, "<command>", "main(args)")
		return err
	}
	if p.printed.Load() || p.interactive {
		return nil
	}
	var names []string
	for name := range p.interp.Globals() {
		if !strings.HasPrefix(name, "_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	fmt.Printf("%s does nothing by itself; it defines %s\n", p.module, strings.Join(names, ", "))
	fmt.Printf("use it in a script: load(\"@stdlib//%s.star\", \"%[1]s\")\n", p.module)
	return nil
}

// programs is the modules of the standard library that can be run, by their names.
func programs() string {
	var names []string
	files, _ := stdlib.FS.ReadDir(".") // it is in the binary
	for _, f := range files {
		src, err := stdlib.FS.ReadFile(f.Name())
		if err == nil && strings.Contains(string(src), "\ndef main(") {
			names = append(names, strings.TrimSuffix(f.Name(), ".star"))
		}
	}
	return strings.Join(names, ", ")
}

// batch runs a script to its end or to Ctrl-C and returns the exit code. A script that finishes a step first has until
// a second Ctrl-C. When the prompt follows, it waits for an interrupted script; otherwise one that does not stop soon
// is left behind.
func (p *program) batch(script func(context.Context) error) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- script(ctx) }()
	var patience <-chan time.Time
	for code := exitOK; ; {
		select {
		case err := <-done:
			if err != nil {
				repl.PrintError(p.stderr, err, p.colored)
				code = max(code, exitError)
			}
			if misused := (*starlark.UsageError)(nil); errors.As(err, &misused) {
				code = max(code, exitUsage)
			}
			if errors.Is(err, context.Canceled) {
				code = exitInterrupted
			}
			return code
		case <-p.interrupts:
			if p.interp.Interrupt() {
				continue // it stops by itself, or goes on
			}
			code = exitInterrupted
			cancel()
			if !p.interactive && patience == nil {
				patience = time.After(interruptGrace)
			}
		case <-patience:
			return code
		}
	}
}

// readLine reads a line for a script: by the prompt's editor if that is there, else edited on a terminal, and without
// prompts from anything else. There a line that comes after ctx has ended is the next one's who asks.
func (p *program) readLine(ctx context.Context, prompt string) (string, error) {
	if p.editor == nil && isTerminal(os.Stdin) && isTerminal(os.Stdout) {
		if err := p.edit(); err != nil {
			return "", err
		}
	}
	if p.editor == nil {
		line, err := p.stdin.ReadString('\n')
		if line != "" {
			err = nil // of an end without a newline, which the next call meets
		}
		return strings.TrimRight(line, "\r\n"), err
	}
	line, err := p.editor.ReadLine(ctx, prompt)
	if errors.Is(err, repl.ErrInterrupt) {
		err = context.Canceled
	}
	if err == nil && line != "" {
		p.editor.Remember(line)
	}
	return line, err
}
