package starlark

import (
	"context"
	"fmt"
	"io"
	"testing"
)

// BenchmarkScript times one statement of a script, the loop around it included.
func BenchmarkScript(b *testing.B) {
	for _, c := range []struct{ name, setup, body string }{
		{"loop", "", "pass"},
		{"add scalars", "x, y = tensor(1.0), tensor(2.0)", "x + y"},
		{"add number", "x = tensor(1.0)", "x + 2"},
		{"sum", `x = ones(a=16)`, `x.sum("a")`},
		{"rms_norm 1024", `x = ones(row=1, embed=1024); w = ones(embed=1024)`, `rms_norm(x, w, 1e-5)`},
		{"add 1024", `x = ones(row=1, embed=1024)`, `x + x`},
	} {
		b.Run(c.name, func(b *testing.B) {
			it := New(Config{Stdout: io.Discard})
			defer it.Close()
			src := fmt.Sprintf("def main(n):\n    %s\n    for i in range(n):\n        %s\nscope(main, %d)\n",
				c.setup, c.body, b.N)
			b.ResetTimer()
			if err := it.RunSource(context.Background(), "bench", []byte(src)); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkLayerCalls times 28 × 15 calls on pooled sizes inside one scope: what a model of 28 layers
// adds to a token beyond its kernels.
func BenchmarkLayerCalls(b *testing.B) {
	it := New(Config{Stdout: io.Discard, Threads: 1})
	defer it.Close()
	src := fmt.Sprintf(`
x, w = ones(row=1, embed=128), ones(embed=128)
def layers():
    h = x
    for i in range(28):
        for k in range(5):
            h = h + x
            h = h * w
            h = h + w
for i in range(%d):
    scope(layers)
`, b.N)
	b.ResetTimer()
	if err := it.RunSource(context.Background(), "bench", []byte(src)); err != nil {
		b.Fatal(err)
	}
}
