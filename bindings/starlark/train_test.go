package starlark

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/fucina-go/fucina/grad/optim"
	"github.com/fucina-go/fucina/kernels/cpu"
)

// loop is a run of train.run with whatever has a state: matrices and a bias, batches, dropout, a validation that draws
// random numbers, gradients of two batches, an average of the weights.
const loop = `
load("@stdlib//train.star", "train")
load("@stdlib//nn.star", "nn")

seed(4)
examples = randn(batch=30, in_=5)
loader = batches((examples, examples.sum("in")), 8, seed=2)
net = nn.sequential([nn.linear(5, {"hidden": 6}), tanh, nn.linear({"hidden": 6}, 1)])
groups = [{"params": [m.w for m in net.modules[::2]]}, {"params": [m.b for m in net.modules[::2]], "rule": "adamw"}]
opt = getattr(optim, rule)(groups if rule == "muon" else net)
mean = optim.ema(net, decay=0.9)

def loss(step):
    x, y = loader.next()
    return (net.call(x.dropout(0.1, training=True)).at(out=0) - y).square().mean()

def after(step):
    mean.update()
    stepped(step)

def go(until):
    return train.run(loss, opt, steps=until, lr=schedule.cosine(opt.lr, 13, warmup=2), clip=1.0, accumulate=2, every=3,
        validate=lambda: rand(a=1).mean(), validate_every=4, save="run.safetensors", save_every=2, keep=1,
        log="run.jsonl", state={"net": net, "loader": loader, "mean": mean}, after=after)

def result():
    return [{k: p.tolist() for k, p in nn.parameters(net).items()}, mean.averaged(lambda: net.modules[0].w.tolist()),
            rand(a=2).tolist(), loader.position]
`

// ways to stop a run.
const (
	unstopped   = iota
	byInterrupt // Ctrl-C
	byContext   // at once
	bySave      // in the middle of writing a file
	waysToStop
)

// looped runs the loop in dir until it has made so many steps or, at step stop, is stopped: then it returns "".
func looped(t *testing.T, rule, dir string, until, way, stop int) (result, printed string) {
	t.Helper()
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	failing := false
	it := newTest(Config{Dir: dir, Threads: 1 + rand.Intn(3), Stdout: &out,
		Save: func(name string, write func(io.Writer) error) error {
			return saveFile(anywhere{}, name, func(w io.Writer) error {
				if failing {
					w = &fullDisk{w, 700}
				}
				return write(w)
			})
		}})
	defer it.Close()
	it.cfg.rotate = rotateFile
	stepped, err := Function("stepped", func(step int) {
		if step == stop {
			switch way {
			case byInterrupt:
				if !it.Interrupt() || it.Interrupt() {
					t.Error("one Ctrl-C waits for the step, not two")
				}
			case byContext:
				cancel()
				for it.stopped.Load() == nil {
					runtime.Gosched()
				}
			case bySave:
				failing = true
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	name, err := FromGo(rule)
	if err != nil {
		t.Fatal(err)
	}
	it.Predeclare("stepped", stepped)
	it.Predeclare("rule", name)
	if err := it.RunSource(background, "train.star", []byte(loop)); err != nil {
		t.Fatal(err)
	}
	if _, err = it.Eval(ctx, "<train>", fmt.Sprintf("go(%d)", until)); err != nil {
		if way == bySave && strings.Contains(err.Error(), "cannot save run.safetensors: "+syscall.ENOSPC.Error()) ||
			way != bySave && errors.Is(err, context.Canceled) {
			return "", out.String()
		}
		t.Fatalf("%s, stopped in way %d: %v", rule, way, err)
	}
	v, err := it.Eval(background, "<result>", "result()")
	if err != nil {
		t.Fatal(err)
	}
	return v.String(), out.String()
}

// fullDisk takes so many bytes.
type fullDisk struct {
	io.Writer
	left int
}

var errFull = &fs.PathError{Op: "write", Path: "run.safetensors", Err: syscall.ENOSPC}

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.left -= len(b); d.left < 0 {
		return 0, errFull
	}
	return d.Writer.Write(b)
}

// TestTrainResumes stops runs with every optimizer at any of 20 random steps, and lets them go on: the same bits as
// of one that was not stopped.
func TestTrainResumes(t *testing.T) {
	const until = 13
	times := 20
	if testing.Short() || cpu.Current() == cpu.Generic { // slowly; a hundred stops of all rules remain
		times = 5
	}
	for _, rule := range optim.Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			want, _ := looped(t, rule.Name, t.TempDir(), until, unstopped, 0)
			if half, _ := looped(t, rule.Name, t.TempDir(), until/2, unstopped, 0); half == want || len(want) < 500 {
				t.Fatalf("the run gave %s", want)
			}
			for range times {
				dir := t.TempDir()
				way, stop := 1+rand.Intn(waysToStop-1), rand.Intn(until-1)
				if got, _ := looped(t, rule.Name, dir, until, way, stop); got != "" {
					t.Fatalf("way %d did not stop it at %d", way, stop)
				}
				if got, _ := looped(t, rule.Name, dir, until, unstopped, 0); got != want {
					t.Errorf("stopped in way %d after step %d it gave\n%.300s\nwant\n%.300s", way, stop, got, want)
				}
				names, err := filepath.Glob(filepath.Join(dir, "*"))
				if err != nil || len(names) > 3 {
					t.Errorf("there are %v, %v", names, err)
				}
				log, err := os.ReadFile(filepath.Join(dir, "run.jsonl"))
				if err != nil || bytes.Count(log, []byte("\n")) != 8 { // 0 3 4 6 8 9 12 13
					t.Errorf("the log has %d lines, %v:\n%s", bytes.Count(log, []byte("\n")), err, log)
				}
			}
		})
	}
}

