package repl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/chzyer/readline"
)

// ErrInterrupt is what an Editor returns when Ctrl-C is pressed at its prompt.
var ErrInterrupt = errors.New("interrupted")

// An Editor reads lines for a REPL.
type Editor interface {
	// ReadLine shows the prompt and returns a line without its newline. After Ctrl-C, or when the context ends, it
	// returns ErrInterrupt and what had been typed; at the end of the input, io.EOF.
	ReadLine(ctx context.Context, prompt string) (line string, err error)

	// Remember offers a line to be recalled at later prompts.
	Remember(line string)
}

// A Paster is an Editor that knows whether the line it returned was pasted, with more to come.
type Paster interface {
	Pasting() bool
	EndPaste() // the terminal may not say it any more: a Ctrl-C throws away what was not read
}

// A Terminal edits lines on a terminal.
type Terminal struct {
	rl    *readline.Instance
	keys  *keyboard
	begin func()
	mu    sync.Mutex // held while a line is read
	names func(word string) []string
	asks  atomic.Bool // a line is read for a block, in which names are completed
	close func() error
}

// NewTerminal returns an editor on standard input and output. Close gives the terminal back. The editor writes over
// the line that the cursor is in: begin is called before each line that is read, to end one that a script left
// unfinished. The tab key completes names at the prompts of a REPL: names returns what could stand for the last part
// of a word such as x.soft.
func NewTerminal(begin func(), names func(word string) []string) (*Terminal, error) {
	keys := &keyboard{from: readline.Stdin, typed: make(chan typed, 1), press: make(chan byte),
		closed: make(chan struct{})}
	t := &Terminal{keys: keys, begin: begin, names: names}
	rl, err := readline.NewEx(&readline.Config{
		Stdin:                  io.NopCloser(keys),
		AutoComplete:           completer{t},
		DisableAutoSaveHistory: true,
		HistoryLimit:           10_000,
		HistorySearchFold:      true,
		FuncFilterInputRune:    t.filter,
	})
	if err != nil {
		return nil, err
	}
	t.rl = rl
	t.close = sync.OnceValue(func() error {
		close(keys.closed) // for what is being read, for which the library would wait
		return rl.Close()
	})
	return t, nil
}

// ReadLine implements Editor.
func (t *Terminal) ReadLine(ctx context.Context, prompt string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil {
		return "", ErrInterrupt
	}
	read := make(chan struct{})
	defer close(read)
	defer context.AfterFunc(ctx, func() { t.keys.interrupt(read) })()
	t.begin()
	t.asks.Store(prompt == promptFirst || prompt == promptMore)
	t.rl.SetPrompt(prompt)
	t.bracket(true)
	line, err := t.rl.Readline()
	t.bracket(false)
	if errors.Is(err, readline.ErrInterrupt) {
		err = ErrInterrupt
	}
	return line, err
}

// Remember implements Editor.
func (t *Terminal) Remember(line string) { _ = t.rl.SaveHistory(line) }

// Pasting implements Paster.
func (t *Terminal) Pasting() bool { return t.keys.pasting.Load() }

// EndPaste implements Paster.
func (t *Terminal) EndPaste() { t.keys.pasting.Store(false) }

// bracket lets the terminal mark what is pasted, or no longer. Old consoles of Windows would show the request.
func (t *Terminal) bracket(on bool) {
	switch {
	case runtime.GOOS == "windows":
	case on:
		_, _ = io.WriteString(readline.Stdout, "\x1b[?2004h")
	default:
		_, _ = io.WriteString(readline.Stdout, "\x1b[?2004l")
	}
}

// filter does what Ctrl-Z asks for: it gives the terminal back, stops until the program is continued, and shows again
// what had been typed. The library's own way also stops the parent process, whatever that is, and guesses from the
// clock when it has been continued. All other keys are the library's.
func (t *Terminal) filter(key rune) (rune, bool) {
	if key != readline.CharCtrlZ {
		return key, true
	}
	t.rl.Clean()
	t.bracket(false)
	if t.rl.Terminal.ExitRawMode() == nil {
		stopSelf()
	}
	_ = t.rl.Terminal.EnterRawMode() // where it cannot, the terminal edits the line
	t.bracket(true)
	t.rl.Refresh()
	return readline.CharBell, true // which ends a search; to be told that there is no key, the library reads ahead
}

