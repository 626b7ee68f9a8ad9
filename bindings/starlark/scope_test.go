package starlark

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
)

// programs are ordinary scripts whose function turn(i) is called three times. Each leaves its result
// in the function result().
var programs = map[string]string{
	"append to an outer list": `
xs = []
def turn(i):
    xs.append(full(i, a=100).sum("a"))
def result():
    return [x.item() for x in xs]
want = [0.0, 100.0, 200.0]`,
	"state in a dict": `
state = {"h": zeros(a=100)}
def turn(i):
    state["h"] = state["h"] + 1
def result():
    return state["h"].sum().item()
want = 300.0`,
	"carry through a loop": `
box = [ones(a=100)]
def turn(i):
    h = box[0]
    for k in range(3):
        h = h * 2
    box[0] = h
def result():
    return box[0].max().item()
want = 512.0`,
	"a closure's own variable": `
def counter():
    total = [zeros(a=100)]
    def add(x):
        total[0] = total[0] + x
        return total[0]
    return add
add = counter()
def turn(i):
    add(full(i, a=100))
def result():
    return add(0).sum().item()
want = 300.0`,
	"values in structs": `
models = []
def turn(i):
    w = full(i, a=100)
    models.append(struct(w=w, twice=struct(w=w + w)))
def result():
    return sum([m.twice.w.sum().item() + m.w.sum().item() for m in models])
want = 900.0`,
	"an RNN": `
w = full(0.01, hidden=100, inp=100)
state = {"h": full(1.0, inp=100)}
def cell(h, x):
    return (h.dot(w, "inp").rename(hidden="inp") + x).tanh()
def turn(i):
    h = state["h"]
    for t in range(4):
        h = cell(h, 0.5)
    state["h"] = h
def result():
    return state["h"].shape["inp"]
want = 100`,
	"an average of weights": `
weights = {"w": zeros(a=100), "b": zeros(b=100)}
ema = {k: v.copy() for k, v in weights.items()}
def turn(i):
    for k in list(weights):
        weights[k] = weights[k] + 1
        ema[k] = ema[k] * 0.5 + weights[k] * 0.5
def result():
    return sum([v.sum().item() for v in ema.values()])
want = 425.0`,
	"a list of metrics": `
metrics = []
def turn(i):
    loss = (full(i, a=100) - 1).mean()
    metrics.append((i, loss, {"double": loss * 2}))
def result():
    return [(i, l.item(), d["double"].item()) for i, l, d in metrics]
want = [(0, -1.0, -2.0), (1, 0.0, 0.0), (2, 1.0, 2.0)]`,
	"a bound method and a lambda": `
calls = []
def turn(i):
    x = full(i, a=100)
    calls.append(x.sum)
    calls.append(lambda: x.max("a"))
def result():
    return [f().item() for f in calls]
want = [0.0, 0.0, 100.0, 1.0, 200.0, 2.0]`,
	"views of a larger tensor": `
rows = []
def turn(i):
    x = (arange(200, "a") + i).split("a", row=2, col=-1)
    rows.append(x.at(row=1).slice(col=(0, 2)))
def result():
    return [r.tolist() for r in rows]
want = [[100, 101], [101, 102], [102, 103]]`,
}

