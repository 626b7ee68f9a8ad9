package quant

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"
)

// goldens is what testdata/SOURCE.md describes.
type goldens struct {
	Inputs  map[string]string
	IMatrix string
	Types   []struct {
		Type          string
		ID            uint32
		Block         int
		BytesPerBlock int `json:"bytes_per_block"`
		Cases         []struct {
			Input   string
			IMatrix bool
			Q, DQ   string
		}
	}
}

func readGoldens(t *testing.T, g *goldens, name string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(g); err != nil {
		t.Fatal(err)
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func floats(t *testing.T, b []byte) []float32 {
	t.Helper()
	y := make([]float32, len(b)/4)
	if err := f32.Decode(y, b); err != nil {
		t.Fatal(err)
	}
	return y
}

// TestGoldens compares every format with ggml: the bytes of the encoder, with and without importance, and the
// bits of the decoder.
func TestGoldens(t *testing.T) {
	var g goldens
	for _, part := range []string{"inputs", "legacy", "k", "grid"} {
		var more goldens
		readGoldens(t, &more, "testdata/"+part+".json.gz")
		g.Types = append(g.Types, more.Types...)
		if more.Inputs != nil {
			g.Inputs, g.IMatrix = more.Inputs, more.IMatrix
		}
	}
	checkGoldens(t, g)
}

// TestAllGoldens does the same with the whole reference set, where it is at hand.
func TestAllGoldens(t *testing.T) {
	const name = "../../../shared/data/quant-goldens/ggml.json.gz"
	for _, name := range []string{name, "../" + name} {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var g goldens
		readGoldens(t, &g, name)
		checkGoldens(t, g)
		return
	}
	t.Skip("the reference set is not beside the repository; TestGoldens compares with the copy in testdata")
}

func checkGoldens(t *testing.T, g goldens) {
	importance := floats(t, unhex(t, g.IMatrix))
	encoded, decoded, cases := 0, 0, 0
	for _, typ := range g.Types {
		t.Run(typ.Type, func(t *testing.T) {
			f, ok := ByName(strings.ToLower(typ.Type))
			if !ok {
				t.Fatal("no such format")
			}
			if f.ID != typ.ID || f.Block != typ.Block || f.Bytes != typ.BytesPerBlock {
				t.Errorf("number %d, %d weights in %d bytes; want %d, %d in %d",
					f.ID, f.Block, f.Bytes, typ.ID, typ.Block, typ.BytesPerBlock)
			}
			for _, c := range typ.Cases {
				x, q, dq := floats(t, unhex(t, g.Inputs[c.Input])), unhex(t, c.Q), unhex(t, c.DQ)
				var w []float32
				if c.IMatrix {
					w = importance
				}
				got := make([]byte, len(q))
				if err := f.Encode(got, x, w); err != nil {
					t.Errorf("%s, importance %v: %v", c.Input, c.IMatrix, err)
				}
				if n, first := differing(got, q, f.Bytes); n > 0 {
					t.Errorf("%s, importance %v: %d of %d blocks differ, the first is %d:\n got %x\nwant %x",
						c.Input, c.IMatrix, n, len(q)/f.Bytes, first,
						got[first*f.Bytes:(first+1)*f.Bytes], q[first*f.Bytes:(first+1)*f.Bytes])
				}
				y := make([]float32, len(dq)/4)
				if err := f.Decode(y, q); err != nil {
					t.Fatal(err)
				}
				for i, want := range floats(t, dq) {
					if math.Float32bits(y[i]) != math.Float32bits(want) {
						t.Errorf("%s, importance %v: weight %d is %v (%08x), want %v (%08x)", c.Input, c.IMatrix,
							i, y[i], math.Float32bits(y[i]), want, math.Float32bits(want))
						break
					}
				}
				encoded, decoded, cases = encoded+len(q), decoded+len(dq), cases+1
			}
		})
	}
	t.Logf("%d formats, %d cases: %d bytes encoded, %d bytes decoded", len(g.Types), cases, encoded, decoded)
	if len(g.Types) != 27 || cases != 168 {
		t.Errorf("%d formats and %d cases, want 27 and 168", len(g.Types), cases)
	}
}

// differing counts the blocks of n bytes that differ and returns the first.
func differing(got, want []byte, n int) (count, first int) {
	for i := len(want)/n - 1; i >= 0; i-- {
		if string(got[i*n:(i+1)*n]) != string(want[i*n:(i+1)*n]) {
			count, first = count+1, i
		}
	}
	return count, first
}
