package core

import (
	"bytes"
	"errors"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
)

// TestChangesAreWhole stops operations that change their operand, before them and in their midst, at the end of their
// first chunk: all of the change is there or nothing of it.
func TestChangesAreWhole(t *testing.T) {
	defer func() { timed = nil }()
	m := &Maker{Env: NewEnv(0, 1)}
	defer m.Env.Close()
	x := m.Tensor(dtype.F32, "row=300 col=1000")
	y, v := m.Tensor(dtype.F32, "row=300 col=1000"), m.Tensor(dtype.F32, "row=300 col=999")
	shift := func(x *Tensor) *Tensor { return x.Slice("col", 0, 999, 1) }
	for _, c := range []struct {
		name   string
		change func(x *Tensor)
	}{
		{"all of it", func(x *Tensor) { x.SetSlice(y, "row", 0, 300) }},
		{"a part", func(x *Tensor) { x.SetSlice(v, "col", 1, 1000) }},
		{"a part, by another", func(x *Tensor) { x.SetSlice(shift(x), "col", 1, 1000) }},
		{"a sum", func(x *Tensor) { x.Accumulate(y) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			stopped := func(x *Tensor) (err error) {
				defer m.Env.Control.Reset()
				defer Recover(&err)
				c.change(x)
				return nil
			}
			want, got, before := x.Copy(), x.Copy(), x.bytes()
			if c.change(want); bytes.Equal(want.bytes(), before) {
				t.Fatal("nothing was changed")
			}
			m.Env.Control.Stop()
			if err := stopped(got); !errors.As(err, new(*Canceled)) || !bytes.Equal(got.bytes(), before) {
				t.Errorf("stopped before: %v; all is as it was: %t", err, bytes.Equal(got.bytes(), before))
			}
			chunks := 0
			timed = func(_ *Ctx, f func(lo, hi int)) func(lo, hi int) {
				return func(lo, hi int) {
					f(lo, hi)
					chunks++
					m.Env.Control.Stop()
				}
			}
			err := stopped(got)
			timed = nil
			if chunks < 2 || err != nil || !bytes.Equal(got.bytes(), want.bytes()) {
				t.Errorf("stopped after the first of %d chunks: %v; all is changed: %t", chunks, err,
					bytes.Equal(got.bytes(), want.bytes()))
			}
		})
	}
}
