package starlark

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"os"
	"testing"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
)

// nanoTensor is a tensor of the reference files.
type nanoTensor struct {
	Shape []int  `json:"shape"`
	Data  string `json:"data"` // f32 in base64
}

func (x nanoTensor) floats(t *testing.T) []float32 {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(x.Data)
	if err != nil {
		t.Fatal(err)
	}
	return floats(data)
}

// tensor is x with the axes a, b and so on, in env.
func (x nanoTensor) tensor(t *testing.T, env *core.Env, dt dtype.Type, names string) *core.Tensor {
	t.Helper()
	var values []float64
	for _, v := range x.floats(t) {
		values = append(values, float64(v))
	}
	if dt.IsInt() {
		var ids []int64
		for _, v := range values {
			ids = append(ids, int64(v))
		}
		return env.FromInts(dt, ids, mustAxes(names), x.Shape...)
	}
	return env.FromFloats(dt, values, mustAxes(names), x.Shape...)
}

// A trained minGPT that sorts letters gives minGPT's numbers at every place of a pass, where its files are at hand.
func TestNanoGPT(t *testing.T) {
	var model, want map[string]nanoTensor
	for _, dir := range []string{"../../../shared/data", "../../../../shared/data"} {
		if _, err := os.Stat(dir + "/gpt-nano-sort"); err == nil {
			model = readNano(t, dir+"/gpt-nano-sort/gpt-nano-sort-model.json")
			want = readNano(t, dir+"/gpt-nano-sort/gpt-nano-sort-t0-partials.json")
		}
	}
	if model == nil {
		t.Skip("the reference files are not beside the repository")
	}
	it := newTest(Config{})
	defer it.Close()
	w := star.NewDict(0)
	for name, x := range model {
		if len(x.Shape) <= 2 {
			names := []string{"", "a", "a b"}[len(x.Shape)]
			_ = w.SetKey(star.String(name), Tensor{x.tensor(t, it.env, dtype.F32, names)})
		}
	}
	it.Globals()["w"] = w
	it.Globals()["ids"] = Tensor{want["idx"].tensor(t, it.env, dtype.I64, "batch seq")}
	src, err := os.ReadFile("testdata/training/nano.star")
	if err != nil {
		t.Fatal(err)
	}
	evaluate(t, it, string(src))
	v, err := it.Eval(background, "<test>", "results")
	if err != nil {
		t.Fatal(err)
	}
	want["at_once"] = want["y"]
	delete(want, "idx")
	seen := 0
	for _, item := range v.(*star.Dict).Items() {
		name := string(item[0].(star.String))
		ref := want[name].floats(t)
		got := item[1].(Tensor).Float32s()
		if len(got) != len(ref) || len(ref) == 0 {
			t.Fatalf("%s has %d numbers, the reference %d", name, len(got), len(ref))
		}
		worst := 0.0
		for i, x := range ref {
			if got[i] == x { // infinities
				continue
			}
			if d := math.Abs(float64(got[i]-x)) / max(1, math.Abs(float64(x))); !(d <= worst) {
				worst = d
			}
		}
		if seen++; !(worst <= 1e-5) {
			t.Errorf("%s differs by %.3g, want at most 1e-5 of max(1, |x|)", name, worst)
		}
		t.Logf("%s: %.2g", name, worst)
	}
	if seen != len(want) {
		t.Errorf("%d results were compared, the reference has %d", seen, len(want))
	}
}

// readNano is the tensors of a reference file.
func readNano(t *testing.T, path string) map[string]nanoTensor {
	t.Helper()
	var all map[string]json.RawMessage
	readJSON(t, path, &all)
	tensors := map[string]nanoTensor{}
	for name, text := range all {
		var x nanoTensor
		if err := json.Unmarshal(text, &x); err != nil {
			t.Fatal(err)
		}
		if x.Data != "" {
			tensors[name] = x
		}
	}
	return tensors
}
