package core

import (
	"fmt"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
)

// BenchmarkPagedAttention is attention of rows in a sequence of 4,096 positions, with the heads of Qwen3-0.6B and of
// TinyLlama, beside a product of as many multiplications in f32.
func BenchmarkPagedAttention(b *testing.B) {
	q8, _ := dtype.Parse("q8_0")
	const keys = 4096
	for _, shape := range []struct{ heads, kvHeads, width int }{{16, 8, 128}, {32, 4, 64}} {
		for _, rows := range []int{1, 512} {
			for _, dt := range []dtype.Type{dtype.F32, dtype.F16, q8} {
				b.Run(fmt.Sprintf("%dx%dx%d/%d/%s", shape.heads, shape.kvHeads, shape.width, rows, dt), func(b *testing.B) {
					env := NewEnv(0, 0)
					defer env.Close()
					q := env.Randn(dtype.F32, axisList("row", "head", "head_dim"), rows, shape.heads, shape.width)
					k := env.Randn(dtype.F32, axisList("row", "kv_head", "head_dim"), keys, shape.kvHeads, shape.width)
					pages := pagesOf(env, dt, keys, shape.kvHeads, shape.width, shape.width)
					fill := env.Randn(dtype.F32, axisList("row", "head", "head_dim"), keys, shape.heads, shape.width)
					AttendPaged(PagedAttention{Q: fill, K: k, V: k, Window: 1, Parts: []PagedRows{{keys, 0, pages}}}).Free()
					k = k.Slice("row", 0, rows, 1)
					b.ResetTimer()
					for range b.N {
						AttendPaged(PagedAttention{Q: q, K: k, V: k, Parts: []PagedRows{{rows, keys - rows, pages}}}).Free()
					}
					b.StopTimer()
					flop := 4 * float64(rows) * (keys - float64(rows)/2) * float64(shape.heads*shape.width) * float64(b.N)
					b.ReportMetric(flop/b.Elapsed().Seconds()/1e9, "GFLOP/s")
					bytes := float64(len(pages)*pages[0].Bytes()) * float64(b.N)
					b.ReportMetric(bytes/b.Elapsed().Seconds()/1e9, "GB/s")
				})
			}
			b.Run(fmt.Sprintf("%dx%dx%d/%d/product", shape.heads, shape.kvHeads, shape.width, rows), func(b *testing.B) {
				env := NewEnv(0, 0)
				defer env.Close()
				x := env.Randn(dtype.F32, axisList("row", "in"), rows*shape.heads/shape.kvHeads, shape.width)
				w := env.Randn(dtype.F32, axisList("out", "in"), 2*keys*shape.kvHeads, shape.width)
				b.ResetTimer()
				for range b.N {
					x.Dot(w, "in").Free()
				}
				b.StopTimer()
				flop := 4 * float64(rows) * keys * float64(shape.heads*shape.width) * float64(b.N)
				b.ReportMetric(flop/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
