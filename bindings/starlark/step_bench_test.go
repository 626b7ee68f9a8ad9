package starlark

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

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
	b.ReportAllocs()
	b.ResetTimer()
	least := time.Hour // what a step takes when nothing else runs
	takeSteps(b, it, m, func(took time.Duration) { least = min(least, took) })
	b.ReportMetric(float64(least.Microseconds()), "least-µs")
}

// takeSteps generates b.N tokens and tells what each took.
func takeSteps(b *testing.B, it *Interp, m *Model, told func(took time.Duration)) {
	cache := m.newCache(it)
	defer cache.Free()
	for i := range b.N {
		if cache.Len() >= 256 {
			cache.Truncate(0)
		}
		began := time.Now()
		x, err := m.forward(it, cache, []int32{int32(i % 90)}, false)
		if err != nil {
			b.Fatal(err)
		}
		x.Free()
		told(time.Since(began))
	}
}

var stepModel = flag.String("model", "", "the GGUF file whose step BenchmarkParts takes apart")

// BenchmarkParts takes one token of a model apart, of which file -model says:
//
//	go test ./bindings/starlark -run - -bench Parts -benchtime 200x -model model.gguf
//
// It tells in µs what each part takes at most in the best tenth of the tokens: products and attention, with what they
// do besides, such as rounding activations; the other kernels, of norms, rope, sums and the like; and as script all
// the rest: the script and what there is around every operation. Its share is that of the sum of all parts. Two looks
// at the clock for each operation are in it, some 0.02 ms.
func BenchmarkParts(b *testing.B) {
	if *stepModel == "" {
		b.Skip("no -model was given")
	}
	for _, threads := range []int{1, 2} {
		it := New(Config{Stdout: io.Discard, Threads: threads})
		src := fmt.Sprintf("m = load_model(%q)", *stepModel)
		if err := it.RunSource(context.Background(), "step.star", []byte(src)); err != nil {
			b.Fatal(err)
		}
		m := it.globals["m"].(*Model)
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) { benchmarkParts(b, it, m) })
		it.Close()
	}
}

// The parts of a step.
const (
	productPart = iota
	attentionPart
	kernelPart
	scriptPart
	stepParts
)

// partOf is which part an operation is of.
func partOf(op string) int {
	switch op {
	case "dot", "dots", "linear", "moe":
		return productPart
	case "attend", "attention":
		return attentionPart
	}
	return kernelPart
}

// computing is core's, of which only this benchmark may know.
//
//go:linkname computing github.com/fucina-go/fucina/core.computing
var computing func(op string, begins bool)

func benchmarkParts(b *testing.B, it *Interp, m *Model) {
	start := time.Now() // a look at how long ago that was costs half of one at the time
	var began time.Duration
	var now [stepParts]time.Duration
	var all [stepParts][]time.Duration
	computing = func(op string, begins bool) {
		if begins {
			began = time.Since(start)
		} else {
			now[partOf(op)] += time.Since(start) - began
		}
	}
	defer func() { computing = nil }()
	takeSteps(b, it, m, func(took time.Duration) {
		now[scriptPart] = took - now[productPart] - now[attentionPart] - now[kernelPart]
		for part, d := range now {
			all[part] = append(all[part], d)
		}
		now = [stepParts]time.Duration{}
	})
	var sum time.Duration
	for part, name := range []string{"products", "attention", "kernels", "script"} {
		slices.Sort(all[part])
		all[part] = all[part][len(all[part])/10:]
		sum += all[part][0]
		b.ReportMetric(float64(all[part][0].Microseconds()), name+"-µs")
	}
	b.ReportMetric(100*float64(all[scriptPart][0])/float64(sum), "script-%")
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
