//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// training is a run that saves every other step a file of a megabyte, and prints what became of the weights.
const training = `
load("@stdlib//train.star", "train")
seed(3)
w = variable(randn(a=300, b=300) * 0.1)
opt = optim.adamw(w, lr=1e-2)
print("begun")
train.run(lambda step: (w.dot(w.rename(a="c"), "b") - eye(a=300, c=300)).square().mean() + rand(d=1).mean() * w.mean(),
    opt, steps=40, save_every=2, save=args[0] + "/run.safetensors", quiet=True)
print("end", (w * w).sum().item(), w.at(a=7).tolist()[:20])
`

// trained runs the training with its file in dir. After the beginning stop is called, with the process, until it says
// that it did what it should or the process ends.
func trained(t *testing.T, dir string, stop func(*os.Process) (done bool)) (result string, code int) {
	t.Helper()
	cmd := command(t, "-c", training, dir)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); line != "begun\n" {
		t.Fatalf("got %q, %v, want the script to begin; %s", line, err, errs.String())
	}
	ended := make(chan struct{})
	go func() {
		for stop != nil && !stop(cmd.Process) {
			select {
			case <-ended:
				return
			default:
			}
		}
	}()
	result, _ = out.ReadString('\n')
	close(ended)
	err = cmd.Wait()
	exit := (*exec.ExitError)(nil)
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	return result, code
}

func anyTime() { time.Sleep(time.Duration(rand.Intn(60)) * time.Millisecond) }

// TestTrainSignals stops a run by Ctrl-C and by killing the process, most often during a save, 20 times each, and gets
// the same weights in the end.
func TestTrainSignals(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some 50 processes")
	}
	want, code := trained(t, t.TempDir(), nil)
	if code != exitOK || !strings.HasPrefix(want, "end ") || len(want) < 200 {
		t.Fatalf("an undisturbed run printed %q, code %d", want, code)
	}
	dir := t.TempDir()
	interrupted, killed, during := 0, 0, 0
	for i := 0; interrupted < 20 || killed < 20; i++ {
		if i == 200 {
			t.Fatalf("%d runs could be interrupted, %d killed", interrupted, killed)
		}
		stop := func(p *os.Process) bool {
			anyTime()
			_ = p.Signal(os.Interrupt)
			return true
		}
		if i%2 == 1 {
			stop = func(p *os.Process) bool {
				if saving, _ := filepath.Glob(filepath.Join(dir, ".run.*")); len(saving) == 0 {
					return false
				}
				_ = p.Kill()
				return true
			}
		}
		switch result, code := trained(t, dir, stop); {
		case code == exitInterrupted && result == "":
			interrupted++
		case code == -1:
			killed++
			left, _ := filepath.Glob(filepath.Join(dir, ".run.*"))
			for _, file := range left {
				during++
				_ = os.Remove(file)
			}
		case code == exitOK:
			if result != want {
				t.Fatalf("a run after %d interrupts and %d kills gave\n%swant\n%s", interrupted, killed, result, want)
			}
			dir = t.TempDir()
		default:
			t.Fatalf("printed %q, code %d", result, code)
		}
	}
	if result, code := trained(t, dir, nil); code != exitOK || result != want {
		t.Errorf("in the end it gave, with code %d,\n%swant\n%s", code, result, want)
	}
	if during < 5 {
		t.Errorf("only %d of %d were killed during a save", during, killed)
	}
	t.Logf("%d interrupted, %d killed, %d of them during a save", interrupted, killed, during)
}

// The first Ctrl-C waits for what the script defers it for, the second does not.
func TestSecondInterrupt(t *testing.T) {
	const script = `print("begun")
def wait():
    while not interrupted():
        pass
    print("asked")
    while True:
        pass
defer_interrupt(wait)`
	cmd := command(t, "-c", script)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	for _, want := range []string{"begun\n", "asked\n"} {
		if line, err := out.ReadString('\n'); line != want {
			t.Fatalf("got %q, %v, want %q", line, err, want)
		}
		time.Sleep(20 * time.Millisecond) // to get from the print to what follows
		_ = cmd.Process.Signal(os.Interrupt)
	}
	exit := (*exec.ExitError)(nil)
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("got %v, want exit code %d", err, exitInterrupted)
	}
}
