package starlark

import (
	"fmt"
	"unsafe"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
)

// setDict fills a field with one value per axis from a dict.
func (c *call) setDict(f *core.Field, v star.Value) error {
	keys, values, err := c.items(f, v)
	if err != nil {
		return err
	}
	return c.setMap(f, keys, values)
}

// items is what a dict says of each axis.
func (c *call) items(f *core.Field, v star.Value) (*axis.List, []star.Value, error) {
	d, ok := v.(star.IterableMapping)
	if !ok {
		return nil, nil, c.fail(fmt.Sprintf("%s: got %s, want %s", f.Name, v.Type(), kindText[f.Kind]))
	}
	items := d.Items()
	names, values := make([]string, len(items)), make([]star.Value, len(items))
	for i, item := range items {
		if names[i], ok = star.AsString(item[0]); !ok {
			return nil, nil, c.fail(fmt.Sprintf("%s: got the key %s, want axis names", f.Name, item[0]))
		}
		values[i] = item[1]
	}
	keys, err := axis.Of(names...)
	if err != nil {
		return nil, nil, c.fail(f.Name + ": " + err.Error())
	}
	return keys, values, nil
}

// setMap fills a field with one value per axis.
func (c *call) setMap(f *core.Field, keys *axis.List, values []star.Value) error {
	p := f.At(c.op)
	switch f.Kind {
	case core.KindSizes:
		return setEach(c, p, keys, values, size)
	case core.KindRanges:
		return setEach(c, p, keys, values, sliceRange)
	case core.KindPairs:
		return setEach(c, p, keys, values, bothSides)
	case core.KindRename:
		return setEach(c, p, keys, values, func(v star.Value) (string, error) {
			s, ok := star.AsString(v)
			if !ok || !axis.Valid(s) {
				return "", fmt.Errorf("got %s, want a new axis name", brief(v))
			}
			return s, nil
		})
	}
	return setEach(c, p, keys, values, axisNames)
}

// setPerAxis fills a field with one number for all axes, numbers by axis, or a word.
func (c *call) setPerAxis(f *core.Field, v star.Value) error {
	p := (*core.PerAxis)(f.At(c.op))
	if _, ok := star.AsString(v); ok && len(f.Enum) > 0 {
		return c.setEnum(f, unsafe.Pointer(&p.Word), v)
	}
	if _, ok := v.(star.Int); ok {
		n, err := size(v)
		if err != nil {
			return c.fail(f.Name + ": " + err.Error())
		}
		*p = core.Every(n)
		return nil
	}
	keys, values, err := c.items(f, v)
	if err != nil {
		return err
	}
	if f.Pairs {
		return setEach(c, unsafe.Pointer(&p.Each), keys, values, bothSides)
	}
	return setEach(c, unsafe.Pointer(&p.Each), keys, values, func(v star.Value) (both [2]int, err error) {
		both[0], err = size(v)
		both[1] = both[0]
		return both, err
	})
}

// bothSides is (before, after), or one number for both.
func bothSides(v star.Value) (both [2]int, err error) {
	seq, ok := v.(star.Sequence)
	if !ok {
		both[0], err = size(v)
		both[1] = both[0]
		return both, err
	}
	if seq.Len() != 2 {
		return both, fmt.Errorf("got %s, want a number or (before, after)", brief(v))
	}
	i := 0
	for item := range star.Elements(seq) {
		if both[i], err = size(item); err != nil {
			return both, err
		}
		i++
	}
	return both, nil
}

func setEach[V any](
	c *call, p unsafe.Pointer, keys *axis.List, values []star.Value, convert func(star.Value) (V, error),
) error {
	m := core.Map[V]{Keys: keys, Values: make([]V, len(values))}
	for i, v := range values {
		var err error
		if m.Values[i], err = convert(v); err != nil {
			return c.fail(keys.At(i) + ": " + err.Error())
		}
	}
	*(*core.Map[V])(p) = m
	return nil
}

func size(v star.Value) (int, error) {
	i, ok := v.(star.Int)
	if !ok {
		return 0, fmt.Errorf("got %s, want an integer", v.Type())
	}
	n, ok := i.Int64()
	if !ok || int64(int(n)) != n {
		return 0, fmt.Errorf("the integer %s is too large", i)
	}
	return int(n), nil
}

