package starlark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

func TestMaxSteps(t *testing.T) {
	it := newTest(Config{MaxSteps: 10_000})
	src := "def spin():\n    while True:\n        pass\nspin()"
	err := it.RunSource(background, "<test>", []byte(src))
	want := "stopped after 10000 steps (limit --max-steps, MaxSteps in Go)"
	if e, ok := err.(*Error); !ok || e.Msg != want || e.File != "<test>" || e.Func != "spin" {
		t.Fatalf("got %v, want %s in spin", err, want)
	}
	if used := it.thread.Steps - it.firstStep; used > 10_001 {
		t.Errorf("ran %d steps", used)
	}
	for range 3 { // the limit is for each run
		if _, err := it.Eval(background, "<after>", "sum([x for x in range(1000)])"); err != nil {
			t.Fatal(err)
		}
	}
	src = "catch(lambda: [x for x in range(100000)])\nx = 1"
	if err := it.RunSource(background, "<test>", []byte(src)); err == nil {
		t.Error("catch caught the step limit")
	}
}

// TestStopPlace stops loops at each of their instructions: the error points into the loop, not before it.
func TestStopPlace(t *testing.T) {
	for _, loop := range []string{
		"while True: pass", "while 1: y = 2", "while 0 < x: x += 1", "while not False: x = 3", "while (True): x += 1",
		"while x: pass", "while x == 0 or True:\n  y = 1", "while [0]:\n  if x: x = 1\n  else: y = 2",
		"for i in range(1 << 40): pass", "for i in range(1 << 40): y = 2", "[0 for i in range(1 << 40)]",
	} {
		for limit := range uint64(12) {
			it := newTest(Config{MaxSteps: 100 + limit, Stdout: io.Discard})
			err := it.RunSource(background, "<test>", []byte("print('before')\nx = 1\ny = 1\n"+loop))
			var e *Error
			if !errors.As(err, &e) || e.Line < 4 || !strings.HasPrefix(e.Msg, "stopped after ") {
				t.Errorf("%s, stopped after %d steps: got %v", loop, 100+limit, err)
			}
		}
	}
}

func TestMaxDepth(t *testing.T) {
	it := newTest(Config{MaxDepth: 200})
	const f = "def f(n): return f(n - 1) + 1 if n > 0 else 0\n"
	if err := it.RunSource(background, "<test>", []byte(f+"equal(f(190), 190)")); err != nil {
		t.Error(err)
	}
	for _, src := range []string{
		f + "f(1000)",
		"def f(): return sorted([1], key=lambda x: f())\nf()",
		"def f(): return catch(f)\nf()",
		"f = lambda: g()\ng = lambda: f()\nf()",
	} {
		err := it.RunSource(background, "<test>", []byte(src))
		if err == nil || !strings.Contains(err.Error(), "stopped: more than 200 calls inside one another") {
			t.Errorf("%s: got %v", src, err)
		}
	}
	if _, err := it.Eval(background, "<after>", "1"); err != nil {
		t.Errorf("the interpreter is not usable afterwards: %v", err)
	}
}

// Builtins that call one another, without a step of the script between two of them, are calls inside one another.
func TestDepthOfBuiltins(t *testing.T) {
	for _, chain := range []string{"g = scoped(g)", "g = partial(scope, g)", "g = partial(catch, g)",
		"g = partial(no_grad, g)",
		"g = partial(check, g)", "g = partial(by_key, g)"} {
		for _, n := range []int{150, 100_000} {
			it := newTest(Config{MaxDepth: 200})
			it.Predeclare("partial", star.NewBuiltin("partial", func(
				_ *star.Thread, _ *star.Builtin, args star.Tuple, _ []star.Tuple,
			) (star.Value, error) {
				return star.NewBuiltin("part", func(
					t *star.Thread, _ *star.Builtin, more star.Tuple, _ []star.Tuple,
				) (star.Value, error) {
					return args[0].(*star.Builtin).CallInternal(t, append(args[1:len(args):len(args)], more...), nil)
				}), nil
			}))
			it.Predeclare("by_key", star.NewBuiltin("by_key", func(
				t *star.Thread, _ *star.Builtin, args star.Tuple, _ []star.Tuple,
			) (star.Value, error) {
				key := star.Tuple{star.String("key"), args[0]}
				return it.names["sorted"].(*star.Builtin).CallInternal(t, star.Tuple{star.Tuple{star.MakeInt(1)}},
					[]star.Tuple{key})
			}))
			src := fmt.Sprintf("g = lambda *args: 1\nfor i in range(%d):\n    %s\ng()", n, chain)
			err := it.RunSource(background, "<test>", []byte(src))
			switch {
			case n < 200 && err != nil:
				t.Errorf("%s, %d times: %v", chain, n, err)
			case n > 200 && (err == nil || !strings.Contains(err.Error(), "more than 200 calls inside one another")):
				t.Errorf("%s, %d times: got %v", chain, n, err)
			}
		}
	}
}

