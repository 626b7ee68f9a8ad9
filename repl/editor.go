package repl

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

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

// A Terminal edits lines on a terminal.
type Terminal struct {
	rl   *readline.Instance
	keys *keyboard
	mu   sync.Mutex // held while a line is read
}

// NewTerminal returns an editor on standard input and output. Close gives the terminal back.
func NewTerminal() (*Terminal, error) {
	keys := &keyboard{from: readline.Stdin, typed: make(chan typed, 1), press: make(chan byte),
		closed: make(chan struct{})}
	rl, err := readline.NewEx(&readline.Config{
		Stdin:                  io.NopCloser(keys),
		AutoComplete:           indenter{},
		DisableAutoSaveHistory: true,
		HistoryLimit:           10_000,
		HistorySearchFold:      true,
	})
	if err != nil {
		return nil, err
	}
	return &Terminal{rl: rl, keys: keys}, nil
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
	t.rl.SetPrompt(prompt)
	line, err := t.rl.Readline()
	if errors.Is(err, readline.ErrInterrupt) {
		err = ErrInterrupt
	}
	return line, err
}

// Remember implements Editor.
func (t *Terminal) Remember(line string) { _ = t.rl.SaveHistory(line) }

// Close gives the terminal back.
func (t *Terminal) Close() error {
	close(t.keys.closed) // for what is being read, for which the library would wait
	return t.rl.Close()
}

// keyboard is what is typed, and a Ctrl-C that nobody has to type. Keys are read only when they are asked for.
type keyboard struct {
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

// Read implements io.Reader.
func (k *keyboard) Read(p []byte) (int, error) {
	if len(k.rest.keys) == 0 && k.rest.err == nil {
		if !k.waiting {
			k.waiting = true
			go func() {
				keys := make([]byte, 4096)
				n, err := k.from.Read(keys)
				k.typed <- typed{keys[:n], err}
			}()
		}
		select {
		case k.rest = <-k.typed:
			k.waiting = false
		case p[0] = <-k.press:
			return 1, nil
		case <-k.closed:
			return 0, io.EOF
		}
	}
	n := copy(p, k.rest.keys)
	if k.rest.keys = k.rest.keys[n:]; len(k.rest.keys) > 0 {
		return n, nil
	}
	err := k.rest.err
	k.rest.err = nil
	return n, err
}

// indenter lets the tab key, and a tab in pasted text, indent a line.
type indenter struct{}

// Do implements readline.AutoCompleter.
func (indenter) Do(line []rune, pos int) (completions [][]rune, length int) {
	if strings.TrimSpace(string(line[:pos])) != "" {
		return nil, 0
	}
	return [][]rune{[]rune("    ")}, 0
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
