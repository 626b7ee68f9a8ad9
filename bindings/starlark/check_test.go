package starlark

import (
	"context"
	"io"
	"strings"
	"testing"
)

// A shape-only run finds what a real one would, on every way through, and computes nothing.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"right": {`
def f():
    x = zeros(batch=1 << 20, in_=1 << 20)
    return x.dot(ones(out=10, in_=1 << 20), "in").softmax("out").sum("batch")
y = check(f)
if y.shape != {"out": 10}:
    fail(y)`, ""},
		"wrong axis": {`
check(lambda: ones(a=3).sum("b"))`, `sum: no axis "b" in x[a=3]`},
		"both ways of an if": {`
def f():
    x = ones(a=3)
    if x.sum().item() > 2:
        return x
    return x.sum("b")
check(f)`, `no axis "b"`},
		"an elif": {`
def f():
    x = ones(a=3)
    v = x.sum().item() * 2
    if v == 1:
        pass
    elif 2 <= v and not v < 3:
        x.sum("c")
check(f)`, `no axis "c"`},
		"a loop until the data says so": {`
def f():
    x = ones(a=3)
    while x.max().item() < 100:
        x = x * 2
    return x.sum("d")
check(f)`, `no axis "d"`},
		"a filter": {`
def f():
    x = ones(a=3)
    return [x.sum("e") for i in range(2) if x.max().item() > i]
check(f)`, `no axis "e"`},
		"data asked for": {`
check(lambda: ones(a=3).tolist())`, `no data in a shape-only run`},
		"its result has no data": {`
x = check(lambda: ones(a=3))
x.sum()`, `no data`},
		"real tensors afterwards": {`
w = ones(a=3)
check(lambda: w + 1)
if (w + 1).sum().item() != 6.0:
    fail()`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			it := New(Config{Stdout: io.Discard, MemLimit: 1 << 20})
			defer it.Close()
			err := it.RunSource(context.Background(), "check.star", []byte(c.src))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
