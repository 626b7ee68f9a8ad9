package starlark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/safetensors"
	"github.com/fucina-go/fucina/grad"
)

// loadCheckpoint is load_checkpoint(path, random=True, **objects): puts back what save_checkpoint saved, each object by
// the name it was saved under: c = load_checkpoint("run.safetensors", model=m, optimizer=o). Tensors get their values
// in place; lists and dicts their numbers and texts; what has a state goes back to it; numbers in structs stay as they
// are. The result is a struct of all that was saved: objects that were given, and new values of the others, as in
// c.step. Unless random is False, random numbers go on from where they stood. If an object does not fit what is in the
// file, nothing is changed.
func loadCheckpoint(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	random := true
	objects, own := splitKeywords(kwargs, "path", "random")
	if err := star.UnpackArgs(b.Name(), args, own, "path", &path, "random?", &random); err != nil {
		return nil, err
	}
	it := interpOf(t)
	f, err := it.openTensors(b.Name(), path)
	if err != nil {
		return nil, err
	}
	defer f.file.Close()
	c, err := readCheckpoint(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", b.Name(), path, err)
	}
	l := loader{op: b.Name(), f: f, read: map[string]*core.Tensor{}}
	result := star.StringDict{}
	for _, object := range objects {
		name := string(object[0].(star.String))
		node, ok := c.Objects[name]
		if !ok {
			return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("%s has no %s", path, name),
				Hint: "it has " + strings.Join(sortedKeys(c.Objects), ", ")}
		}
		if l.holds(object[1], 0) {
			if err := l.object(name, node, object[1]); err != nil {
				return nil, err
			}
			result[name] = object[1]
		}
	}
	if err := l.differ(); err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(c.Objects) {
		if result[name] == nil {
			if result[name], err = l.build(c.Objects[name], 0); err != nil {
				return nil, l.failed(name, err)
			}
		}
	}
	if err := l.apply(c, random); err != nil {
		return nil, err
	}
	return starlarkstruct.FromStringDict(starlarkstruct.Default, result), nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// readCheckpoint reads what a file says of the objects in it.
func readCheckpoint(f *tensorFile) (*savedRun, error) {
	for key, text := range f.file.Metadata() {
		if key != checkpointKey {
			continue
		}
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.UseNumber()
		var c savedRun
		if err := d.Decode(&c); err != nil {
			return nil, fmt.Errorf("the checkpoint in it is damaged: %w", err)
		}
		if c.Version != checkpointVersion {
			return nil, fmt.Errorf("the checkpoint in it is of version %d, want %d", c.Version, checkpointVersion)
		}
		f.blocks = c.Blocks
		return &c, nil
	}
	return nil, errors.New("it is no checkpoint; load_safetensors loads the tensors in it")
}

// loader finds out what is to be changed, and changes it when all is known to fit.
type loader struct {
	op     string
	f      *tensorFile
	sets   []assignment
	states []stateChange
	edits  []func() error
	seen   map[string]bool         // tensors of the file that the object in hand has
	count  int                     // tensors looked at
	diffs  []string                // what does not fit
	read   map[string]*core.Tensor // of new values, by name
}

type assignment struct {
	x    *core.Tensor
	from safetensors.Tensor
}

type stateChange struct {
	path   string
	object grad.Stateful
	state  grad.State
	old    grad.State
}

// holds tells whether v has something that is put back in place.
func (l *loader) holds(v star.Value, depth int) bool {
	if depth > maxObjectDepth {
		return true
	}
	if err := l.f.it.spend(1); err != nil {
		panic(err)
	}
	switch v := v.(type) {
	case Tensor, grad.Stateful:
		return true
	case *star.List, *star.Dict:
		return true
	case star.Tuple:
		return slices.ContainsFunc(v, func(item star.Value) bool { return l.holds(item, depth+1) })
	case *starlarkstruct.Struct:
		for _, name := range v.AttrNames() {
			if field, err := v.Attr(name); err == nil && l.holds(field, depth+1) {
				return true
			}
		}
	}
	return false
}

// object compares an object with what is saved of it.
func (l *loader) object(path string, node any, v star.Value) error {
	l.seen = map[string]bool{}
	if err := l.match(path, node, v, 0); err != nil {
		return err
	}
	for _, name := range tensorsIn(node, nil) {
		if !l.seen[name] {
			l.seen[name] = true
			l.count++
			x, _ := l.f.file.Tensor(name)
			l.diffs = append(l.diffs, fmt.Sprintf("%s is not here but %s there", name, l.f.shapeOf(x)))
		}
	}
	return nil
}

// tensorsIn lists the names of the tensors in a node, but for those of states.
func tensorsIn(node any, names []string) []string {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			names = tensorsIn(item, names)
		}
	case map[string]any:
		if name, ok := node["tensor"].(string); ok {
			return append(names, name)
		}
		if _, ok := node["state"]; ok {
			return names
		}
		for _, key := range sortedKeys(node) {
			names = tensorsIn(node[key], names)
		}
	}
	return names
}

