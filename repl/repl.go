// Package repl is the interactive prompt: it reads blocks, runs them, shows what they yield, and survives
// their errors and interrupts.
//
// Here: when a block is complete, the history and its file, the line editor and its tab key, the echo of values, the
// colour of errors. Not here: what a script means and which names it has (bindings/starlark), flags and exit codes
// (cmd/fucina-repl).
package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/bindings/starlark"
)

// A REPL is one interactive session. All fields but Interrupts must be set.
type REPL struct {
	Interp  *starlark.Interp
	Editor  Editor
	History *History
	Out     io.Writer // values
	Err     io.Writer // errors and hints
	Color   bool      // mark errors in colour

	// Interrupts receives Ctrl-C while a block runs. The block ends with an error; what it assigned stays.
	Interrupts <-chan os.Signal

	blocks     int // blocks run so far
	interrupts int // Ctrl-C in a row on an empty prompt
}

// Run reads and runs blocks until the end of the input (Ctrl-D). It returns the error that kept the editor
// from reading, if any.
func (r *REPL) Run(ctx context.Context) error {
	for _, block := range r.History.Blocks() {
		r.remember(block)
	}
	in := &blockReader{editor: r.Editor}
	for {
		block, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, ErrInterrupt):
			r.interrupted(block)
		case err != nil:
			return err
		case strings.TrimSpace(block) != "":
			r.interrupts = 0
			r.keep(block)
			r.run(ctx, block)
		}
	}
}

// interrupted tells somebody who presses Ctrl-C to leave how to leave.
func (r *REPL) interrupted(typed string) {
	if strings.TrimSpace(typed) != "" {
		r.interrupts = 0
		return
	}
	if r.interrupts++; r.interrupts == 2 {
		fmt.Fprintln(r.Err, "(Ctrl-D leaves)")
		r.interrupts = 0
	}
}

func (r *REPL) keep(block string) {
	r.remember(block)
	if err := r.History.Add(strings.TrimRight(block, "\n")); err != nil {
		fmt.Fprintf(r.Err, "history: %v; it is kept until this session ends\n", err)
	}
}

func (r *REPL) remember(block string) {
	for line := range strings.Lines(block) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			r.Editor.Remember(line)
		}
	}
}

func (r *REPL) run(ctx context.Context, block string) {
	r.blocks++
	ctx, stop := r.untilInterrupt(ctx)
	block, clocked := strings.CutPrefix(question(block), "%time ")
	began := time.Now()
	v, err := r.Interp.Eval(ctx, fmt.Sprintf("<input %d>", r.blocks), block)
	took := time.Since(began)
	if p, ok := r.Editor.(Paster); ok && ctx.Err() != nil {
		p.EndPaste()
	}
	stop()
	if err != nil {
		PrintError(r.Err, err, r.Color)
		return
	}
	if v != nil && v != star.None {
		r.Interp.Globals()["_"] = v
		fmt.Fprintln(r.Out, r.Interp.Show(v))
	}
	if clocked {
		fmt.Fprintf(r.Out, "took %v\n", took.Round(time.Microsecond))
	}
}

var (
	// asked matches a block that asks for help: ?softmax, m.generate? or ? alone; with two of them as well.
	asked = regexp.MustCompile(`^\s*(?:\?\??\s*([\pL_][\pL\d_.]*)?|([\pL_][\pL\d_.]*)\s*\?\??)\s*$`)

	// clocking matches the beginning of a block whose time is wanted, of one run or of many.
	clocking = regexp.MustCompile(`^\s*%(time|timeit)[ \t]+`)
)

// question turns a block that asks for help into the call that answers, and %timeit into that of timeit; %time it
// leaves, at the beginning. Any other block stays as it is.
func question(block string) string {
	if m := asked.FindStringSubmatch(block); m != nil {
		return "help(" + m[1] + m[2] + ")"
	}
	m := clocking.FindStringSubmatch(block)
	switch {
	case m == nil || strings.TrimSpace(block[len(m[0]):]) == "":
		return block
	case m[1] == "timeit": // what is timed may have commas, and end with a comment
		return "timeit(lambda: (" + strings.TrimRight(block[len(m[0]):], "\n") + "\n))"
	}
	return "%time " + block[len(m[0]):]
}

// untilInterrupt returns a context that ends with Ctrl-C, unless the block stops by itself then. After stop nothing
// listens any more: an old listener would take the Ctrl-C meant for a later block.
func (r *REPL) untilInterrupt(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	select {
	case <-r.Interrupts: // of before this block
	default:
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			select {
			case <-r.Interrupts:
				if !r.Interp.Interrupt() {
					cancel()
				}
			case <-ctx.Done():
			}
		}
	}()
	return ctx, func() {
		cancel()
		<-ended
	}
}
