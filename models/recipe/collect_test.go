package recipe

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

func axes(t *testing.T, text string) *axis.List {
	t.Helper()
	l, err := axis.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestCollector adds rows of products and reads what is written, in both formats. Columns are in the order of the
// weight's axes, whatever that of the input's; matrices of a batch and experts have their own.
func TestCollector(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	tensor := func(text string, values []float64, sizes ...int) *core.Tensor {
		return env.FromFloats(dtype.F32, values, axes(t, text), sizes...)
	}
	c := &Collector{}
	add := func(name string, p core.Product) {
		t.Helper()
		if err := c.Add(name, p); err != nil {
			t.Fatal(err)
		}
	}
	w := tensor("out head dim", make([]float64, 12), 2, 2, 3)
	x := tensor("row dim head", []float64{1, 4, 2, 5, 3, 6, 0, 0, 0, 0, 0, 8}, 2, 3, 2)
	for range 2 {
		add("w", core.Product{X: x, W: w, Axes: axes(t, "dim head")})
	}
	batch := tensor("head out dim", make([]float64, 12), 2, 2, 3)
	add("batch", core.Product{X: x, W: batch, Axes: axes(t, "dim")})
	experts := tensor("expert out in", make([]float64, 12), 3, 2, 2)
	for place, values := range [][]float64{{1, 2, 3, 4}, {}, {5, 6}} {
		rows := tensor("row in", values, len(values)/2, 2)
		add("experts", core.Product{X: rows, W: experts, Axes: axes(t, "in"), Expert: "expert", Place: place})
	}
	want := map[string][]float32{
		"w":     {0.5, 2, 4.5, 8, 12.5, 50}, // (1, 2, 3), (4, 5, 6); 8 in another row; 2 · squares / 4 rows
		"batch": {0.5, 2, 4.5, 8, 12.5, 50}, // squares / 2 rows of each matrix
		// (1 + 9) / 2, (4 + 16) / 2; nothing; 25, 36
		"experts": {5, 10, 1, 1, 25, 36},
	}
	if diff := cmp.Diff(want, c.Means()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var now, old bytes.Buffer
	if err := errors.Join(c.Draft("text", 2, 2).Write(&now), c.WriteOld(&old, "text", 2, 2)); err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{now.Bytes(), old.Bytes()} {
		name := filepath.Join(t.TempDir(), "importance")
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadImportance(name, openFile)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&Importance{Weights: want, File: name, Dataset: "text", Chunks: 2}, got); diff != "" {
			t.Errorf("the file (-want +got):\n%s", diff)
		}
	}
	if end := "\x02\x00\x00\x00\x04\x00\x00\x00text"; !strings.HasSuffix(old.String(), end) {
		t.Errorf("the old file ends with %q, want %q", old.String()[old.Len()-len(end):], end)
	}
}

func TestCollectorErrors(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	row := func(values ...float64) *core.Tensor {
		return env.FromFloats(dtype.F32, values, axes(t, "in"), len(values))
	}
	c := &Collector{}
	add := func(x, w *core.Tensor) error { return c.Add("w", core.Product{X: x, W: w, Axes: axes(t, "in")}) }
	if err := add(row(1, 2), row(0, 0)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		x    *core.Tensor
		want string
	}{
		{row(1, 2, 3), "w has 3 columns, but had 2 before"},
		{row(0, 1e30), "w: the squares of column 1 add up to"},
		{row(math.NaN(), 0), "w: the squares of column 0 add up to NaN"},
	} {
		if err := add(tt.x, tt.x); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}
