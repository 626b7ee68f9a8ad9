package starlark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/grad"
)

// TestMoons follows the whole training of micrograd's demonstration.
func TestMoons(t *testing.T) {
	text, err := os.ReadFile("testdata/training/moons.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct{ Loss, Accuracy []float64 }
	var data any
	if err := errors.Join(json.Unmarshal(text, &want), json.Unmarshal(text, &data)); err != nil {
		t.Fatal(err)
	}
	it := New(Config{Threads: 1})
	defer it.Close()
	v, err := FromGo(data)
	if err != nil {
		t.Fatal(err)
	}
	it.Predeclare("data", v)
	if err := it.RunFile(context.Background(), "testdata/training/moons.star"); err != nil {
		t.Fatal(err)
	}
	if len(want.Loss) != 100 {
		t.Fatalf("%d losses", len(want.Loss))
	}
	for name, want := range map[string][]float64{"losses": want.Loss, "accuracies": want.Accuracy} {
		got := it.Globals()[name].(*star.List)
		if got.Len() != len(want) {
			t.Fatalf("%d %s, want %d", got.Len(), name, len(want))
		}
		worst := 0.0
		for i, w := range want {
			worst = math.Max(worst, math.Abs(float64(got.Index(i).(star.Float))-w))
		}
		if !(worst <= 1e-9) {
			t.Errorf("%s: off by %g, at most 1e-9", name, worst)
		}
		t.Logf("%s: off by %.2g at most", name, worst)
	}
}

// TestStepIsAtomic cancels runs of steps: a step that has begun is done, for every parameter, and no other one begins.
func TestStepIsAtomic(t *testing.T) {
	for _, rule := range []string{"sgd", "adamw", "muon", "apollo", "adafactor"} {
		it := New(Config{})
		setup := fmt.Sprintf(`w = [variable(zeros(a=256, b=300)) for _ in range(8)]
opt = optim.%s(w, lr=1.0)
backward(sum([x.sum() for x in w]))
def work():
    while True:
        opt.step()
`, rule)
		if _, err := it.Eval(context.Background(), "setup", setup); err != nil {
			t.Fatal(err)
		}
		begun := 0
		for i := range 12 {
			ctx, cancel := context.WithCancel(context.Background())
			timer := time.AfterFunc(time.Duration(3+2*i)*time.Millisecond, cancel)
			_, err := it.Eval(ctx, "work", "work()")
			timer.Stop()
			cancel()
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: %v", rule, err)
			}
			st := it.Globals()["opt"].(grad.Stateful).State()
			steps := map[int64]bool{}
			for name, v := range st.Values {
				if n, ok := v.(int64); ok && len(name) > 5 {
					steps[n] = true
				}
			}
			if len(steps) > 1 {
				t.Fatalf("%s: after an interrupt parameters have taken %v steps", rule, steps)
			}
			for n := range steps {
				begun = max(begun, int(n))
			}
			// All parameters are alike, so are all their elements where the rule treats them alike.
			if v, err := it.Eval(context.Background(), "same",
				"max([(x - w[0]).abs().max().item() for x in w])"); err != nil ||
				rule != "apollo" && v.String() != "0.0" {
				t.Fatalf("%s: the parameters differ by %v, %v", rule, v, err)
			}
		}
		if begun == 0 {
			t.Errorf("%s: no step was ever taken", rule)
		}
		t.Logf("%s: %d steps", rule, begun)
		it.Close()
	}
}

// A step that memory does not allow changes nothing.
func TestStepWithoutMemory(t *testing.T) {
	it := New(Config{})
	defer it.Close()
	run := func(src string) (star.Value, error) { return it.Eval(context.Background(), "block", src) }
	if _, err := run(`w = [variable(ones(a=1 << 16)) for _ in range(4)]
opt = optim.adamw(w, lr=1.0)
backward(sum([x.sum() for x in w]))`); err != nil {
		t.Fatal(err)
	}
	it.Env().SetMemoryLimit(it.Env().Memory().InUse + 5<<18)
	before := it.Env().Memory().InUse
	_, err := run("opt.step()")
	var failed *core.Error
	if !errors.As(err, &failed) {
		t.Fatalf("got %v, want an error about memory", err)
	}
	if after := it.Env().Memory().InUse; after != before {
		t.Errorf("%d bytes are left behind", after-before)
	}
	it.Env().SetMemoryLimit(0)
	if v, err := run("[x.min().item() for x in w]"); err != nil || v.String() != "[1.0, 1.0, 1.0, 1.0]" {
		t.Errorf("the parameters changed: %v, %v", v, err)
	}
	if len(it.Globals()["opt"].(grad.Stateful).State().Tensors) != 0 {
		t.Error("something is remembered of a step that was not")
	}
	if _, err := run("opt.step()"); err != nil {
		t.Error(err)
	}
}

// TestNoInternalErrors has what a script may do by mistake: the message says what, not where in Go it went wrong.
func TestNoInternalErrors(t *testing.T) {
	it, _ := inFolder(t)
	for _, c := range []struct{ src, want string }{
		{"d = {'x': ones(batch=4)}\nb = batches(d, 2)\nd['y'] = 3\nb.next()", "a part of the data is a int now"},
		{"q = ones(a=4, b=256).quantize('q4_k')\nsave_safetensors('q.safetensors', {'q': q})",
			"q is q4_k[a=4, b=256], and safetensors has no quantized dtype"},
	} {
		_, err := it.Eval(background, "test", c.src)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngave %v, want %s", c.src, err, c.want)
		}
	}
	evaluate(t, it, `
w = variable(ones(a=2))
def f():
    e = optim.ema([w])
    e.swap()
    save_checkpoint("e.safetensors", e=e)
check(f)
z = variable(zeros(a=0))
backward(w.sum() + z.sum())
equal(clip_grad_norm([w, z], 5.0, norm_type=float("inf")), 1.0)
y, dy = jvp(lambda x: x, [ones(a=2)], [ones(a=2)], create_graph=True)
equal((y.tolist(), dy.tolist()), ([1, 1], [1, 1]))
l, h = hvp(lambda x: x, [tensor(2.0)], [tensor(1.0)], create_graph=True)
equal((l.item(), h[0].item()), (2, 0))
`)
}
