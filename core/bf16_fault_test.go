//go:build unix

package core

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/mem"
	"github.com/fucina-go/fucina/kernels/cpu"
)

// least is below the least normal number: it would be 0 to a thread that flushes such numbers.
var least = math.Float32frombits(1 << 20)

// A file that shrinks while a product with bf16 reads it faults where numbers are rounded or put into panels, never
// inside of the kernel, in which the processor flushes what is below the least normal number: the thread that was
// interrupted there would go on flushing.
func TestFaultInBF16(t *testing.T) {
	const rows, in, out = 64, 4096, 64
	mapped := func(n int, f func(file *mem.Mapping)) {
		data := make([]byte, 0, 2*n)
		for range n {
			data = append(data, 0x80, 0x3f) // 1
		}
		name := filepath.Join(t.TempDir(), "numbers")
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := mem.MapFile(file)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if err := os.Truncate(name, int64(os.Getpagesize())); err != nil {
			t.Skipf("the system does not truncate a mapped file: %v", err)
		}
		f(m)
	}
	env := NewEnv(0, 1) // the thread that is locked does it all
	defer env.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	maker := &Maker{Env: env}
	faults := func(what string, f func()) {
		if err := mem.Guard(f); err == nil {
			t.Errorf("%s: nothing is read of a file that shrank", what)
		}
		if y := least * float32(len(what)); y == 0 {
			t.Fatalf("%s: the thread flushes small numbers afterwards", what)
		}
	}
	defer cpu.Forgo(cpu.AVX512BF16)() // which needs no such mode
	weight := env.Pack(maker.Tensor(dtype.BF16, "out=64 in=4096"), in, nil)
	mapped(rows*in, func(file *mem.Mapping) {
		x := Borrow(file.Bytes(), file, dtype.BF16, axisList("row", "in"), rows, in)
		faults("x in the file", func() { x.Dot(weight, "in") })
		faults("a row in the file", func() { x.At("row", rows-1).Dot(weight, "in") })
	})
	mapped(out*in, func(file *mem.Mapping) {
		w := Borrow(file.Bytes(), file, dtype.BF16, axisList("out", "in"), out, in)
		faults("w in the file", func() { env.Pack(w, in, nil) })
		faults("both in the file", func() { w.Dot(w.Rename("out", "row"), "in") })
	})
}
