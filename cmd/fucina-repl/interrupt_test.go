//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
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
