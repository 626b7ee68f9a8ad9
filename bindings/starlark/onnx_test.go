package starlark

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// onnxCase is a test of the ONNX backend suite: a graph, inputs and the outputs expected. Tensors are places in the
// file's list.
type onnxCase struct {
	Name    string
	Opset   int
	Nodes   []onnxNode
	In, Out []named[int]
	tensors []onnxTensor
	drawn   bool // docs/coverage.md says that the numbers are random
}

// named is a value and what the graph calls it.
type named[T any] struct {
	name  string
	value T
}

func (n *named[T]) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&n.name, &n.value})
}

type onnxNode struct {
	op      string
	in, out []string
	attrs   map[string]any
}

func (n *onnxNode) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber() // 1 is an integer and 1.0 a float
	return d.Decode(&[]any{&n.op, &n.in, &n.out, &n.attrs})
}

type onnxTensor struct {
	dtype string
	sizes []int
	data  []any
}

func (t *onnxTensor) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	return d.Decode(&[]any{&t.dtype, &t.sizes, &t.data})
}

// onnxCases reads the files of testdata/onnx.
func onnxCases(t *testing.T) (cases []onnxCase) {
	t.Helper()
	files, err := filepath.Glob("testdata/onnx/*.json.gz")
	if err != nil || len(files) == 0 {
		t.Fatal("no test data", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		text, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		var content struct {
			Tensors []onnxTensor
			Cases   []onnxCase
		}
		if err := json.NewDecoder(text).Decode(&content); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, c := range content.Cases {
			c.tensors = content.Tensors
			cases = append(cases, c)
		}
	}
	return cases
}

var onnxDTypes = map[string]dtype.Type{
	"float32": dtype.F32, "float64": dtype.F64, "float16": dtype.F16, "int8": dtype.I8, "uint8": dtype.U8,
	"int16": dtype.I16, "int32": dtype.I32, "int64": dtype.I64, "bool": dtype.Bool,
}

// tensor has axes d0, d1, ….
func (t *onnxTensor) tensor(env *core.Env) *core.Tensor {
	names := make([]string, len(t.sizes))
	for i := range names {
		names[i] = fmt.Sprintf("d%d", i)
	}
	axes, err := axis.Of(names...)
	if err != nil {
		panic(err)
	}
	if dt := onnxDTypes[t.dtype]; dt.IsFloat() {
		floats := make([]float64, len(t.data))
		for i := range floats {
			floats[i] = t.float(i)
		}
		return env.FromFloats(dt, floats, axes, t.sizes...)
	}
	ints := make([]int64, len(t.data))
	for i := range ints {
		ints[i] = int64(t.float(i))
	}
	return env.FromInts(onnxDTypes[t.dtype], ints, axes, t.sizes...)
}

// float is element i, which for an integer has to be below 2^53.
func (t *onnxTensor) float(i int) float64 {
	switch v := t.data[i].(type) {
	case bool:
		if v {
			return 1
		}
		return 0
	case string:
		return map[string]float64{"Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "NaN": math.NaN()}[v]
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			panic(err)
		}
		return f
	}
	panic(fmt.Sprintf("a %T among numbers", t.data[i]))
}

// differs says how x differs from what was expected, by the tolerances of ONNX's own runner.
func (t *onnxTensor) differs(x *core.Tensor) error {
	if x.DType() != onnxDTypes[t.dtype] || !slices.Equal(x.Sizes(), t.sizes) {
		return fmt.Errorf("got %s, want %s%v", x.Shape(), onnxDTypes[t.dtype], t.sizes)
	}
	for i, name := range x.Axes().Names() {
		if name != fmt.Sprintf("d%d", i) {
			return fmt.Errorf("got axes %v", x.Axes())
		}
	}
	for i, v := range x.Cast(dtype.F64).Values() {
		got, want := v.(float64), t.float(i)
		same := got == want || math.IsNaN(got) && math.IsNaN(want)
		if !same && !(math.Abs(got-want) <= 1e-7+1e-3*math.Abs(want) && x.DType().IsFloat()) {
			return fmt.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
	return nil
}

// drawnApart says how the zeros and ones of x differ from what was expected, which others drew with the same
// probabilities: in dtype, axes and sizes.
func (t *onnxTensor) drawnApart(x *core.Tensor) error {
	like := *t
	like.data = nil
	for _, v := range x.Cast(dtype.F64).Values() {
		if v != 0.0 && v != 1.0 {
			return fmt.Errorf("%v is neither 0 nor 1", v)
		}
		like.data = append(like.data, json.Number(fmt.Sprint(v)))
	}
	return like.differs(x)
}

// value is an attribute as a script sees it.
func (c *onnxCase) value(env *core.Env, v any) star.Value {
	switch v := v.(type) {
	case string:
		return star.String(v)
	case json.Number:
		if i, err := v.Int64(); err == nil && !strings.ContainsAny(v.String(), ".e") {
			return star.MakeInt64(i)
		}
		f, err := v.Float64()
		if err != nil {
			panic(err)
		}
		return star.Float(f)
	case []any:
		items := make([]star.Value, len(v))
		for i := range v {
			items[i] = c.value(env, v[i])
		}
		return star.NewList(items)
	case map[string]any:
		i, err := v["tensor"].(json.Number).Int64()
		if err != nil {
			panic(err)
		}
		return Tensor{c.tensors[i].tensor(env)}
	}
	panic(fmt.Sprintf("an attribute of type %T", v))
}

// run evaluates the graph node by node with the functions of ops.star.
func (c *onnxCase) run(it *Interp) error {
	values := map[string]star.Value{"": star.None}
	differentiates := slices.ContainsFunc(c.Nodes, func(n onnxNode) bool { return n.op == "Gradient" })
	for _, in := range c.In {
		x := c.tensors[in.value].tensor(it.env)
		if differentiates {
			x = it.env.Watch(x)
		}
		values[in.name] = Tensor{x}
	}
	for _, n := range c.Nodes {
		f, ok := it.globals[n.op]
		if !ok {
			return fmt.Errorf("ops.star has no %s", n.op)
		}
		attrs := star.NewDict(len(n.attrs) + 2)
		for _, key := range slices.Sorted(maps.Keys(n.attrs)) {
			_ = attrs.SetKey(star.String(key), c.value(it.env, n.attrs[key]))
		}
		_ = attrs.SetKey(star.String("opset"), star.MakeInt(c.Opset))
		_ = attrs.SetKey(star.String("outputs"), star.MakeInt(len(n.out)))
		if n.op == "Gradient" { // names the value to differentiate
			_ = attrs.SetKey(star.String("y"), values[n.attrs["y"].(string)])
		}
		args := star.Tuple{attrs}
		for _, name := range n.in {
			args = append(args, values[name])
		}
		v, err := it.Call(background, f, args)
		if err != nil {
			return fmt.Errorf("%s: %w", n.op, err)
		}
		outs, ok := v.(star.Indexable) // a list, or the tuple of an operation with several outputs
		if !ok {
			outs = star.Tuple{v}
		}
		for i, name := range n.out {
			if name != "" && i < outs.Len() {
				values[name] = outs.Index(i)
			}
		}
	}
	for _, out := range c.Out {
		y, ok := values[out.name].(Tensor)
		if !ok {
			return fmt.Errorf("%s: got %v", out.name, values[out.name])
		}
		differs := c.tensors[out.value].differs
		if c.drawn {
			differs = c.tensors[out.value].drawnApart
		}
		if err := differs(y.Tensor); err != nil {
			return fmt.Errorf("%s: %w", out.name, err)
		}
	}
	return nil
}

// listedCases is the cases of a suite in the table of its section of docs/coverage.md whose second column has the
// given head, as patterns, each with what stands there.
func listedCases(t *testing.T, suite, column string) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	_, section, _ := strings.Cut(string(page), "\n## "+suite+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, section, _ = strings.Cut(section, "| case | "+column)
	section, _, _ = strings.Cut(section, "\n\n")
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) == 4 && strings.Contains(cells[1], "/") {
			reasons[strings.TrimSpace(cells[1])] = strings.TrimSpace(cells[2])
		}
	}
	return reasons
}

// insist insists that the section of docs/coverage.md on the suite states what was counted.
func insist(t *testing.T, suite string, counted ...string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## "+suite+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, text := range counted {
		if !strings.Contains(section, text) {
			t.Errorf("docs/coverage.md does not say of %s: %s", suite, text)
		}
	}
}

