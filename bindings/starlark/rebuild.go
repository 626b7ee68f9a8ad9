package starlark

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/quant"
	"github.com/fucina-go/fucina/core/safetensors"
)

// plainOf is a value of a grad.State.
func plainOf(node any, depth int) (any, error) {
	switch node := node.(type) {
	case bool, string:
		return node, nil
	case json.Number:
		if strings.ContainsAny(string(node), ".eE") {
			return node.Float64()
		}
		return node.Int64()
	case map[string]any:
		if text, ok := node["float"].(string); ok {
			return strconv.ParseFloat(text, 64)
		}
	case []any:
		items := make([]any, len(node))
		for i := range node {
			var err error
			if depth > maxObjectDepth {
				return nil, errors.New("is nested too deep")
			}
			if items[i], err = plainOf(node[i], depth+1); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
	return nil, fmt.Errorf("%v is damaged", node)
}

// entire is an error that says already which operation failed on which file.
type entire struct{ error }

func (e entire) Unwrap() error { return e.error }

// failed is an error of what is saved under a path.
func (l *loader) failed(path string, err error) error {
	if said := (entire{}); errors.As(err, &said) {
		return err
	}
	return fmt.Errorf("%s: %s: %s: %w", l.op, l.f.path, path, err)
}

// fresh is a new tensor with the values of one of the file; the same for the same name. The error is entire.
func (l *loader) fresh(name string) (*core.Tensor, error) {
	if x := l.read[name]; x != nil {
		return x, nil
	}
	from, ok := l.f.file.Tensor(name)
	if !ok {
		return nil, entire{fmt.Errorf("%s: %s: it says that there is a tensor %q, but there is none", l.op, l.f.path,
			name)}
	}
	x, err := l.f.read(l.op, from, nil, dtype.Invalid)
	if err != nil {
		return nil, entire{err}
	}
	l.read[name] = x
	return x, nil
}

// readBlocks is the quantized tensor whose blocks x is.
func (f *tensorFile) readBlocks(op string, x safetensors.Tensor, b savedBlocks) (*core.Tensor, error) {
	damaged := func(err error) error {
		return fmt.Errorf("%s: %s: %s, of %s: %w", op, f.path, x.Name, b.DType, err)
	}
	dt, ok := dtype.Parse(b.DType)
	format, quantized := quant.Of(dt)
	if !ok || !quantized {
		return nil, damaged(errors.New("there is no such quantized dtype"))
	}
	names, err := axis.Parse(b.Axes)
	if err != nil {
		return nil, damaged(err)
	}
	if of, _ := x.Type.DType(); of != dtype.U8 || len(x.Shape) != 1 || names.Len() != len(b.Sizes) || names.Len() == 0 {
		return nil, damaged(fmt.Errorf("%s of %v is not in %s of %v", names, b.Sizes, x.Type, x.Shape))
	}
	n, most := 1, x.Shape[0]/format.Bytes*format.Block
	for _, size := range b.Sizes {
		if size < 0 || size > 0 && n > most/size {
			return nil, damaged(fmt.Errorf("the sizes %v are more than its %d bytes hold", b.Sizes, x.Shape[0]))
		}
		n *= size
	}
	if n%format.Block != 0 || format.Size(n) != x.Shape[0] {
		return nil, damaged(fmt.Errorf("the sizes %v do not take its %d bytes", b.Sizes, x.Shape[0]))
	}
	r, err := x.Elements()
	if err != nil {
		return nil, damaged(err)
	}
	t, err := f.it.env.ReadTensor(r, dt, names, b.Sizes...)
	if err != nil {
		return nil, damaged(err)
	}
	return t, nil
}

// build is a new value of what is saved.
func (l *loader) build(node any, depth int) (star.Value, error) {
	if depth > 2*maxObjectDepth {
		return nil, errors.New("is nested too deep")
	}
	switch node := node.(type) {
	case nil:
		return star.None, nil
	case bool:
		return star.Bool(node), nil
	case string:
		return star.String(node), nil
	case json.Number:
		return numberOf(node)
	case []any:
		items, err := l.buildAll(node, depth)
		return star.NewList(items), err
	case map[string]any:
		return l.buildTagged(node, depth)
	}
	return nil, fmt.Errorf("%v is damaged", node)
}

func numberOf(n json.Number) (star.Value, error) {
	if strings.ContainsAny(string(n), ".eE") {
		f, err := n.Float64()
		return star.Float(f), err
	}
	const most = 10000 // digits
	i, ok := new(big.Int).SetString(string(n[:min(len(n), most)]), 10)
	if !ok || len(n) > most {
		return nil, fmt.Errorf("the number %.20s… is damaged", n)
	}
	return star.MakeBigInt(i), nil
}

func (l *loader) buildAll(nodes []any, depth int) ([]star.Value, error) {
	items := make([]star.Value, len(nodes))
	for i, node := range nodes {
		var err error
		if items[i], err = l.build(node, depth+1); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func (l *loader) buildTagged(node map[string]any, depth int) (star.Value, error) {
	if values, ok := node["state"].(map[string]any); ok {
		tensors, _ := node["tensors"].(map[string]any)
		return l.buildState(values, tensors, depth)
	}
	if len(node) != 1 {
		return nil, fmt.Errorf("an object of %d keys is damaged", len(node))
	}
	for key, inner := range node {
		text, isText := inner.(string)
		list, isList := inner.([]any)
		fields, isFields := inner.(map[string]any)
		switch {
		case key == "tensor" && isText:
			x, err := l.fresh(text)
			return Tensor{x}, err
		case key == "code" && isText:
			return star.None, nil
		case key == "float" && isText:
			f, err := strconv.ParseFloat(text, 64)
			return star.Float(f), err
		case key == "bytes" && isText:
			b, err := base64.StdEncoding.DecodeString(text)
			return star.Bytes(b), err
		case key == "tuple" && isList:
			items, err := l.buildAll(list, depth)
			return star.Tuple(items), err
		case key == "dict" && isList:
			return l.buildDict(list, depth)
		case key == "struct" && isFields:
			values, err := l.buildFields(fields, depth)
			return starlarkstruct.FromStringDict(starlarkstruct.Default, values), err
		}
	}
	return nil, errors.New("an object is damaged")
}

func (l *loader) buildFields(fields map[string]any, depth int) (star.StringDict, error) {
	values := star.StringDict{}
	for _, name := range sortedKeys(fields) {
		var err error
		if values[name], err = l.build(fields[name], depth+1); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (l *loader) buildDict(items []any, depth int) (star.Value, error) {
	d := star.NewDict(len(items))
	for _, item := range items {
		pair, _ := item.([]any)
		if len(pair) != 2 {
			return nil, errors.New("a dict is damaged")
		}
		both, err := l.buildAll(pair, depth)
		if err != nil {
			return nil, err
		}
		if err := d.SetKey(both[0], both[1]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// buildState is the state of an object that was not given: a struct of its values and its tensors.
func (l *loader) buildState(values, tensors map[string]any, depth int) (star.Value, error) {
	plain, err := l.buildFields(values, depth)
	if err != nil {
		return nil, err
	}
	all := star.StringDict{}
	for _, name := range sortedKeys(tensors) {
		inFile, _ := tensors[name].(string)
		x, err := l.fresh(inFile)
		if err != nil {
			return nil, err
		}
		all[name] = Tensor{x}
	}
	parts := star.StringDict{}
	for name, fields := range map[string]star.StringDict{"values": plain, "tensors": all} {
		d := star.NewDict(len(fields))
		for _, key := range fields.Keys() {
			if err := d.SetKey(star.String(key), fields[key]); err != nil {
				return nil, err
			}
		}
		parts[name] = d
	}
	return starlarkstruct.FromStringDict(starlarkstruct.Default, parts), nil
}