// Close gives the terminal back. Further calls do nothing.
func (t *Terminal) Close() error { return t.close() }

// keyboard is what is typed, and a Ctrl-C that nobody has to type. Keys are read only when they are asked for, and
// handed on one by one, so that pasting is true of what has been taken and not of what will be.
type keyboard struct {
	pasting atomic.Bool // what comes was pasted, says the terminal

	from    io.Reader
	waiting bool // for typed
	typed   chan typed
	press   chan byte
	closed  chan struct{}
	rest    typed // of what was typed
}

type typed struct {
	keys []byte
	err  error
}

// interrupt is Ctrl-C, again and again until the line has been read: the first may only end a search.
func (k *keyboard) interrupt(read <-chan struct{}) {
	for {
		select {
		case k.press <- readline.CharInterrupt:
		case <-read:
			return
		}
	}
}

// What a terminal sends before and behind what is pasted.
var pasteStart, pasteEnd = []byte("\x1b[200~"), []byte("\x1b[201~")

// Read implements io.Reader.
func (k *keyboard) Read(p []byte) (int, error) {
	for {
		keys := k.rest.keys
		switch {
		case bytes.HasPrefix(keys, pasteStart), bytes.HasPrefix(keys, pasteEnd):
			k.pasting.Store(keys[len("\x1b[20")] == '0')
			k.rest.keys = keys[len(pasteStart):]
		case k.rest.err == nil && (bytes.HasPrefix(pasteStart, keys) || bytes.HasPrefix(pasteEnd, keys)):
			// nothing, or what may be the beginning of a mark; alone, an Esc does nothing either
			if b, err := k.wait(); b != 0 || err != nil {
				p[0] = b
				return min(int(b), 1), err
			}
		case len(keys) > 0:
			p[0], k.rest.keys = keys[0], keys[1:]
			return 1, nil
		default:
			err := k.rest.err
			k.rest.err = nil
			return 0, err
		}
	}
}

// wait waits for more keys, which go to rest. If a Ctrl-C comes first, that is the key it returns.
func (k *keyboard) wait() (key byte, err error) {
	if !k.waiting {
		k.waiting = true
		go func() {
			keys := make([]byte, 4096)
			n, err := k.from.Read(keys)
			k.typed <- typed{keys[:n], err}
		}()
	}
	select {
	case t := <-k.typed:
		k.waiting = false
		k.rest.keys, k.rest.err = append(k.rest.keys, t.keys...), t.err
		return 0, nil
	case key := <-k.press:
		return key, nil
	case <-k.closed:
		return 0, io.EOF
	}
}

// Lines reads from something that is not a terminal: no editing, nothing recalled.
type Lines struct {
	out        io.Writer
	interrupts <-chan os.Signal
	lines      chan string
	end        error // why lines was closed
}

// NewLines returns an editor that reads lines from in and writes its prompts to out. A signal from
// interrupts is Ctrl-C. The goroutine that reads ends with the input.
func NewLines(in io.Reader, out io.Writer, interrupts <-chan os.Signal) *Lines {
	l := &Lines{out: out, interrupts: interrupts, lines: make(chan string)}
	go func() {
		r := bufio.NewReader(in)
		for l.end == nil {
			var line string
			line, l.end = r.ReadString('\n')
			if l.end == nil || line != "" {
				l.lines <- strings.TrimRight(line, "\r\n")
			}
		}
		close(l.lines)
	}()
	return l
}

// ReadLine implements Editor.
func (l *Lines) ReadLine(ctx context.Context, prompt string) (string, error) {
	if _, err := io.WriteString(l.out, prompt); err != nil {
		return "", err
	}
	select {
	case line, ok := <-l.lines:
		if !ok {
			_, _ = io.WriteString(l.out, "\n")
			return "", l.end
		}
		return line, nil
	case <-ctx.Done():
		_, _ = io.WriteString(l.out, "\n")
		return "", ErrInterrupt
	case <-l.interrupts:
		_, _ = io.WriteString(l.out, "\n")
		return "", ErrInterrupt
	}
}

// Remember implements Editor.
func (l *Lines) Remember(string) {}
