package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fucina-go/fucina/repl"
)

// openTerminal returns both ends of a new pseudo-terminal.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("this system has no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// A screen is what a program writes to a terminal, and the keys typed there.
type screen struct {
	master *os.File
	chunks chan string
	seen   string // read and not yet expected
}

func newScreen(master *os.File) *screen {
	s := &screen{master: master, chunks: make(chan string, 1024)}
	go func() {
		defer close(s.chunks)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			s.chunks <- string(buf[:n])
		}
	}()
	return s
}

// onTerminal starts the command on a new pseudo-terminal, with more variables in its environment.
func onTerminal(t *testing.T, env []string, args ...string) (*exec.Cmd, *screen) {
	t.Helper()
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, env...)
	return cmd, startOnTerminal(t, cmd)
}

func startOnTerminal(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	master, slave := openTerminal(t)
	defer slave.Close()
	cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return newScreen(master)
}

// expect reads the screen up to text.
func (s *screen) expect(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !strings.Contains(s.seen, text) {
		select {
		case chunk, ok := <-s.chunks:
			if !ok {
				t.Fatalf("the program ended; want %q on the screen, got\n%q", text, s.seen)
			}
			s.seen += chunk
		case <-deadline:
			t.Fatalf("want %q on the screen, got\n%q", text, s.seen)
		}
	}
	_, s.seen, _ = strings.Cut(s.seen, text)
}

func (s *screen) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(s.master, keys); err != nil {
		t.Fatal(err)
	}
}

const ctrlC, ctrlD, ctrlZ, up, left = "\x03", "\x04", "\x1a", "\x1b[A", "\x1b[D"

// TestTerminal types at a real terminal: editing, recall, a pasted block, the tab key, Ctrl-C while reading and while
// running, Ctrl-D. The blocks are in the history file afterwards.
func TestTerminal(t *testing.T) {
	home := t.TempDir()
	cmd, s := onTerminal(t, []string{"XDG_CONFIG_HOME=" + home})
	s.expect(t, "Ctrl-D leaves.")
	s.expect(t, ">>> ")
	for _, step := range []struct{ keys, answer, prompt string }{
		{"60 + 72" + strings.Repeat(left, 5) + "0\r", "672\r\n", ">>> "}, // 600 + 72
		{up + " + 1\r", "673\r\n", ">>> "},
		{"def f(x):\n\t# twice\n\treturn 2 * x\n\nf(4000)\n", "8000\r\n", ">>> "},
		{"nothing" + ctrlC, "^C\r\n", ">>> "},
		{"11" + ctrlZ + "1 * 5\r", "555\r\n", ">>> "}, // no shell could continue it, so it does not stop
		{"x = 7; print('set')\r", "set\r\n", ">>> "},
		{"while True: print('busy', end = '')\r\r", "busybusy", ""},
		{ctrlC, "interrupted", ">>> "},
		{"x * 111\r", "777\r\n", ">>> "},
		{"n = input('name? ')\r", "name? ", ""},
		{"An" + left + "n\r", "", ">>> "},
		{"n + n\r", "\"AnnAnn\"\r\n", ">>> "},
		// A line that a script left unfinished stays, before a prompt and before a question.
		{"write('left')\r", "left\r\n", ">>> "},
		{"write('your'); n = input('name? ')\r", "your\r\n", "name? "},
		{"x.\tBob\r", "", ">>> "},
		{"n\r", "\"x.Bob\"\r\n", ">>> "}, // in answers to a script the tab key completes nothing
		// In what is pasted, as the terminal says, a blank line ends no block.
		{"\x1b[200~def g():\n\ty = 40\n\n\treturn y + 1000\n\ng()\n\x1b[201~", "1040\r\n", ">>> "},
		{"\x1b[200~for i in range(3):\n    print(i * 111)\n\n\x1b[20", "... ", ""},
		{"1~\r", "0\r\n111\r\n222\r\n", ">>> "}, // typed, it does
		// A paste whose end a Ctrl-C threw away is over.
		{"\x1b[200~while True: print('more', end = '')\nx = 7\n", "moremore", ""},
		{ctrlC, "interrupted", ">>> "},
		{"for i in range(2): print(i * 333)\r\r", "333\r\n", ">>> "},
		// The tab key completes names, and lists them where there are several.
		{"y = ones(aa=2).sum(); print('made')\r", "made\r\n", ">>> "},
		{"y.ite\t()\r", "2.0\r\n", ">>> "},
		{"y.so\t", "softcap   softmax   softplus  sort\r\n", ">>> y.so"},
		{"ftm\t(\r", "... ", ""},
		{ctrlC, "^C\r\n", ">>> "},
	} {
		s.press(t, step.keys)
		s.expect(t, step.answer)
		s.expect(t, step.prompt)
	}
	s.press(t, ctrlD)
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-D: %v", err)
	}

	h, err := repl.OpenHistory(filepath.Join(home, "fucina", "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"600 + 72", "600 + 72 + 1", "def f(x):\n    # twice\n    return 2 * x", "f(4000)", "111 * 5",
		"x = 7; print('set')", "while True: print('busy', end = '')", "x * 111",
		"n = input('name? ')", "n + n", "write('left')", "write('your'); n = input('name? ')", "n",
		"def g():\n    y = 40\n\n    return y + 1000", "g()", "for i in range(3):\n    print(i * 111)",
		"while True: print('more', end = '')", "x = 7", "for i in range(2): print(i * 333)",
		"y = ones(aa=2).sum(); print('made')", "y.item()",
	}
	if diff := cmp.Diff(want, h.Blocks()); diff != "" {
		t.Errorf("history (-want +got)\n%s", diff)
	}
}

// TestTerminalSignal interrupts input by a signal, not by a key: what had been typed is gone, and the next line is the
// next prompt's.
func TestTerminalSignal(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
		run  func(s *screen, signal func())
	}{
		{"at the prompt", nil, 0, func(s *screen, signal func()) {
			s.expect(t, ">>> ")
			s.press(t, "input('name? ')\r")
			s.expect(t, "\rname? ")
			s.press(t, "half")
			s.expect(t, "? half")
			signal()
			s.expect(t, "interrupted")
			s.expect(t, ">>> ")
			s.press(t, "6 * 111\r")
			s.expect(t, "666\r\n")
			s.expect(t, ">>> ")
			s.press(t, ctrlD)
		}},
		{"in a script that goes on", []string{"-c",
			"print('first', interruptible(input, 'a? '))\nprint('second', repr(input('b? ')))"}, 0,
			func(s *screen, signal func()) {
				s.expect(t, "a? ")
				s.press(t, "half")
				s.expect(t, "? half")
				signal()
				s.expect(t, "interrupted = True")
				s.expect(t, "b? ")
				s.press(t, "whole\r")
				s.expect(t, `second "whole"`)
			}},
		{"in a script that ends", []string{"-c", "input('a? ')"}, exitInterrupted,
			func(s *screen, signal func()) {
				s.expect(t, "a? ")
				signal()
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd, s := onTerminal(t, nil, c.args...)
			time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
			c.run(s, func() {
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
			})
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("the exit code is %d, want %d", code, c.code)
			}
		})
	}
}
