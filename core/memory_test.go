package core_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/gguf"
	"github.com/fucina-go/fucina/core/mem"
	"github.com/fucina-go/fucina/models/token"
)

var axisA = func() *axis.List { l, _ := axis.Parse("a"); return l }()

// sizes are the numbers of floats at which memory is looked at.
var sizes = []int{256, 4 << 10, 64 << 10, 1 << 20, 4 << 20}

// vocabulary loads a tokenizer of 150,000 entries, as a real model's would lie in memory.
func vocabulary(t *testing.T) *token.Tokenizer {
	t.Helper()
	const n = 150_000
	var meta bytes.Buffer
	le := binary.LittleEndian
	text := func(s string) {
		binary.Write(&meta, le, uint64(len(s)))
		meta.WriteString(s)
	}
	key := func(name string, kind uint32) {
		text(name)
		binary.Write(&meta, le, kind)
	}
	array := func(name string, kind uint32) {
		key(name, 9)
		binary.Write(&meta, le, kind)
		binary.Write(&meta, le, uint64(n))
	}
	key("tokenizer.ggml.model", 8)
	text("llama")
	array("tokenizer.ggml.tokens", 8)
	for i := range n {
		text(fmt.Sprintf("▁token%d", i))
	}
	array("tokenizer.ggml.scores", 6)
	binary.Write(&meta, le, make([]float32, n))
	array("tokenizer.ggml.token_type", 5)
	types := make([]int32, n)
	for i := range types {
		types[i] = 1
	}
	types[0] = 2
	binary.Write(&meta, le, types)
	key("tokenizer.ggml.unknown_token_id", 4)
	binary.Write(&meta, le, uint32(0))
	var file bytes.Buffer
	file.WriteString("GGUF")
	binary.Write(&file, le, uint32(3))
	binary.Write(&file, le, [2]uint64{0, 5})
	file.Write(meta.Bytes())
	path := filepath.Join(t.TempDir(), "vocabulary.gguf")
	if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := token.New(f)
	if err != nil {
		t.Fatal(err)
	}
	if tok.Len() != n {
		t.Fatalf("%d tokens, want %d", tok.Len(), n)
	}
	return tok
}

// newEnv is an Env that must have nothing outstanding when the test ends.
func newEnv(t *testing.T, limit int64) *core.Env {
	t.Helper()
	e := core.NewEnv(limit, 0)
	t.Cleanup(func() {
		e.Collect()
		if s := e.Memory(); s.InUse != 0 || s.Buffers != 0 {
			t.Errorf("outstanding at the end: %+v", s)
		}
		e.Close()
	})
	return e
}

func TestSameAddressNext(t *testing.T) {
	keep := vocabulary(t)
	defer runtime.KeepAlive(keep)
	for _, n := range sizes {
		e := newEnv(t, 0)
		x, y := e.Zeros(dtype.F32, axisA, n), e.Zeros(dtype.F32, axisA, n)
		first := x.Add(y)
		at := first.Address()
		first.Free()
		next := x.Mul(y)
		if next.Address() != at {
			t.Errorf("%d floats: freed %p, the next operation got %p", n, at, next.Address())
		}
		next.Free()
		x.Free()
		y.Free()
	}
}

func TestChainHoldsTwoBuffers(t *testing.T) {
	keep := vocabulary(t)
	defer runtime.KeepAlive(keep)
	for _, n := range sizes {
		e := newEnv(t, 0)
		x := e.Zeros(dtype.F32, axisA, n)
		h := x.Copy()
		x.Free()
		most := 0
		for range 16 {
			next := h.Neg()
			most = max(most, e.Memory().Buffers)
			h.Free()
			h = next
		}
		if most > 2 {
			t.Errorf("%d floats: a chain of 16 freed as it goes held %d buffers", n, most)
		}
		h.Free()
	}
}

// A program that never frees stays within the pressure bound, whatever the collector does.
func TestGarbageIsBounded(t *testing.T) {
	keep := vocabulary(t)
	defer runtime.KeepAlive(keep)
	for _, n := range sizes {
		for _, scoped := range []bool{false, true} {
			e := newEnv(t, 0)
			if scoped {
				e.Open()
			}
			x := e.Zeros(dtype.F32, axisA, n)
			turns := min(20_000, (1<<30)/(4*n))
			if testing.Short() {
				turns /= 4
			}
			for range turns {
				x.Neg()
			}
			if s := e.Memory(); s.Peak > 96<<20 {
				t.Errorf("%d floats, scoped %v: %d turns took %s at the most", n, scoped, turns, mem.Bytes(s.Peak))
			}
			x.Free()
			e.Collect()
		}
	}
}

// The limit ends in an error that says so, only when the memory is really held.
func TestMemoryLimit(t *testing.T) {
	e := newEnv(t, 32<<20)
	for range 200 { // garbage does not count
		e.Zeros(dtype.F32, axisA, 1<<20)
	}
	var held []*core.Tensor
	err := func() (err error) {
		defer core.Recover(&err)
		for range 9 {
			held = append(held, e.Zeros(dtype.F32, axisA, 1<<20))
		}
		return nil
	}()
	var misuse *core.Error
	if !errors.As(err, &misuse) || !strings.Contains(err.Error(), "limit of 32.0 MiB") || misuse.Op != "zeros" {
		t.Errorf("got %v", err)
	}
	if len(held) != 8 {
		t.Errorf("%d tensors of 4 MiB fit into 32 MiB", len(held))
	}
	held[0].Free()
	e.Zeros(dtype.F32, axisA, 1<<20).Free() // the Env goes on
	for _, x := range held {
		x.Free()
	}
}

func TestViewsOutliveTheirParent(t *testing.T) {
	e := newEnv(t, 0)
	x := e.Arange(1000, "a", dtype.F32)
	v := x.Slice("a", 10, 20, 1)
	x.Free()
	y := e.Zeros(dtype.F32, axisA, 1000) // would take x's block if it were free
	if got := v.Float32s()[0]; got != 10 {
		t.Errorf("a view of a freed tensor reads %v, want 10", got)
	}
	v.Free()
	y.Free()
}
