package starlark

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fucina-go/fucina/core/gguf"
	"github.com/fucina-go/fucina/core/quant"
)

// BenchmarkStep is one token of a model of 28 layers that are so small that what a step costs besides its products is
// a good part of what is measured, and most of it where the weights are quantized.
func BenchmarkStep(b *testing.B) {
	for _, format := range []string{"f32", "q8_0"} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", format, threads), func(b *testing.B) {
				benchmarkStep(b, format, threads)
			})
		}
	}
}

func benchmarkStep(b *testing.B, format string, threads int) {
	it := New(Config{Stdout: io.Discard, Threads: threads})
	defer it.Close()
	spec := familySpecs(b)["qwen3-qknorm"]
	spec.Meta["qwen3.block_count"] = 28.0
	for name, dims := range spec.Tensors {
		if rest, ok := strings.CutPrefix(name, "blk.0."); ok {
			for i := range 28 {
				spec.Tensors[fmt.Sprintf("blk.%d.%s", i, rest)] = dims
			}
		}
	}
	d := draftOf(b, spec)
	if f, ok := quant.ByName(format); ok {
		quantizeDraft(d, f)
	}
	m, err := openFamily(b, it, d)
	if err != nil {
		b.Fatal(err)
	}
	cache := m.newCache(it)
	defer cache.Free()
	b.ReportAllocs()
	b.ResetTimer()
	least := time.Hour // what a step takes when nothing else runs
	for i := range b.N {
		began := time.Now()
		if cache.Len() >= 256 {
			cache.Truncate(0)
		}
		x, err := m.forward(it, cache, []int32{int32(i % 90)}, false)
		if err != nil {
			b.Fatal(err)
		}
		x.Free()
		least = min(least, time.Since(began))
	}
	b.ReportMetric(float64(least.Microseconds()), "least-µs")
}

// quantizeDraft gives the matrices of a draft of f32 another format.
func quantizeDraft(d *gguf.Draft, f *quant.Format) {
	for i := range d.Tensors {
		t := &d.Tensors[i]
		if len(t.Dims) < 2 || t.Dims[0]%f.Block != 0 {
			continue
		}
		x := floats(weightsOf(t.Name, t.Dims))
		t.Type = gguf.Type(f.ID)
		t.Write = func(w io.Writer) error {
			data := make([]byte, f.Size(len(x)))
			if err := f.Encode(data, x, nil); err != nil {
				return err
			}
			_, err := w.Write(data)
			return err
		}
	}
}