// sliceRange is (start, stop) or (start, stop, step), each an integer or None.
func sliceRange(v star.Value) (core.Range, error) {
	seq, ok := v.(star.Sequence)
	if !ok || seq.Len() < 2 || seq.Len() > 3 {
		return core.Range{}, fmt.Errorf("got %s, want (start, stop) or (start, stop, step)", brief(v))
	}
	var parts [3]*int
	i := 0
	for item := range star.Elements(seq) {
		if item != star.None {
			n, err := size(item)
			if err != nil {
				return core.Range{}, err
			}
			parts[i] = &n
		}
		i++
	}
	return core.Range{Start: parts[0], Stop: parts[1], Step: parts[2]}, nil
}

// nested flattens numbers in lists, which must be as long as one another on every level; bytes are numbers too.
func nested(env *core.Env, v star.Value) (core.Nested, error) {
	if text, ok := v.(star.Bytes); ok {
		return core.Nested{Sizes: []int{len(text)}, Bytes: []byte(text)}, nil
	}
	b := nest{env: env, ints: true, bools: true}
	if err := b.level(v, 0); err != nil {
		return core.Nested{}, err
	}
	n := core.Nested{Sizes: b.sizes}
	switch {
	case b.bools && b.count > 0:
		n.Bools = make([]bool, len(b.values))
		for i, v := range b.values {
			n.Bools[i] = bool(v.(star.Bool))
		}
	case b.ints && b.count > 0:
		n.Ints = make([]int64, len(b.values))
		for i, v := range b.values {
			if err := b.pause(i); err != nil {
				return n, err
			}
			var ok bool
			if n.Ints[i], ok = v.(star.Int).Int64(); !ok {
				return n, fmt.Errorf("the integer %s is too large", v)
			}
		}
	default:
		n.Floats = make([]float64, len(b.values))
		for i, v := range b.values {
			if err := b.pause(i); err != nil {
				return n, err
			}
			f, ok := star.AsFloat(v)
			if !ok {
				return n, fmt.Errorf("got %s among numbers", v)
			}
			n.Floats[i] = f
		}
	}
	return n, nil
}

// pause is an error at every few thousandth element if the run has to stop.
func (b *nest) pause(i int) error {
	if i%pieceLen == pieceLen-1 && b.env.Control.Stopped() {
		return &core.Canceled{Op: "tensor"}
	}
	return nil
}

type nest struct {
	env         *core.Env
	sizes       []int
	values      []star.Value
	count       int
	ints, bools bool
	full        bool // the sizes are known to the innermost level
}

func (b *nest) level(v star.Value, depth int) error {
	if depth > maxNesting {
		return errNesting
	}
	switch v := v.(type) {
	case star.Bool:
		b.ints = false
		return b.leaf(v, depth)
	case star.Int:
		b.bools = false
		return b.leaf(v, depth)
	case star.Float:
		b.ints, b.bools = false, false
		return b.leaf(v, depth)
	case star.Sequence:
		n := v.Len()
		if n > maxItems {
			return fmt.Errorf("a list of %d elements is too long; at most %d can be taken at once", n, maxItems)
		}
		if depth == len(b.sizes) {
			if b.full {
				return fmt.Errorf("lists are nested deeper in some places than in others")
			}
			b.sizes = append(b.sizes, n)
		} else if b.sizes[depth] != n {
			return fmt.Errorf("a list of %d stands beside one of %d", n, b.sizes[depth])
		}
		for item := range star.Elements(v) {
			if err := b.level(item, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("got %s, want numbers in lists", v.Type())
}

func (b *nest) leaf(v star.Value, depth int) error {
	if b.full && depth != len(b.sizes) || !b.full && depth < len(b.sizes) {
		return fmt.Errorf("lists are nested deeper in some places than in others")
	}
	b.full = true
	b.count++
	b.values = append(b.values, v)
	return b.pause(b.count)
}

// mapping is a dict, or what is like one, among the arguments of a builtin; empty if it was not given.
type mapping struct{ star.IterableMapping }

// Unpack takes v.
func (m *mapping) Unpack(v star.Value) error {
	d, ok := v.(star.IterableMapping)
	if !ok {
		return fmt.Errorf("got %s, want a dict", v.Type())
	}
	m.IterableMapping = d
	return nil
}
