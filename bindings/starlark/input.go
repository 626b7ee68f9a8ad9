package starlark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
)

// lines is what input waits for. A line that comes after nobody waits any more is kept for the next call.
type lines struct {
	coming chan line
	leave  context.CancelFunc // says that nobody waits
}

type line struct {
	text string
	err  error
	left bool // an error of after nobody waited
}

// input is input(prompt=""): the next line that is typed, or of the standard input, without its newline; None after the
// last. The prompt is shown on a terminal. Ctrl-C ends the run, or the call of interruptible in which it waits.
func input(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var prompt string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "prompt?", &prompt); err != nil {
		return nil, err
	}
	it := interpOf(t)
	if it.cfg.ReadLine == nil {
		return nil, &core.Error{Op: b.Name(), Msg: "this program gives scripts no lines to read"}
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		if it.lines.coming == nil {
			coming := make(chan line, 1)
			ctx, leave := context.WithCancel(context.Background())
			it.lines = lines{coming, leave}
			go func() {
				var l line
				defer func() { coming <- l }()
				defer rescue(&l.err)
				l.text, l.err = it.cfg.ReadLine(ctx, prompt)
				l.left = l.err != nil && ctx.Err() != nil
			}()
		}
		select {
		case l := <-it.lines.coming:
			it.lines.leave()
			if it.lines = (lines{}); l.left {
				continue
			}
			if v, err := it.read(b.Name(), l); v != nil || err != nil {
				return v, err
			}
		case <-look.C:
			if err := it.spend(0); err != nil {
				it.lines.leave()
				return nil, err
			}
		}
	}
}

// read is what a line gives to a script: nothing if it was Ctrl-C and a deferred step goes on.
func (it *Interp) read(op string, l line) (star.Value, error) {
	switch {
	case errors.Is(l.err, context.Canceled):
		if !it.Interrupt() {
			it.halt(&stop{msg: "interrupted", cause: context.Canceled})
		}
		return nil, it.spend(0)
	case errors.Is(l.err, io.EOF):
		return star.None, nil
	case l.err != nil:
		return nil, fmt.Errorf("%s: %w", op, l.err)
	}
	return star.String(l.text), nil
}

// threads is threads(n=None): over how many processors an operation is split from now on; without n it only tells. No
// more than the program allows. Results do not depend on it.
func threads(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var n star.Value = star.None
	if err := star.UnpackArgs(b.Name(), args, kwargs, "n?", &n); err != nil {
		return nil, err
	}
	it := interpOf(t)
	most := it.cfg.Threads
	if most == 0 {
		most = runtime.GOMAXPROCS(0)
	}
	if n != star.None {
		k, err := star.AsInt32(n)
		if err != nil || k < 1 || k > most {
			return nil, &core.Error{Op: b.Name(), Hint: "the program says how many: --threads, Threads in Go",
				Msg: fmt.Sprintf("got %s, want a number from 1 to %d", brief(n), most)}
		}
		it.env.Control.Workers = k
	}
	if k := it.env.Control.Workers; k > 0 {
		most = min(k, most)
	}
	return star.MakeInt(most), nil
}
