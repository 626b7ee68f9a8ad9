package starlark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"testing"
	"time"
)

// training is a run with everything that has a state: variables, momentum kept by hand, batches, dropout, the random
// numbers of crops, and a history. It saves every other step, and says when it has.
const training = `
load("@stdlib//nn.star", "nn")
load("@stdlib//data.star", "data")

seed(4)
tokens = randint(0, 7, seq=200)
examples = randn(batch=30, in_=5)
want = examples.sum("in")
net = nn.sequential([nn.linear(5, {"hidden": 8}), tanh, nn.linear({"hidden": 8}, 1)])
words = nn.gpt(vocab=7, seq=6, embed=8, heads=2, layers=1, dropout=0.2)
model = {"net": net, "words": words}
params = nn.parameters(model)
velocity = {k: zeros(p.shape) for k, p in params.items()}
loader = batches((examples, want), 8, seed=2)
history, clock = [], {"step": 0}

def update():
    for k, p in params.items():
        velocity[k].set(velocity[k] * 0.9 + p.grad)
        p.set(p - velocity[k] * 0.05)
        p.zero_grad()

def one():
    x, y = loader.next()
    guess = net.call(x.dropout(0.1, training=True)).at(out=0)
    a, b = data.crops(tokens, batch=3, seq=6)
    loss = (guess - y).square().mean("batch") + words.call(a, training=True).cross_entropy(b, "vocab").mean()
    backward(loss)
    no_grad(update)
    history.append(loss.item())

def save():
    save_checkpoint("run.safetensors", keep=1, model=model, velocity=velocity, loader=loader, history=history,
                    clock=clock)

def train(until):
    r = catch(load_checkpoint, "run.safetensors", model=model, velocity=velocity, loader=loader, history=history,
              clock=clock)
    if r.error != None and "cannot open" not in r.error:
        fail(r.error)
    for _ in steps(until - clock["step"]):
        if clock["step"] % 2 == 0:
            save()
        one()
        clock["step"] += 1
        stepped()
    save()

def result():
    return [clock["step"], loader.epoch, loader.position, history, {k: p.tolist() for k, p in params.items()},
            {k: v.tolist() for k, v in velocity.items()}, rand(a=2).tolist()]
`

// trained runs the training in dir until it has made so many steps or, at stop, is interrupted, which it may be at any
// step: then it returns "".
func trained(t *testing.T, dir string, threads, until, stop int) string {
	t.Helper()
	it := newTest(Config{Dir: dir, Threads: threads})
	defer it.Close()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	step := 0
	stepped, err := Function("stepped", func() {
		if step++; step == stop {
			cancel()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	it.Predeclare("stepped", stepped)
	if err := it.RunSource(background, "train.star", []byte(training)); err != nil {
		t.Fatal(err)
	}
	if _, err := it.Eval(ctx, "<train>", fmt.Sprintf("train(%d)", until)); err != nil {
		if stop == 0 || !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return ""
	}
	v, err := it.Eval(background, "<result>", "result()")
	if err != nil {
		t.Fatal(err)
	}
	return v.String()
}

// TestResume stops a run at any of 20 random steps, twice each time, and gets the same bits as one that was not
// stopped, for any number of workers.
func TestResume(t *testing.T) {
	const until = 13
	want := trained(t, t.TempDir(), 1, until, 0)
	if len(want) < 1000 {
		t.Fatalf("the run gave %s", want)
	}
	for range 20 {
		dir := t.TempDir()
		for range 2 {
			trained(t, dir, 1+rand.Intn(3), until, 1+rand.Intn(6))
		}
		if got := trained(t, dir, 2, until, 0); got != want {
			t.Fatalf("a run that was stopped gave\n%.400s\nwant\n%.400s", got, want)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 2 {
			t.Errorf("%d files are left, %v", len(files), err)
		}
	}
	half := t.TempDir()
	if got := trained(t, half, 1, 7, 0); got == want {
		t.Error("half the run gives the same")
	}
}

// TestResumeKilled kills the process of a run 20 times, each at a random moment, and lets the last finish: the same
// bits as of one that was left alone.
func TestResumeKilled(t *testing.T) {
	const until = 40
	if dir := os.Getenv(killedEnv); dir != "" {
		fmt.Println("begun")
		trained(t, dir, 2, until, 0)
		return
	}
	if testing.Short() {
		t.Skip("starts 20 processes")
	}
	dir := t.TempDir()
	killed := 0
	for range 20 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestResumeKilled$")
		cmd.Env = append(os.Environ(), killedEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("begun"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.Intn(25000)) * time.Microsecond)
		if cmd.Process.Kill() == nil {
			killed++
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}
	if got, want := trained(t, dir, 1, until, 0), trained(t, t.TempDir(), 1, until, 0); got != want {
		t.Errorf("a run whose process was killed %d times gave\n%.400s\nwant\n%.400s", killed, got, want)
	}
}
