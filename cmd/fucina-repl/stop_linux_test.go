package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() { commands["shell"] = shell }

// shell is what a shell does with a job: it runs its arguments in the foreground of the terminal, tells when they have
// stopped, and lets them go on after a line of input.
func shell() {
	signal.Ignore(syscall.SIGTTOU) // to take the terminal back
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, syscall.SIGTSTP)
	foreground := func(group int) {
		if err := unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group); err != nil {
			fmt.Println("the shell could not pass on the terminal:", err)
		}
	}
	job := exec.Command(os.Args[1], os.Args[2:]...)
	job.Stdin, job.Stdout, job.Stderr = os.Stdin, os.Stdout, os.Stderr
	job.SysProcAttr = &syscall.SysProcAttr{Foreground: true}
	if err := job.Start(); err != nil {
		fmt.Println(err)
		return
	}
	for lines := bufio.NewReader(os.Stdin); ; {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(job.Process.Pid, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		foreground(syscall.Getpgrp())
		if err != nil || !status.Stopped() {
			fmt.Printf("exited with code %d, error %v.", status.ExitStatus(), err)
			return
		}
		for !allStopped(job.Process.Pid) { // what reads still would take what the shell is told
			time.Sleep(time.Millisecond)
		}
		terminal, err := unix.IoctlGetTermios(0, unix.TCGETS)
		if err != nil {
			fmt.Println(err)
			return
		}
		edits := terminal.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) == unix.ICANON|unix.ECHO|unix.ISIG
		fmt.Printf("stopped: %t; the shell too: %t; the terminal edits lines: %t.",
			status.StopSignal() == syscall.SIGTSTP, len(stops) > 0, edits)
		if line, err := lines.ReadString('\n'); err != nil {
			fmt.Printf("read %q: %v.", line, err)
			return
		}
		foreground(job.Process.Pid)
		_ = syscall.Kill(-job.Process.Pid, syscall.SIGCONT)
	}
}

// allStopped is whether every process of a group has stopped.
func allStopped(group int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		data, _ := os.ReadFile(file) // empty of a process that has ended
		stat := string(data)
		var state string
		var parent, its int
		_, _ = fmt.Sscan(stat[strings.LastIndexByte(stat, ')')+1:], &state, &parent, &its)
		if its == group && state != "T" {
			return false
		}
	}
	return true
}

// TestTerminalStop presses Ctrl-Z at the prompt: the job stops and the shell does not; the terminal is given back; and
// what had been typed is there again afterwards. Where the job is the program and what waits for it, both stop.
func TestTerminalStop(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "fucina-repl")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		job  []string
	}{
		{"the program", []string{program}},
		{"what waits for the program", []string{"sh", "-c", program + "; exit $?"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := command(t, c.job...)
			cmd.Args[0] = "shell"
			s := startOnTerminal(t, cmd)
			time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			s.expect(t, ">>> ")
			s.press(t, "print(6 * 111"+ctrlZ)
			stopped := "stopped: true; the shell too: false; the terminal edits lines: true."
			s.expect(t, stopped)
			s.press(t, "go on\r")
			s.expect(t, ">>> print(6 * 111")
			s.press(t, ctrlZ)
			s.expect(t, stopped)
			s.press(t, "go on\r")
			s.expect(t, ">>> print(6 * 111")
			s.press(t, "0)\r") // Enter sends a return, which only a terminal that edits no lines hands on
			s.expect(t, "6660\r\n")
			s.expect(t, ">>> ")
			s.press(t, ctrlD)
			s.expect(t, "exited with code 0, error <nil>.")
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