// match compares v, found at path, with what is saved of it. The error is of a file or an object that is no good; what
// does not fit is noted.
func (l *loader) match(path string, node any, v star.Value, depth int) error {
	if depth > maxObjectDepth {
		return &core.Error{Op: l.op, Msg: fmt.Sprintf("%.60s… is nested more than %d deep", path, maxObjectDepth)}
	}
	fields, _ := node.(map[string]any)
	switch v := v.(type) {
	case Tensor:
		l.tensor(path, fields, v.Tensor)
		return nil
	case grad.Stateful:
		return l.state(path, fields, v)
	case *star.List:
		return l.list(path, node, v, depth)
	case star.Tuple:
		items, _ := fields["tuple"].([]any)
		for i, item := range v {
			if err := l.match(fmt.Sprintf("%s.%d", path, i), element(items, i), item, depth+1); err != nil {
				return err
			}
		}
	case *star.Dict:
		return l.dict(path, fields, v, depth)
	case *starlarkstruct.Struct:
		members, _ := fields["struct"].(map[string]any)
		for _, name := range v.AttrNames() {
			field, err := v.Attr(name)
			if err != nil {
				return err
			}
			if err := l.match(path+"."+name, members[name], field, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// element is an element, nil if there is none.
func element(items []any, i int) any {
	if i < len(items) {
		return items[i]
	}
	return nil
}

func (l *loader) tensor(path string, fields map[string]any, x *core.Tensor) {
	l.count++
	here := x.Shape()
	name, _ := fields["tensor"].(string)
	from, ok := l.f.file.Tensor(name)
	if !ok {
		l.diffs = append(l.diffs, fmt.Sprintf("%s is %s here but not there", path, here))
		return
	}
	l.seen[name] = true
	if there := l.f.shapeOf(from); there != here {
		l.diffs = append(l.diffs, fmt.Sprintf("%s is %s here but %s there", path, here, there))
		return
	}
	l.sets = append(l.sets, assignment{x, from})
}

// shapeOf is what core calls the shape of a tensor of the file.
func (f *tensorFile) shapeOf(x safetensors.Tensor) string {
	of, _ := x.Type.DType()
	dt, shape := of.String(), x.Shape
	names := strings.Fields(f.axes[x.Name])
	if b, ok := f.blocks[x.Name]; ok {
		dt, shape, names = b.DType, b.Sizes, strings.Fields(b.Axes)
	}
	if len(shape) == 0 {
		return dt
	}
	var sizes []string
	for i, n := range shape {
		name := "?"
		if i < len(names) {
			name = names[i]
		}
		sizes = append(sizes, fmt.Sprintf("%s=%d", name, n))
	}
	return dt + "[" + strings.Join(sizes, ", ") + "]"
}

// list compares lists of the same length element by element; one without tensors is replaced as a whole.
func (l *loader) list(path string, node any, v *star.List, depth int) error {
	items, isList := node.([]any)
	if isList && (len(tensorsIn(node, nil)) == 0 || v.Len() == 0) && !l.holdsInside(v) {
		values, err := l.build(node, depth)
		if err != nil {
			return l.failed(path, err)
		}
		for _, name := range tensorsIn(node, nil) {
			l.seen[name] = true
		}
		if err := changeable(v); err != nil {
			return fmt.Errorf("%s: %s: %w", l.op, path, err)
		}
		l.edits = append(l.edits, func() error {
			if err := v.Clear(); err != nil {
				return err
			}
			for item := range values.(*star.List).Elements() {
				if err := v.Append(item); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	}
	for i := range v.Len() {
		if err := l.place(v, fmt.Sprintf("%s.%d", path, i), element(items, i), v.Index(i), depth, i < len(items),
			func(x star.Value) error { return v.SetIndex(i, x) }); err != nil {
			return err
		}
	}
	return nil
}

// holdsInside tells whether an element of the list is put back in place, or is code, which stays.
func (l *loader) holdsInside(v *star.List) bool {
	for item := range v.Elements() {
		if _, isCode := item.(star.Callable); isCode || l.holds(item, 0) {
			return true
		}
	}
	return false
}

// changeable is an error if a list or dict is frozen or being iterated.
func changeable(v star.Value) error {
	switch v := v.(type) {
	case *star.List:
		if v.Len() > 0 {
			return v.SetIndex(0, v.Index(0))
		}
		return v.Clear()
	case *star.Dict:
		_, _, err := v.Delete(star.Tuple{star.String(checkpointKey)}) // which is no key
		return err
	}
	return nil
}

// place compares what is in a place of a list or dict, or replaces it if it is plain.
func (l *loader) place(
	in star.Value, path string, node any, v star.Value, depth int, saved bool, set func(star.Value) error,
) error {
	if l.holds(v, 0) {
		return l.match(path, node, v, depth+1)
	}
	if _, isCode := v.(star.Callable); isCode || !saved {
		return nil
	}
	x, err := l.build(node, depth)
	if err != nil {
		return l.failed(path, err)
	}
	if err := changeable(in); err != nil {
		return fmt.Errorf("%s: %s: %w", l.op, path, err)
	}
	l.edits = append(l.edits, func() error { return set(x) })
	return nil
}

func (l *loader) dict(path string, fields map[string]any, v *star.Dict, depth int) error {
	saved, _ := fields["dict"].([]any)
	known := star.NewDict(len(saved))
	for _, item := range saved {
		pair, _ := item.([]any)
		key, err := l.build(element(pair, 0), depth)
		if err != nil || len(pair) != 2 {
			return fmt.Errorf("%s: %s: %s: the keys are damaged", l.op, l.f.path, path)
		}
		if err := known.SetKey(key, star.None); err != nil {
			return fmt.Errorf("%s: %s: %s: %w", l.op, l.f.path, path, err)
		}
		old, here, err := v.Get(key)
		if err != nil {
			return err
		}
		if !here {
			if len(tensorsIn(pair[1], nil)) > 0 && v.Len() > 0 {
				continue // its tensors differ
			}
			for _, name := range tensorsIn(pair[1], nil) {
				l.seen[name] = true
			}
			old = star.None
		}
		if err := l.place(v, path+"."+text(key), pair[1], old, depth, true,
			func(x star.Value) error { return v.SetKey(key, x) }); err != nil {
			return err
		}
	}
	for _, item := range v.Items() {
		if _, ok, _ := known.Get(item[0]); !ok {
			if err := l.match(path+"."+text(item[0]), nil, item[1], depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loader) state(path string, fields map[string]any, object grad.Stateful) error {
	values, ok := fields["state"].(map[string]any)
	tensors, hasTensors := fields["tensors"].(map[string]any)
	if !ok || !hasTensors {
		return &core.Error{Op: l.op, Msg: fmt.Sprintf("%s has no state of %s", l.f.path, path),
			Hint: "was something else saved under that name?"}
	}
	change := stateChange{path: path, object: object, state: grad.State{
		Tensors: map[string]*core.Tensor{}, Values: map[string]any{}}}
	for name, node := range values {
		var err error
		if change.state.Values[name], err = plainOf(node, 0); err != nil {
			return fmt.Errorf("%s: %s: %s.%s: %w", l.op, l.f.path, path, name, err)
		}
	}
	for _, name := range sortedKeys(tensors) {
		inFile, _ := tensors[name].(string)
		x, err := l.fresh(inFile)
		if err != nil {
			return err
		}
		x.Keep()
		change.state.Tensors[name] = x
	}
	l.states = append(l.states, change)
	return nil
}

// differ is the error of objects that do not fit.
func (l *loader) differ() error {
	if len(l.diffs) == 0 {
		return nil
	}
	return &core.Error{Op: l.op, Msg: fmt.Sprintf("%s is of another model: %s; %d of %d tensors differ", l.f.path,
		l.diffs[0], len(l.diffs), l.count), Hint: "nothing was changed"}
}

// apply changes everything, or nothing if something cannot be changed: first all is read, then states, which may
// refuse, are set, and only then is that done which cannot fail.
func (l *loader) apply(c *savedRun, random bool) error {
	var state [2]uint64
	for i, text := range c.Random {
		var err error
		if state[i], err = strconv.ParseUint(text, 10, 64); err != nil {
			return fmt.Errorf("%s: %s: where the random numbers stand is damaged", l.op, l.f.path)
		}
	}
	env := l.f.it.env
	if env.IsShapeOnly() {
		return nil
	}
	values := make([]*core.Tensor, len(l.sets))
	defer func() {
		for _, x := range values {
			if x != nil {
				x.Free()
			}
		}
	}()
	for i, set := range l.sets {
		var err error
		if values[i], err = l.f.read(l.op, set.from, nil, dtype.Invalid); err != nil {
			return err
		}
		if why := set.x.Fixed(); why != "" {
			return &core.Error{Op: l.op, Msg: set.from.Name + ": " + why, Hint: "nothing was changed"}
		}
	}
	for i := range l.states {
		s := &l.states[i]
		s.old = s.object.State()
		if err := s.object.SetState(s.state); err != nil {
			for _, before := range slices.Backward(l.states[:i]) {
				err = errors.Join(err, before.object.SetState(before.old))
			}
			return fmt.Errorf("%s: %s: %s: %w; nothing was changed", l.op, l.f.path, s.path, err)
		}
	}
	for i, set := range l.sets {
		set.x.Assign(values[i])
	}
	for _, edit := range l.edits {
		if err := edit(); err != nil {
			return fmt.Errorf("%s: %w", l.op, err)
		}
	}
	if random {
		env.SetRandomState(state[0], state[1])
	}
	return nil
}
