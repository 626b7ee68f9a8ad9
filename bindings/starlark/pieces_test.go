package starlark

import (
	"context"
	"io"
	"testing"
)

// Long operands, which are gone through in pieces, give what short ones do.
func TestPieces(t *testing.T) {
	it := newTest(Config{Stdout: io.Discard})
	defer it.Close()
	if err := it.RunSource(context.Background(), "t.star", []byte(`
n = 100000
for make in (list, tuple):
    x = make(range(n))
    for lo, hi, step in ((1, None, 1), (None, None, -1), (5, 99990, 7), (-3, None, 1), (99990, 5, -7), (7, 3, 1)):
        got = x[lo:hi:step]
        want = range(n)[lo:hi:step]
        equal(type(got), type(x))
        equal(len(got), len(want))
        places = range(0, len(got), 1 + len(got) // 50)
        equal([got[i] for i in places], [want[i] for i in places])
    y = make(range(n))
    equal((x == y, x != y, x < y, x <= y, x > y, x >= y), (True, False, False, True, False, True))
    y = make(list(range(n - 1)) + [n])
    equal((x == y, x != y, x < y, x <= y, x > y, x >= y), (False, True, True, True, False, False))
    y = make(range(n + 1))
    equal((x == y, x != y, x < y, x <= y, x > y, x >= y), (False, True, True, True, False, False))
    equal((n - 1 in x, n in x, 0 not in x, "a" not in x), (True, False, False, True))
    equal(n in [n], True)
equal(list(range(n)) == tuple(range(n)), False)
text = "abcde" * n
equal((text[::-1][:6], text[2:][:4], text[4::5] == "e" * n, len(text[:-1])), ("edcbae", "cdea", True, 5 * n - 1))
equal(bytes(text)[::-1][:3], b"edc")
x = {i: i for i in range(n)}
y = {i: -i for i in range(n // 2, 2 * n)}
z = x | y
equal((len(z), z[0], z[n // 2], z[2 * n - 1]), (2 * n, 0, -(n // 2), 1 - 2 * n))
equal((list(z)[:3], list(z)[-1]), ([0, 1, 2], 2 * n - 1))
equal((len(x), x[n // 2]), (n, n // 2))
z = set(x) | set(y)
equal((len(z), list(z)[:2], list(z)[-1]), (2 * n, [0, 1], 2 * n - 1))
equal((5 | 2, {1: 2} | {3: 4}), (7, {1: 2, 3: 4}))
equal(json.decode(json.encode(["\n\"" * n, {"a": "b" * n}])), ["\n\"" * n, {"a": "b" * n}])
equal(hash("a" * 70000) == hash("a" * 70000), True)
if not catch(lambda: 1 | []).error.endswith("unknown binary op: int | list"): fail(catch(lambda: 1 | []).error)
`)); err != nil {
		t.Error(err)
	}
}
