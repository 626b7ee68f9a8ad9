package starlark

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	began := time.Unix(0, 0)
	for _, c := range []struct {
		terminal bool
		total    int
		every    time.Duration
		want     string
	}{
		{true, 4, time.Second, "\r\033[Ktrain  0/4 [........................] 0 turns/s" +
			"\r\033[Ktrain  1/4 [######..................] 0.5 turns/s, 6s left"},
		{false, 4, 4 * time.Second, "train  2/4 [############............] 0.167 turns/s, 12s left\n"},
		{false, -1, 6 * time.Second, "train  1  0.0833 turns/s\n"},
		{true, 4, time.Millisecond, ""},
	} {
		var out bytes.Buffer
		m := &meter{out: &out, terminal: c.terminal, label: "train", total: c.total, began: began, shown: began}
		now := began
		for range 5 {
			now = now.Add(c.every)
			m.tick(true, now)
		}
		m.end(now)
		if !strings.HasPrefix(out.String(), c.want) || c.want == "" && out.Len() > 0 {
			t.Errorf("terminal %v, every %v: drew %q, want %q", c.terminal, c.every, out.String(), c.want)
		}
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	it := New(Config{Stdout: io.Discard, Stderr: &out, Terminal: true})
	defer it.Close()
	src := `
total = 0
for i in progress(range(5), "sum"):
    total += i
for x in progress(steps(3)):
    total += 1
if total != 13 or len(progress([1, 2])) != 2:
    fail(total)
`
	if err := it.RunSource(context.Background(), "test.star", []byte(src)); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Errorf("a loop of a moment drew %q", out.String())
	}
}