// TestONNX runs the node tests of ONNX. What does not apply is listed in docs/coverage.md.
func TestONNX(t *testing.T) {
	src, err := os.ReadFile("testdata/onnx/ops.star")
	if err != nil {
		t.Fatal(err)
	}
	reasons := listedCases(t, "onnx-ops", "why it does not apply")
	inPart := listedCases(t, "onnx-ops", "what is compared")
	used := map[string]bool{}
	it := newTest(Config{Threads: 1})
	defer it.Close()
	if err := it.RunSource(background, "testdata/onnx/ops.star", src); err != nil {
		t.Fatal(err)
	}
	passed, all := 0, onnxCases(t)
	for _, c := range all {
		listed := false
		_, c.drawn = inPart[c.Name]
		used[c.Name] = c.drawn
		for pattern := range reasons {
			if ok, err := path.Match(pattern, c.Name); err != nil {
				t.Fatal(err)
			} else if ok {
				listed, used[pattern] = true, true
			}
		}
		err := c.run(it)
		switch {
		case err == nil && listed:
			t.Errorf("%s passes, but docs/coverage.md says that it does not apply", c.Name)
		case err == nil:
			passed++
		case !listed:
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	for _, table := range []map[string]string{reasons, inPart} {
		for pattern := range table {
			if !used[pattern] {
				t.Errorf("docs/coverage.md lists %s, which is no case", pattern)
			}
		}
	}
	insist(t, "onnx-ops", fmt.Sprintf("%d node tests", len(all)), fmt.Sprintf("%d of them pass", passed))
}