// Scopes change nothing about what a program computes.
func TestScopePrograms(t *testing.T) {
	ways := map[string]string{
		"plain":  "for i in range(3):\n    turn(i)\n",
		"scope":  "for i in range(3):\n    scope(turn, i)\n",
		"scoped": "run = scoped(turn)\nfor i in range(3):\n    run(i)\n",
		"steps":  "for i in steps(3):\n    turn(i)\n",
		"inside": "def main():\n    for i in steps(3):\n        scope(lambda: turn(i))\nscope(main)\n",
	}
	for name, program := range programs {
		for way, loop := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				it := New(Config{Stdout: io.Discard})
				defer it.Close()
				src := program + "\n" + loop + "got = result()\nif got != want:\n    fail(got, want)\n"
				if err := it.RunSource(context.Background(), "program.star", []byte(src)); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// A loop's own variables live from turn to turn.
func TestStepsCarriesLocals(t *testing.T) {
	runScript(t, `
def main(n):
    h = ones(a=100)
    shared = ones(a=100)
    last = None
    for i in steps(n):
        h = h + shared
        shared = scope(lambda: shared * 1)
        last = (h * 2).sum()
    return h.max().item(), last.item()
got = main(5)
if got != (6.0, 1200.0):
    fail(got)

def first(n):
    for i in steps(n):
        x = full(i, a=100)
        if i == 2:
            return x + 1
x = first(5)
if x.max().item() != 3.0:
    fail(x)

for batch in steps([1, 2, 3]):
    if batch == 2:
        break
if batch != 2:
    fail(batch)
`)
}

func runScript(t *testing.T, src string) *Interp {
	t.Helper()
	it := New(Config{Stdout: io.Discard})
	t.Cleanup(it.Close)
	if err := it.RunSource(context.Background(), "test.star", []byte(src)); err != nil {
		t.Fatal(err)
	}
	return it
}

// What a scope ends is gone at once, and using it says what happened.
func TestScopeEnds(t *testing.T) {
	it := New(Config{Stdout: io.Discard})
	defer it.Close()
	src := `
def leak():
    x = ones(a=1000)
    hidden.append(x.sum)
    return None
hidden = []
scope(leak)
kept = hidden[0]()
def chain():
    h = ones(a=1000)
    for i in range(16):
        h = h + 1
    return h.sum()
scope(chain)
`
	if err := it.RunSource(context.Background(), "test.star", []byte(src)); err != nil {
		t.Fatal(err)
	}
	if s := it.Env().Memory(); s.Buffers != 1 {
		t.Errorf("%d buffers in use, want the one that hidden leads to", s.Buffers)
	}
}

func TestUseAfterEnd(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"free": {`
x = ones(a=3)
x.free()
x.free()
y = x + 1`, "add: x[a=3] was ended by free() at test.star:3:7 (it was made at test.star:2:9); " +
			"free it after its last use: x.free()"},
		"scope": {`
box = []
def f():
    x = ones(a=3)
    box.append(x)
    box.clear()
    return x.sum
def g():
    return scope(lambda: [f()] and None)
g()
x = catch(f).value
`, ""},
		"steps": {`
def main():
    for i in steps(2):
        x = ones(a=3)
        y = x.free
        if i == 1:
            return x
print(main().sum())`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			it := New(Config{Stdout: io.Discard})
			defer it.Close()
			err := it.RunSource(context.Background(), "test.star", []byte(c.src))
			if got := fmt.Sprint(err); c.want != "" && !strings.Contains(got, c.want) || c.want == "" && err != nil {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Whatever plain values a script keeps in global variables, scopes look through them.
func TestScopesKnowPlainValues(t *testing.T) {
	it := New(Config{Stdout: io.Discard})
	defer it.Close()
	for _, v := range []string{"range(3)", `"ab".elems()`, `"ab".codepoints()`, `"ab".elem_ords()`, `b"ab".elems()`,
		"set([1])", "time.now()", "time.now() - time.now()", "math", "json", "[].append", "1 << 100"} {
		source := "v = " + v + "\nfor _ in steps(2):\n    pass\nscoped(lambda: v)\n"
		if err := it.RunSource(context.Background(), "plain.star", []byte(source)); err != nil {
			t.Errorf("%s: %v", v, err)
		}
	}
}

// TestScopesSeeLaterGlobals insists that what a scope's end knew of a file's variables does not outlast a change: the
// first turns end before there is a list to keep anything in.
func TestScopesSeeLaterGlobals(t *testing.T) {
	it := newTest(Config{})
	if err := it.RunSource(background, "<test>", []byte(`
def idle():
    for i in steps(2):
        zeros(a=100)
def fill(n):
    for i in steps(n):
        kept.append(full(i, a=100))
def total():
    return sum([x.sum().item() for x in kept])
idle()
kept = []
fill(3)
idle()
kept = kept + []
fill(3)
`)); err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{"idle()", "fill(3)", "idle()"} {
		if _, err := it.Eval(background, "<test>", src); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := it.Eval(background, "<test>", "total()"); err != nil || v.String() != "900.0" {
		t.Errorf("got %v, %v, want 900.0", v, err)
	}
}

// BenchmarkTurn is what a turn of steps costs beside its body, in a file of some functions.
func BenchmarkTurn(b *testing.B) {
	it := newTest(Config{})
	src := "cases = {}\n"
	for i := range 20 {
		src += fmt.Sprintf("def f%d(x): return x\ncases[%d] = lambda: f%d(1)\n", i, i, i)
	}
	src += "def run(n):\n    for i in steps(n): pass\n"
	if err := it.RunSource(background, "<test>", []byte(src)); err != nil {
		b.Fatal(err)
	}
	if _, err := it.Eval(background, "<test>", fmt.Sprintf("run(%d)", b.N)); err != nil {
		b.Fatal(err)
	}
}