// After Ctrl-C the step ends, the run is saved as it is then, and the script stops.
func TestTrainInterrupted(t *testing.T) {
	dir := t.TempDir()
	_, printed := looped(t, "adamw", dir, 13, byInterrupt, 6)
	if want := "run.safetensors: saved at step 7 of 13; run again to go on\n"; !strings.HasSuffix(printed, want) {
		t.Errorf("printed\n%swant at its end\n%s", printed, want)
	}
	_, printed = looped(t, "adamw", dir, 13, unstopped, 0)
	if want := "run.safetensors: goes on at step 7 of 13\n"; !strings.HasPrefix(printed, want) {
		t.Errorf("printed\n%swant at its beginning\n%s", printed, want)
	}
}

// What goes wrong has a message of its own, and the file that was saved before is still there.
func TestTrainErrors(t *testing.T) {
	it, dir := inFolder(t)
	evaluate(t, it, `
load("@stdlib//train.star", "train")
w = variable(ones(a=3))
def go(w=w, loss=None, path="run.safetensors", lr=1e-3, steps=4, **more):
    return train.run(loss or (lambda step: (w * w).mean()), optim.adamw({"w": w}, lr=lr), steps=steps, save=path,
        quiet=True, **more)
go()
equal(go().step, 4)
go(path="nan.safetensors", validate=lambda: float("nan"), log="nan.jsonl")
equal(json.decode(read_text("nan.jsonl").split("\n")[0]), {"step": 0, "validation": None})
turn = [0]
def sour(step):
    turn[0] += 1
    return (w * (float("nan") if turn[0] == 3 else 1.0)).sum()
def own(step): fail("own")
`)
	file := filepath.Join(dir, "run.safetensors")
	saved, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]string{
		`go(variable(ones(a=4)))`: `run.safetensors is of another model: params.w is f32[a=4] here but ` +
			`f32[a=3] there; 1 of 1 tensors differ; nothing was changed`,
		`go({"u": variable(ones(a=3))}["u"], state={"more": w})`: "run.safetensors has no more; it has",
		// What cannot be saved ends a run before its first step, at which own would.
		`go(path="no/run.safetensors", loss=own)`:             "no/run.safetensors: there is no folder no",
		`go(path="new", log="no/x", loss=own)`:                "cannot save no/x: there is no folder no",
		`go(path="new", state={"trial": w})`:                  `state cannot have "trial", which is the run's`,
		`go(steps=9, save_every=9, loss=sour)`:                "the loss of step 7 is nan; anomaly(fn) says",
		`go(steps=9, loss=lambda step: w)`:                    "loss must be a scalar, got f32[a=3]",
		`go(state={"params": w})`:                             `state cannot have "params", which is the run's`,
		`go(steps=9, loss=own)`:                               "own",
		`go(steps=9, validate=lambda: "x")`:                   `validate returned "x" for validation, want numbers`,
		`go(steps=9, loss=lambda step: (w * 0).sqrt().sum())`: "norm of the gradients of step 5 is",
		`save_text("run.safetensors/x", "y")`:                 "cannot save run.safetensors/x: ",
		`save_text("x.txt", 3)`:                               "for parameter text: got int, want string",
		`defer_interrupt()`:                                   "defer_interrupt: got no function; use defer_inter",
	} {
		if _, err := it.Eval(background, "test", src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", src, err, want)
		}
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, saved) {
			t.Errorf("%s: what was saved is lost, %v", src, err)
			_ = os.WriteFile(file, saved, 0o666)
		}
	}
	// Outside of defer_interrupt Ctrl-C is the context's.
	if it.Interrupt() {
		t.Error("an interrupt was taken with no script running")
	}
}
