//go:build !purego

// What go runs here is built with assembly, so that the tests without it would do the same.

package fucina

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestContributingSample drops the operation that CONTRIBUTING.md shows into core, as the one new file of the
// tree, and wants what the text promises: scripts can call it, help explains it, the generic tests pass.
func TestContributingSample(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command once more")
	}
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sample := filepath.Join(dir, "cube.go")
	writeFile(t, sample, []byte(block(t, string(text), "```go\n")))
	file := filepath.Join(root, "core", "cube.go")
	if _, err := os.Stat(file); err == nil {
		t.Fatalf("%s is there: the sample must be an operation that is not", file)
	}
	overlay, err := json.Marshal(map[string]any{
		"Replace": map[string]string{file: sample},
	})
	if err != nil {
		t.Fatal(err)
	}
	withSample := filepath.Join(dir, "overlay.json")
	writeFile(t, withSample, overlay)

	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"run", "-overlay", withSample, "./cmd/fucina-repl", "-c", `
x = tensor([[1.0, -3.0]], "a b")
print(x.cube().tolist(), cube(tensor([4], "a")).tolist())
print(catch(lambda: x.cube(2)).error)
help("cube")`},
			[]string{"[[1.0, -27.0]] [64]\n", "cube: got one argument too many",
				"x.cube()\n\ncube is x · x · x", `tensor([-1.0, 0.0, 2.0], "a").cube()`}},
		{[]string{"test", "-overlay", withSample, "-v", "./core",
			"-run", "^(TestOps|TestOpDocs|TestOpNames)$/./^cube$"},
			[]string{"--- PASS: TestOpDocs", "/cube", "\nPASS\n"}},
		{[]string{"test", "-overlay", withSample, "-v", "-vet=off", "./grad", "-run", "^TestSamples$/^cube$"},
			[]string{"--- PASS: TestSamples/cube"}},
	} {
		out, err := exec.Command("go", test.args...).CombinedOutput()
		if err != nil {
			t.Errorf("go %s: %v\n%s", strings.Join(test.args, " "), err, out)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("go %s: want %q, got\n%s", strings.Join(test.args, " "), want, out)
			}
		}
	}
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