// A script cannot hide its work in builtins: a limit of a million steps ends it soon, whatever it calls.
func TestWorkCountsAsSteps(t *testing.T) {
	for name, src := range map[string]string{
		"scopes in scopes": "def f(n): return scope(f, n - 1) if n else [scope(lambda: 1) for _ in range(1 << 20)]\n" +
			"f(400)",
		"scopes before a long list": "x = [None] * 1000000\nfor i in range(1 << 20): scope(lambda: 1)",
		"turns before a long list":  "x = [None] * 1000000\nfor i in steps(1 << 20): pass",
		"repeated lists":            "for i in range(1 << 20): y = [1] * 1000000",
		"lists of a tensor":         "x = ones(a=1000000)\nfor i in range(1 << 20): y = x.tolist()",
		"added lists":               "x = [1] * 1000000\nfor i in range(1 << 20): y = x + x",
		"extended lists":            "x = []\nfor i in range(1 << 20): x += range(1 << 40)",
		"repeated text":             "for i in range(1 << 20): y = 'x' * 100000000",
		"replaced text":             "x = 'x' * 1000000\nfor i in range(1 << 20): y = x.replace('x', 'yy')",
		"joined text":               "x = ['x'] * 1000000\nfor i in range(1 << 20): ''.join(x)",
		"sorted":                    "x = list(range(1000000))\nfor i in range(1 << 20): sorted(x)",
		"max":                       "x = list(range(1000000))\nfor i in range(1 << 20): max(x)",
		"shown":                     "x = [1] * 1000000\nfor i in range(1 << 20): str(x)",
		"formatted":                 "x = [1] * 1000000\nfor i in range(1 << 20): '%s' % x",
		"encoded":                   "x = [1] * 1000000\nfor i in range(1 << 20): json.encode(x)",
	} {
		t.Run(name, func(t *testing.T) {
			it := New(Config{MaxSteps: 1_000_000, Stdout: io.Discard})
			defer it.Close()
			begin := time.Now()
			err := it.RunSource(background, "<test>", []byte(src))
			if err == nil || !strings.Contains(err.Error(), "stopped after 1000000 steps") {
				t.Errorf("got %v", err)
			}
			const patience = time.Minute // uncounted, they take hours
			if took := time.Since(begin); took > patience {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	for _, test := range []struct {
		name, src string
		context   func() (context.Context, context.CancelFunc)
		is        error
		msg       string
	}{
		{"loop", "while True: pass", soon, context.Canceled, "interrupted"},
		{"caught", "while True: catch(lambda: [x for x in range(100)])", soon, context.Canceled, "interrupted"},
		{"builtin of ours", "sum(range(1 << 40))", soon, context.Canceled, "interrupted"},
		{"deadline", "while True: pass", func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(background, 20*time.Millisecond)
		}, context.DeadlineExceeded, "stopped: time limit reached"},
		{"cause", "while True: pass", func() (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(background, 20*time.Millisecond, errors.New("client went away"))
		}, context.DeadlineExceeded, "stopped: client went away"},
		{"before the start", "x = 1", func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(background)
			cancel()
			return ctx, cancel
		}, context.Canceled, "interrupted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			it := New(Config{})
			ctx, cancel := test.context()
			defer cancel()
			_, err := it.Eval(ctx, "<test>", "before = 1\n"+test.src)
			if e, ok := err.(*Error); !ok || !errors.Is(err, test.is) || e.Msg != test.msg {
				t.Fatalf("got %v, want %s", err, test.msg)
			}
			if _, err := it.Eval(background, "<after>", "after = 1"); err != nil {
				t.Errorf("the interpreter is not usable afterwards: %v", err)
			}
			if test.name != "before the start" && !it.Globals().Has("before") {
				t.Error("what was assigned before is lost")
			}
		})
	}
}

// soon is a context that is cancelled while the script is at work.
func soon() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(background)
	time.AfterFunc(20*time.Millisecond, cancel)
	return ctx, cancel
}

