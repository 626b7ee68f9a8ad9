package core

import (
	"bytes"
	"errors"
	"slices"
	"sync/atomic"
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
			after := want.bytes()
			if errors.As(err, new(*Canceled)) && chunks == 1 { // in what comes before the change
				after, err, chunks = before, nil, 2
			}
			if chunks < 2 || err != nil || !bytes.Equal(got.bytes(), after) {
				t.Errorf("stopped after the first of %d chunks: %v; all or nothing is changed: %t", chunks, err,
					bytes.Equal(got.bytes(), after))
			}
		})
	}
}

// Values that overlap, and many that lie in another order, are copied before anything changes; in the midst of that
// it can be stopped, and nothing is changed. Without room for the copy they are written as they lie.
func TestSetStopsBefore(t *testing.T) {
	defer func() { timed = nil }()
	env := NewEnv(0, 1)
	defer env.Close()
	x := env.Zeros(dtype.F32, axisList("row", "col"), 1500, 1500)
	turned := (&Maker{Env: env}).Tensor(dtype.F32, "col=1500 row=1500")
	want := turned.Order("row col").Copy()
	set := func(v *Tensor) (err error) {
		defer env.Control.Reset()
		defer Recover(&err)
		x.SetSlice(v, "row", 0, v.Size("row"))
		return nil
	}
	stopAtOnce := func(_ *Ctx, f func(lo, hi int)) func(lo, hi int) {
		return func(lo, hi int) {
			f(lo, hi)
			env.Control.Stop()
		}
	}
	for name, v := range map[string]*Tensor{"another order": turned, "overlapping": x.Slice("row", 1, 1400, 1)} {
		timed = stopAtOnce
		err := set(v)
		timed = nil
		changed := slices.ContainsFunc(x.Float32s(), func(v float32) bool { return v != 0 })
		if !errors.As(err, new(*Canceled)) || changed {
			t.Errorf("%s: %v, and nothing may be changed", name, err)
		}
	}
	for _, limit := range []int64{0, 1 << 20} {
		env.SetMemoryLimit(0)
		x.Free()
		x = env.Zeros(dtype.F32, x.axes, 1500, 1500)
		env.pool.Collect() // or what nobody reaches would be room for the copy
		if env.SetMemoryLimit(limit); limit > 0 {
			env.SetMemoryLimit(env.Memory().InUse + limit)
		}
		if err := set(turned); err != nil || !bytes.Equal(x.bytes(), want.bytes()) {
			t.Errorf("with a limit of %d: %v", limit, err)
		}
	}
}

// TestSetCutsLongRows: a row of any length is shared among workers, chunk by chunk, each as short as those of others.
func TestSetCutsLongRows(t *testing.T) {
	defer func() { timed = nil }()
	m := &Maker{Env: NewEnv(0, 2)}
	defer m.Env.Close()
	n, one, two := 10*pointGrain+7, 1, 2
	x := m.Tensor(dtype.F32, "col=%d", n)
	for _, c := range []struct {
		name   string
		ranges Map[Range]
		want   int // chunks
	}{
		{"all", Map[Range]{axisList("col"), []Range{{Step: &one}}}, 11},
		{"every other", Map[Range]{axisList("col"), []Range{{Step: &two}}}, 6},
	} {
		var chunks atomic.Int32
		timed = func(_ *Ctx, f func(lo, hi int)) func(lo, hi int) {
			return func(lo, hi int) {
				chunks.Add(int32(hi - lo))
				f(lo, hi)
			}
		}
		want := x.Float32s()
		got := x.Copy()
		chunks.Store(0)
		set.Call(Set{X: got, V: Number(m.Env, 8, 0, false), Ranges: c.ranges})
		timed = nil
		if int(chunks.Load()) != c.want {
			t.Errorf("%s: %d chunks, want %d", c.name, chunks.Load(), c.want)
		}
		for i := range want {
			if c.name == "all" || i%2 == 0 {
				want[i] = 8
			}
		}
		if !slices.Equal(got.Float32s(), want) {
			t.Errorf("%s: the elements are wrong", c.name)
		}
	}
}
