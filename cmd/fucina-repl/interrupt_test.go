//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// command is fucina-repl itself: the test binary is the command when it is called by its name.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = append([]string{"fucina-repl"}, args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home)
	return cmd
}

// TestInterrupt sends Ctrl-C to a running script, which must end the command with code 130 within 50 ms;
// the best of a few tries counts, as the machine may be busy.
func TestInterrupt(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string // in the errors
	}{
		{"script in a loop", []string{"-c", "print('started')\nx = 0\nwhile True: x += 1"}, "<command>:3:"},
		{"script in an empty loop", []string{"-c", "print('started')\nx = 0\nwhile True: pass"}, "<command>:3:1:"},
		{"script in a long builtin", []string{"-c", "print('started')\nint('9' * 10000000)"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			best := time.Hour
			for try := 0; try < 5 && best > 50*time.Millisecond; try++ {
				took, errs := interruptOnce(t, tt.args)
				best = min(best, took)
				if !strings.Contains(errs, tt.want) {
					t.Errorf("errors %q, want the place %s", errs, tt.want)
				}
			}
			if best > 50*time.Millisecond {
				t.Errorf("ended %v after Ctrl-C, want at most 50ms", best)
			}
		})
	}
}

// Ctrl-C ends a start-up file that goes on for ever, and the prompt comes.
func TestInterruptStartup(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("the folder of settings is elsewhere")
	}
	cmd := command(t, "-i")
	_, home, _ := strings.Cut(cmd.Env[len(cmd.Env)-1], "=")
	if err := os.Mkdir(filepath.Join(home, "fucina"), 0o700); err != nil {
		t.Fatal(err)
	}
	const src = "before = 20\nprint('started')\nwhile True: pass\n"
	if err := os.WriteFile(filepath.Join(home, "fucina", "startup.star"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = strings.NewReader("before + 3\n")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	if line, err := out.ReadString('\n'); line != "started\n" {
		t.Fatalf("got %q, %v, want the file to start", line, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	rest, _ := io.ReadAll(out)
	err = cmd.Wait()
	if err != nil || !strings.Contains(string(rest), "23") || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("%v; printed %q, errors %q", err, rest, stderr.String())
	}
}

func interruptOnce(t *testing.T, args []string) (took time.Duration, errs string) {
	t.Helper()
	cmd := command(t, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		t.Fatalf("got %q, %v, want the script to start", line, err)
	}
	time.Sleep(30 * time.Millisecond) // to get from the print to what follows
	begin := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	took = time.Since(begin)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Fatalf("got %v, want exit code %d", err, exitInterrupted)
	}
	return took, stderr.String()
}
