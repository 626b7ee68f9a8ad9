package recipe

import (
	"bytes"
	"io/fs"
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

// TestCollector adds rows of two products and reads what is written. Columns are in the order of the weight's axes,
// whatever that of the input's.
func TestCollector(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	w := env.FromFloats(dtype.F32, make([]float64, 12), axes(t, "out head dim"), 2, 2, 3)
	x := env.FromFloats(dtype.F32, []float64{1, 4, 2, 5, 3, 6, 0, 0, 0, 0, 0, 8}, axes(t, "row dim head"), 2, 3, 2)
	c := &Collector{}
	for range 2 {
		if err := c.Add("w", x, w, axes(t, "dim head")); err != nil {
			t.Fatal(err)
		}
	}
	want := Importance{"w": {0.5, 2, 4.5, 8, 12.5, 50}} // (1, 2, 3), (4, 5, 6); 8 in another row; 2 · squares / 4 rows
	if diff := cmp.Diff(want, c.Importance()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var b bytes.Buffer
	if err := c.Draft("text", 2, 2).Write(&b); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "im.gguf")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadImportance(name, func(name string) (fs.File, error) { return os.Open(name) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the file (-want +got):\n%s", diff)
	}
}

func TestCollectorErrors(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	row := func(values ...float64) *core.Tensor {
		return env.FromFloats(dtype.F32, values, axes(t, "in"), len(values))
	}
	c := &Collector{}
	if err := c.Add("w", row(1, 2), row(0, 0), axes(t, "in")); err != nil {
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
		if err := c.Add("w", tt.x, tt.x, axes(t, "in")); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}
