package repl

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/chzyer/readline"
)

// ErrInterrupt is what an Editor returns when Ctrl-C is pressed at its prompt.
var ErrInterrupt = errors.New("interrupted")

// An Editor reads lines for a REPL.
type Editor interface {
	// ReadLine shows the prompt and returns a line without its newline. After Ctrl-C it returns
	// ErrInterrupt and what had been typed; at the end of the input, io.EOF.
	ReadLine(prompt string) (line string, err error)

	// Remember offers a line to be recalled at later prompts.
	Remember(line string)
}

// A Terminal edits lines on a terminal.
type Terminal struct {
	rl *readline.Instance
}

// NewTerminal returns an editor on standard input and output. Close gives the terminal back.
func NewTerminal() (*Terminal, error) {
	rl, err := readline.NewEx(&readline.Config{
		AutoComplete:           indenter{},
		DisableAutoSaveHistory: true,
		HistoryLimit:           10_000,
		HistorySearchFold:      true,
	})
	if err != nil {
		return nil, err
	}
	return &Terminal{rl}, nil
}

// ReadLine implements Editor.
func (t *Terminal) ReadLine(prompt string) (string, error) {
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
func (t *Terminal) Close() error { return t.rl.Close() }

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
func (l *Lines) ReadLine(prompt string) (string, error) {
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
	case <-l.interrupts:
		_, _ = io.WriteString(l.out, "\n")
		return "", ErrInterrupt
	}
}

// Remember implements Editor.
func (l *Lines) Remember(string) {}
