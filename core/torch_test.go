package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// A torchCase is a call as PyTorch answered it. Numbers are JSON's, or the words nan, inf and -inf.
type torchCase struct {
	Op      string
	Attrs   map[string]any
	In, Out []*torchTensor
	Tol     float64 // relative to max(1, |want|)
}

type torchTensor struct {
	DType, Shape string
	Data         []any
}

func (x *torchTensor) tensor(e *Env) *Tensor {
	if x == nil {
		return nil
	}
	dt, _ := dtype.Parse(x.DType)
	axes, sizes, _ := parseShape(x.Shape, nil)
	t := e.Tensor(dt, axes, sizes...)
	for i, v := range x.Data {
		f := jsonNumber(v)
		put(unsafe.Add(t.data, i*dt.Size()), dt, f, int64(f))
	}
	return t
}

func jsonNumber(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case string:
		switch v {
		case "inf":
			return math.Inf(1)
		case "-inf":
			return math.Inf(-1)
		}
		return math.NaN()
	}
	panic(fmt.Sprintf("%T is no number", v))
}

// op is the operation with the case's arguments.
func (c *torchCase) op(e *Env, info *Info) Op {
	op := info.New()
	var args []*Tensor
	for _, x := range c.In {
		args = append(args, x.tensor(e))
	}
	for len(args) < len(info.tensors) { // left out
		args = append(args, nil)
	}
	info.setOperands(op, args)
	for name, v := range c.Attrs {
		for i := range info.Fields {
			if f := &info.Fields[i]; f.Name == name {
				setField(f, op, v)
			}
		}
	}
	return op
}

func setField(f *Field, op Op, v any) {
	switch p := f.At(op); f.Kind {
	case KindInt:
		*(*int)(p) = int(v.(float64))
	case KindFloat:
		*(*float64)(p) = jsonNumber(v)
	case KindBool:
		*(*bool)(p) = v.(float64) != 0
	case KindAxes:
		*(**axis.List)(p) = axisList(strings.Fields(v.(string))...)
	default: // an axis or a word
		*(*string)(p) = v.(string)
	}
}

// TestTorch compares operations with PyTorch: edge cases of pointwise ones, reductions, scans and sorts.
func TestTorch(t *testing.T) {
	data, err := io.ReadAll(unzipped(t, "testdata/torch.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	e := NewEnv(0, 1)
	defer e.Close()
	seen := map[string]int{}
	for n, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		var c torchCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatalf("line %d: %v", n+1, err)
		}
		seen[c.Op]++
		if err := c.check(e); err != nil {
			t.Errorf("line %d: %s %v: %v", n+1, c.Op, c.Attrs, err)
		}
	}
	t.Logf("%d operations: %v", len(seen), seen)
	if len(seen) < 50 {
		t.Errorf("got cases of %d operations, want at least 50", len(seen))
	}
}

func (c *torchCase) check(e *Env) (err error) {
	defer Recover(&err)
	info := Lookup(c.Op)
	outs := info.Run(e, c.op(e, info), nil)
	for i, want := range c.Out {
		w := want.tensor(e)
		got := outs[i]
		if got.axes != w.axes && got.axes.HasAll(w.axes) && w.axes.HasAll(got.axes) {
			got = got.Order(w.axes.String())
		}
		if err := near(got, w, c.Tol); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}
