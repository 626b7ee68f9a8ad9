package starlark

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestInterruptible ends what takes long within a call, and lets the script go on as if nothing had been.
func TestInterruptible(t *testing.T) {
	for name, body := range map[string]string{
		"a loop":   "while True:\n        pass",
		"a kernel": "for _ in range(1 << 20):\n        x.dot(w, \"k\")",
		"a generation": "for piece in m.generate([403], max_tokens=2000, logit_bias={1: False, 2: False}):\n" +
			"        said.append(piece)",
		"caught": "while True:\n        catch(list, range(1 << 22))",
		"nested": "interruptible(lambda: [began()] + [x.dot(w, \"k\") for _ in range(1 << 20)])\n" +
			"    said.append(\"on\")\n    began()\n    while True:\n        pass",
	} {
		t.Run(name, func(t *testing.T) {
			it := talking(t, Config{Stdout: io.Discard})
			if name != "nested" {
				body = "began()\n    " + body
			}
			src := "x = ones(i=256, k=256); w = ones(j=256, k=256); said = []\ndef long():\n    " + body + `

r = interruptible(long)
equal((r.value, r.interrupted), (None, True))
equal(x.dot(w, "k").at(i=5, j=7).item(), 256.0)
equal("".join(list(m.generate("Once", max_tokens=3))), " upon a time")
equal(interruptible(lambda a, b=0: a + b, 3, b=4), struct(value=7, interrupted=False))
equal(catch(interruptible, lambda: fail("no")).error, "fail: no")
`
			presses := 1
			if name == "nested" {
				presses = 2
			}
			began := make(chan bool, 1)
			fn, err := Function("began", func() { began <- true })
			if err != nil {
				t.Fatal(err)
			}
			it.Predeclare("began", fn)
			go func() {
				for range presses { // a second one during the first would be for the same call
					<-began
					time.Sleep(60 * time.Millisecond)
					for !it.Interrupt() {
						time.Sleep(time.Millisecond)
					}
				}
			}()
			if err := it.RunSource(context.Background(), "t.star", []byte(src)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestInterruptibleDefers insists that Ctrl-C lets a step that is deferred finish, whatever call it is in, and ends no
// more than that call after it.
func TestInterruptibleDefers(t *testing.T) {
	it := newTest(Config{})
	defer it.Close()
	press, err := Function("press", func() bool { return it.Interrupt() })
	if err != nil {
		t.Fatal(err)
	}
	it.Predeclare("press", press)
	if err := it.RunSource(context.Background(), "t.star", []byte(`
said = []

def step():
    said.append(interrupted())
    equal(press(), True)
    said.append(interrupted())

def both():
    defer_interrupt(step)
    said.append("too far")

def outer():
    equal(interruptible(both), struct(value=None, interrupted=True))
    said.append(interrupted())
    return 5

equal(interruptible(both).interrupted, True)
equal(said, [False, True])
equal(defer_interrupt(outer), 5)
equal(said, [False, True, False, True, False])
equal(press(), False)
equal(interruptible(lambda: defer_interrupt(lambda: [press(), press(), said.append("too far")])).interrupted, True)
equal(said[-1], False)
`)); err != nil {
		t.Error(err)
	}
}

// TestInterruptibleEnds insists that a context ends all of a run.
func TestInterruptibleEnds(t *testing.T) {
	it := New(Config{})
	defer it.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	const src = "def f():\n    while True:\n        pass\n\nwhile True:\n    interruptible(f)"
	err := it.RunSource(ctx, "t.star", []byte(src))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if it.Interrupt() {
		t.Error("there is nothing to interrupt any more")
	}
}

// TestInput reads lines, and Ctrl-C ends what waits for one; the line that comes then is the next.
func TestInput(t *testing.T) {
	typed, asked := make(chan string), make(chan string, 9)
	it := newTest(Config{ReadLine: func(_ context.Context, prompt string) (string, error) {
		asked <- prompt
		text, ok := <-typed
		switch {
		case !ok:
			return "", io.EOF
		case text == "^C":
			return "", context.Canceled
		}
		return text, nil
	}})
	defer it.Close()
	go func() {
		typed <- "one"
		<-asked
		<-asked
		for !it.Interrupt() {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond)
		typed <- "two"
		typed <- "^C"
		close(typed)
	}()
	if err := it.RunSource(context.Background(), "t.star", []byte(`
equal(input("> "), "one")
equal(interruptible(input), struct(value=None, interrupted=True))
equal(input(), "two")
equal(interruptible(input).interrupted, True)
equal([input(), input()], [None, None])
`)); err != nil {
		t.Error(err)
	}
	none := New(Config{})
	defer none.Close()
	err := none.RunSource(context.Background(), "t.star", []byte("input()"))
	if err == nil || !strings.Contains(err.Error(), "this program gives scripts no lines to read") {
		t.Errorf("got %v", err)
	}
}

// TestInputLeft insists that a reader is told when nobody waits, and that what it returns then is no Ctrl-C.
func TestInputLeft(t *testing.T) {
	asked := make(chan bool, 9)
	it := newTest(Config{ReadLine: func(ctx context.Context, prompt string) (string, error) {
		asked <- true
		if prompt == "a" {
			<-ctx.Done()
			return "", context.Canceled
		}
		return prompt, nil
	}})
	defer it.Close()
	go func() {
		<-asked
		for !it.Interrupt() {
			time.Sleep(time.Millisecond)
		}
	}()
	if err := it.RunSource(context.Background(), "t.star", []byte(`
equal(interruptible(input, "a").interrupted, True)
equal(input("b"), "b")
`)); err != nil {
		t.Error(err)
	}
}

// TestInputEnds insists that Ctrl-C at a prompt ends a script that does not say otherwise.
func TestInputEnds(t *testing.T) {
	it := New(Config{ReadLine: func(context.Context, string) (string, error) { return "", context.Canceled }})
	defer it.Close()
	if err := it.RunSource(context.Background(), "t.star", []byte("input()")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestInputDefers insists that Ctrl-C at a prompt lets a step that is deferred have its line.
func TestInputDefers(t *testing.T) {
	presses := 0
	it := New(Config{ReadLine: func(context.Context, string) (string, error) {
		if presses++; presses == 2 {
			return "two", nil
		}
		return "", context.Canceled
	}})
	defer it.Close()
	err := it.RunSource(context.Background(), "t.star", []byte("defer_interrupt(lambda: [input(), input()])"))
	if !errors.Is(err, context.Canceled) || presses != 3 {
		t.Errorf("got %v after %d lines", err, presses)
	}
}

func TestThreads(t *testing.T) {
	it := newTest(Config{Threads: 3})
	defer it.Close()
	if err := it.RunSource(context.Background(), "t.star", []byte(`
equal([threads(), threads(1), threads(), threads(3)], [3, 1, 1, 3])
for n in (0, 4, "a"):
    equal(catch(threads, n).error.partition(";")[0], "threads: got " + repr(n) + ", want a number from 1 to 3")
`)); err != nil {
		t.Error(err)
	}
}
