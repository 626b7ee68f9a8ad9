package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// commands is what the tests can run, by their names.
var commands = map[string]func(){"fucina-repl": main}

func TestMain(m *testing.M) { testscript.Main(m, commands) }

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} { // keeps off the user's history
				env.Setenv(name, env.WorkDir+"/home")
			}
			data, err := filepath.Abs("../../examples/data")
			env.Setenv("DATA", data)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits runs a program and wants a certain exit code: exits CODE PROGRAM ARGS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func TestByteSize(t *testing.T) {
	good := map[string]int64{
		"1": 1, "17B": 17, "64MiB": 64 << 20, "1GiB": 1 << 30, "3KiB": 3072, "8388607TiB": 8388607 << 40,
	}
	for s, want := range good {
		var b byteSize
		if err := b.Set(s); err != nil || b.bytes != want {
			t.Errorf("%q: got %d, %v, want %d", s, b.bytes, err, want)
		}
	}
	for _, s := range []string{"", "0", "-1", "1.5GiB", "64MB", "MiB", "1 GiB", "8388608TiB", "0x10"} {
		var b byteSize
		if err := b.Set(s); err == nil {
			t.Errorf("%q: got %d bytes, want an error", s, b.bytes)
		}
	}
}
