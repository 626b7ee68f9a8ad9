package starlark

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// BenchmarkStep is one token of a model of 28 layers that are so small that what a step costs besides its products is
// what is measured.
func BenchmarkStep(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
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
			m, err := openFamily(b, it, draftOf(b, spec))
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
		})
	}
}
