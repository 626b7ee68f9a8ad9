package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// endless makes a model that goes on for a long time, and a template for it, and returns the arguments to talk with it.
func endless(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	model, template := filepath.Join(dir, "endless.gguf"), filepath.Join(dir, "t.jinja")
	if err := os.WriteFile(template, []byte("{% for m in messages %}{{ m.content }}{% endfor %}"), 0o644); err != nil {
		t.Fatal(err)
	}
	small := filepath.Join(dir, "small.gguf")
	for _, args := range [][]string{
		{"../../examples/bench/random_model.star", "tiny", small},
		{"-c", `save_gguf(args[1], like=open_gguf(args[0]), metadata={"qwen3.context_length": 1 << 20})`, small, model},
	} {
		if out, err := command(t, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return []string{"-m", "chat", model, "--template", template, "--set", "max_tokens=100000", "--set",
		"temperature=0"}
}

// TestChatInterrupt sends Ctrl-C to an answer from a pipe, and to the reading of a long question, which is then taken
// back: the talk goes on.
func TestChatInterrupt(t *testing.T) {
	cmd := command(t, endless(t)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	r := bufio.NewReader(out)
	expect := func(want string) string {
		t.Helper()
		var seen strings.Builder
		for !strings.HasSuffix(seen.String(), want) {
			b, err := r.ReadByte()
			if err != nil {
				t.Fatalf("%v; want %q, got %q", err, want, seen.String())
			}
			seen.WriteByte(b)
		}
		return seen.String()
	}
	press := func() time.Duration {
		t.Helper()
		begin := time.Now()
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		expect("(stopped)\n")
		return time.Since(begin)
	}
	io.WriteString(in, "a\n")
	if _, err := io.CopyN(io.Discard, r, 200); err != nil {
		t.Fatal(err)
	}
	took := press()
	io.WriteString(in, "/show\n")
	if shown := expect("system   \"\"\n"); !strings.Contains(shown, "talk     2 messages\n") {
		t.Errorf("the talk is not kept: %s", shown)
	}
	io.WriteString(in, strings.Repeat("many words ", 1<<14)+"\n")
	time.Sleep(300 * time.Millisecond)
	reading := press()
	io.WriteString(in, "/show\n")
	expect("talk     2 messages\n")
	t.Logf("%v and %v after Ctrl-C", took, reading)
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the talk ended with %v, want no error", err)
	}
}

// TestChatTerminal talks at a real terminal: a prompt, an answer, Ctrl-C while it comes and at the prompt, Ctrl-D.
func TestChatTerminal(t *testing.T) {
	args := endless(t)
	cmd, s := onTerminal(t, nil, args...)
	s.expect(t, "> ")
	for _, step := range []struct{ keys, answer, prompt string }{
		{"a" + ctrlC, "/quit or Ctrl-D leaves", "> "},
		{"/set system be brief\r", "", "> "},
		{"/show\r", "system   \"be brief\"", "> "},
		{"hello\r", "ooooo", ""},
		{ctrlC, "(stopped)", "> "},
		{up + up + "\r", "system   \"be brief\"", "> "},
		{"/show talk\r", "user: hello", "> "},
	} {
		s.press(t, step.keys)
		s.expect(t, step.answer)
		s.expect(t, step.prompt)
	}
	s.press(t, ctrlD)
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-D: %v", err)
	}
}

// TestBenchInterrupt ends a measurement with Ctrl-C.
func TestBenchInterrupt(t *testing.T) {
	cmd := command(t, "-m", "bench", endless(t)[2], "-p", "100000", "-n", "0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	begin := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	t.Logf("ended %v after Ctrl-C", time.Since(begin))
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != exitInterrupted {
		t.Errorf("got %v, want exit code %d", err, exitInterrupted)
	}
}
