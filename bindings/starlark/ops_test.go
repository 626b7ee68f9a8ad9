package starlark

import (
	"fmt"
	"strings"
	"testing"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
)

// runExample runs the example of an operation's documentation and returns the value of its last line, nil if that
// is no expression.
func runExample(it *Interp, info *core.Info) (v star.Value, err error) {
	doc, err := info.Doc()
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(doc.Example), "\n")
	for i := range lines {
		// Blocks that are continued on the next line are run as one.
		if i+1 < len(lines) && (lines[i+1] == "" || strings.ContainsAny(lines[i+1][:1], " \t)]}")) {
			lines[i+1] = lines[i] + "\n" + lines[i+1]
			continue
		}
		if v, err = it.Eval(background, fmt.Sprintf("<example of %s, line %d>", info.Name, i+1), lines[i]); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// TestOpExamples runs the example of every operation. What it shows must be a call of the operation.
func TestOpExamples(t *testing.T) {
	for _, info := range core.All() {
		t.Run(info.Name, func(t *testing.T) {
			it := newTest(Config{})
			defer it.Close()
			v, err := runExample(it, info)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := info.Doc()
			if err != nil {
				t.Fatal(err)
			}
			shown := strings.Contains(doc.Example, info.Name+"(")
			for op, name := range binaryOps {
				shown = shown || name == info.Name && strings.Contains(doc.Example, " "+op.String()+" ")
			}
			if !shown {
				t.Errorf("the example does not call %s:\n%s", info.Name, doc.Example)
			}
			if v == nil {
				return
			}
			if strings.Contains(v.String(), "ended by") {
				t.Errorf("the example gives a closed tensor: %s", v)
			}
		})
	}
}

// TestSliceAsPython compares every slice of a short tensor with Starlark's slice of the same list.
func TestSliceAsPython(t *testing.T) {
	it := newTest(Config{})
	defer it.Close()
	_, err := it.Eval(background, "<slices>", `
places = [None, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7]
count = 0
for n in (0, 1, 5):
    x, l = arange(n, "a"), list(range(n))
    for start in places:
        for stop in places:
            for step in (None, 1, 2, 3, 7, -1, -2, -3, -7):
                got, want = x.slice(a=(start, stop, step)).tolist(), l[start:stop:step]
                equal(got, want)
                z = zeros(a=n, dtype="i64")
                z.set(1, a=(start, stop, step))
                equal(z.tolist(), [1 if i in want else 0 for i in l])
                count += 1
equal(count, 3 * 16 * 16 * 9)
`)
	if err != nil {
		t.Error(err)
	}
}
