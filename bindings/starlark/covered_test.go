package starlark

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core"
)

// TestCovered insists that every operation stands in numbers that others computed, or here with what does.
func TestCovered(t *testing.T) {
	var all []byte
	for _, name := range []string{
		"../../grad/torch_test.go", "../../grad/testdata/nets.json", "../../grad/testdata/windows.json",
		"../../grad/testdata/choices.json", "testdata/onnx/ops.star", "../../core/testdata/elementary.txt",
		"../../core/testdata/torch.jsonl.gz",
	} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			z, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if data, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, data...)
	}
	for _, info := range core.All() {
		named := regexp.MustCompile(`\b` + info.Name + `(\(|"|\\"| f(32|64) )`)
		if found := named.Match(all); found == (elsewhere[info.Name] != "") {
			t.Errorf("%s: in a suite: %v; elsewhere: %q", info.Name, found, elsewhere[info.Name])
		}
	}
}

// elsewhere is where the operations that no suite has are compared with what is known of them.
var elsewhere = map[string]string{
	"acos":                 "core/inverse_test.go: Go's",
	"asin":                 "core/inverse_test.go: Go's",
	"atan":                 "core/inverse_test.go: Go's",
	"cosh":                 "core/inverse_test.go: Go's",
	"log10":                "core/inverse_test.go: Go's, and powers",
	"log2":                 "core/inverse_test.go: Go's, and powers",
	"quantile":             "testdata/quantile.star: NumPy's",
	"sinh":                 "core/inverse_test.go: Go's",
	"dots":                 "core/dot_test.go: the product of each weight",
	"dropout":              "core/random_test.go: mean and variance",
	"eye":                  "TestEye",
	"linear_cross_entropy": "grad: its Ref, of dot and cross_entropy, which the suites have",
	"quantize":             "core/quant: ggml's bytes",
	"dequantize":           "core/quant: ggml's numbers",
	"stop_gradient":        "grad: no gradient flows, and the value is that of x",
	"le":                   "core/pointwise_test.go: a naive loop",
	"masked_select":        "core/select_test.go: a naive loop",
	"nonzero":              "testdata/views.star: NumPy, by views.py",
	"normal":               "core/random_test.go: mean and variance",
	"outer":                "testdata/views.star: NumPy, by views.py",
	"rand":                 "core/random_test.go: mean and variance",
	"randint":              "core/random_test.go: mean and variance",
	"randn":                "core/random_test.go: mean and variance",
	"randperm":             "core/random_test.go: a permutation of every place",
}

// TestEye is the identity, by its definition.
func TestEye(t *testing.T) {
	it := newTest(Config{})
	defer it.Close()
	v, err := it.Eval(background, "<test>", "eye(row=2, col=3).tolist()")
	if err != nil || v.String() != "[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]" {
		t.Errorf("got %v, %v", v, err)
	}
}