// TestOnCancel has a builtin that only the hook can stop.
func TestOnCancel(t *testing.T) {
	it := New(Config{})
	stopped := make(chan struct{}, 1)
	resumed := 0
	it.OnCancel(func() { stopped <- struct{}{} }, func() { resumed++ })
	it.Predeclare("kernel", star.NewBuiltin("kernel",
		func(*star.Thread, *star.Builtin, star.Tuple, []star.Tuple) (star.Value, error) {
			<-stopped
			return nil, errors.New("kernel: gave up")
		}))
	if _, err := it.Eval(background, "<before>", "1"); err != nil || resumed != 0 {
		t.Fatalf("resumed %d times without a cancellation, error %v", resumed, err)
	}
	ctx, cancel := soon()
	defer cancel()
	err := it.RunSource(ctx, "<test>", []byte("x = 1\nkernel()"))
	if e, ok := err.(*Error); !ok || e.Msg != "interrupted" || e.Line != 2 {
		t.Errorf("got %v", err)
	}
	if resumed != 1 {
		t.Errorf("resumed %d times, want once", resumed)
	}
}

// bomb is a value whose operators panic.
type bomb struct{ handle }

func (bomb) Binary(syntax.Token, star.Value, star.Side) (star.Value, error) { panic("tick") }

func TestPanics(t *testing.T) {
	it := New(Config{})
	it.Predeclare("crash", star.NewBuiltin("crash",
		func(_ *star.Thread, _ *star.Builtin, args star.Tuple, _ []star.Tuple) (star.Value, error) {
			return args[7], nil
		}))
	it.Predeclare("bomb", bomb{})
	for _, test := range []struct {
		src, want string
		line      int
	}{
		{"x = 1\ncrash()\n", "internal error: runtime error: index out of range [7] with length 0", 2},
		{"def f(x): crash()\nsorted([1], key=f)", "internal error: runtime error: index out of range [7]", 1},
		{"x = 1\nbomb + 1", "internal error: tick", 0}, // no door of ours on the way
	} {
		err := it.RunSource(background, "<test>", []byte(test.src))
		e, ok := err.(*Error)
		if !ok || !strings.HasPrefix(e.Msg, test.want) || e.Line != test.line {
			t.Errorf("%q: got %v, want %s on line %d", test.src, err, test.want, test.line)
			continue
		}
		if !strings.Contains(string(e.Stack), "limits_test.go") {
			t.Errorf("%q: the Go stack does not lead to the panic:\n%s", test.src, e.Stack)
		}
	}
	if n := it.thread.CallStackDepth(); n != 0 {
		t.Errorf("the thread still has %d frames", n)
	}
	v, err := it.Eval(background, "<after>", "catch(crash).error")
	if err != nil || !strings.HasPrefix(v.String(), `"internal error`) {
		t.Errorf("catch: got %v, %v", v, err)
	}
}

func BenchmarkCalls(b *testing.B) {
	it := New(Config{})
	for name, call := range map[string]string{"guarded": "len(x)", "function": "f(x)", "empty": "pass"} {
		b.Run(name, func(b *testing.B) {
			src := fmt.Sprintf(
				"def f(x): return x\ndef loop():\n x = []\n for i in range(%d):\n  %s\nloop()", b.N, call)
			if err := it.RunSource(background, "<bench>", []byte(src)); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// What can never fit is said to be too large; nothing is to be freed for it, and it does have an end.
func TestTooLarge(t *testing.T) {
	for src, want := range map[string]string{
		"ones(a=200000)": "ones: out of tensor memory: 781.2 KiB more on top of 0 bytes in use exceed the limit of " +
			"97.7 KiB; make it in parts, or of a smaller dtype such as f16",
		`arange(1 << 62, "seq")`: "arange: from 0 to 4.611686018427388e+18 in steps of 1 has 4.611686018427388e+18 " +
			"elements, more than memory can hold; a larger step makes fewer",
		"[1] * (1 << 40)": "a list of 16384.00 GiB is too large: the limit is 97.7 KiB",
		"ones(a=1).expand(b=1 << 40).tolist()": `a list of 90112.00 GiB is too large: the limit is 97.7 KiB; ` +
			`got f32[b=1099511627776, a=1]; take a part of it, as in: x.slice(b=(0, 10)).tolist()`,
		"(1, 2) * 1000000":                 "a tuple of 30.5 MiB is too large: the limit is 97.7 KiB",
		"'ab' * 1000000":                   "string of 1.9 MiB is too large: the limit is 97.7 KiB",
		"b'ab' * 1000000":                  "bytes of 1.9 MiB is too large: the limit is 97.7 KiB",
		"('a' * 60000) * 2":                "string of 117.2 KiB is too large: the limit is 97.7 KiB",
		"'a' * 60000 + 'b' * 70000":        "string of 127.0 KiB is too large: the limit is 97.7 KiB",
		"('a' * 60000).replace('a', 'bb')": "a string of 117.2 KiB is too large: the limit is 97.7 KiB",
		"pow(3, 500000) * pow(3, 500000)":  "an integer at most 1048576; use floats",
	} {
		it := New(Config{MemLimit: 100000})
		_, err := it.Eval(background, "<test>", src)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", src, err, want)
		}
		it.Close()
	}
}
