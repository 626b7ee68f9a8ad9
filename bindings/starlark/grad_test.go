package starlark

import (
	"context"
	"os"
	"testing"
)

// TestVariablesOfModules trains what a loaded module defines: its globals are frozen, its variables are not.
func TestVariablesOfModules(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"model.star": `
w = variable(ones(a=2))
params = {"w": w, "hidden": [variable(ones(b=1))]}
constant = zeros(a=2)
twice = w * 2
def loss(): return (params["w"] * params["w"]).sum() + params["hidden"][0].sum()
`})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	it := newTest(Config{Open: root.FS().Open})
	defer it.Close()
	err = it.RunSource(context.Background(), "<test>", []byte(`
load("model.star", "w", "params", "constant", "twice", "loss")
backward(loss())
equal(w.grad.tolist(), [2.0, 2.0])
no_grad(lambda: [p.set(p - 0.5 * p.grad) for p in [w] + params["hidden"]])
equal(params["w"].tolist(), [0.0, 0.0])
equal(params["hidden"][0].tolist(), [0.5])
w.zero_grad()
equal(w.grad, None)
equal(twice.requires_grad, True)
equal(constant.requires_grad, False)
`))
	if err != nil {
		t.Error(err)
	}
	if err := it.RunSource(context.Background(), "<test>", []byte(`constant.set(1)`)); err == nil {
		t.Error("a constant of a frozen module was changed")
	}
}
