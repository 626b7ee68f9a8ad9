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
	for _, shape := range [][3]int{{16, 8, 128}, {32, 4, 64}} {
		for _, rows := range []int{1, 512} {
			name := fmt.Sprintf("%dx%dx%d/%d", shape[0], shape[1], shape[2], rows)
			for _, dt := range []dtype.Type{dtype.F32, dtype.F16, q8} {
				b.Run(name+"/"+dt.String(), func(b *testing.B) { benchPaged(b, shape, rows, dt) })
			}
			b.Run(name+"/product", func(b *testing.B) {
				env := NewEnv(0, 0)
				defer env.Close()
				x := env.Randn(dtype.F32, axisList("row", "in"), rows*shape[0]/shape[1], shape[2])
				w := env.Randn(dtype.F32, axisList("out", "in"), 2*benchKeys*shape[1], shape[2])
				b.ResetTimer()
				for range b.N {
					x.Dot(w, "in").Free()
				}
				flop := 4 * float64(rows) * benchKeys * float64(shape[0]*shape[2]) * float64(b.N)
				b.ReportMetric(flop/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

const benchKeys = 4096

func benchPaged(b *testing.B, shape [3]int, rows int, dt dtype.Type) {
	heads, kvHeads, width := shape[0], shape[1], shape[2]
	env := NewEnv(0, 0)
	defer env.Close()
	normal := func(rows int, name string, heads int) *Tensor {
		return env.Randn(dtype.F32, axisList("row", name, "head_dim"), rows, heads, width)
	}
	pages := pagesOf(env, dt, benchKeys, kvHeads, width, width)
	k := normal(benchKeys, "kv_head", kvHeads)
	AttendPaged(PagedAttention{Q: normal(benchKeys, "head", heads), K: k, V: k, Window: 1,
		Parts: []PagedRows{{benchKeys, 0, pages}}}).Free()
	q := normal(rows, "head", heads)
	k = k.Slice("row", 0, rows, 1)
	b.ResetTimer()
	for range b.N {
		AttendPaged(PagedAttention{Q: q, K: k, V: k, Parts: []PagedRows{{rows, benchKeys - rows, pages}}}).Free()
	}
	flop := 4 * float64(rows) * (benchKeys - float64(rows)/2) * float64(heads*width) * float64(b.N)
	b.ReportMetric(flop/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	b.ReportMetric(float64(len(pages)*pages[0].Bytes())*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
}
