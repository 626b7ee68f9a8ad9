package quant

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// variedRows is 120 rows of 512 numbers of six kinds, and an importance with some zeros. Only operations that are the
// same everywhere make them.
func variedRows() (x, importance []float32) {
	const rows, row = 120, 512
	r := rand.New(rand.NewPCG(20, 26))
	normal := func() float32 { // nearly: the sum of twelve uniform numbers
		s := float32(-6)
		for range 12 {
			s += r.Float32()
		}
		return s
	}
	x, importance = make([]float32, rows*row), make([]float32, row)
	for i := range x {
		v := normal()
		switch i / row % 6 {
		case 1: // heavy tails
			v *= float32(v * v)
		case 2: // sparse
			if r.IntN(8) > 0 {
				v = 0
			}
		case 3: // few values, many ties
			v = float32(r.IntN(17)-8) * 0.125
		case 4: // groups of other sizes
			v *= float32(int(1) << (i / 16 % 12))
		case 5: // of one sign
			v = float32(v*v) + 0.01
		}
		x[i] = v * 0.02
	}
	for i := range importance {
		if v := normal(); r.IntN(16) > 0 {
			importance[i] = float32(v * v)
		}
	}
	return x, importance
}

// TestVaried compares many more blocks than the reference set has with ggml, by digests of the bytes.
func TestVaried(t *testing.T) {
	data, err := os.ReadFile("testdata/varied.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]string
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	x, importance := variedRows()
	compared := 0
	for _, f := range Formats() {
		for k, w := range [][]float32{nil, importance} {
			name := f.Name + []string{"", " with importance"}[k]
			digest, ok := want[name]
			if !ok {
				continue
			}
			b := make([]byte, f.Size(len(x)))
			if err := f.Encode(b, x, w); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if got := fmt.Sprintf("%x", sha256.Sum256(b)); got != digest {
				t.Errorf("%s: digest %s, want %s", name, got, digest)
			}
			compared++
		}
	}
	if compared != len(want) || compared != 49 {
		t.Errorf("%d digests of %d, want 49", compared, len(want))
	}
}
