package starlark

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/grad"
)

// checkpointKey is the metadata that makes a safetensors file a checkpoint: a JSON object of the objects saved. In it
// numbers, texts, bools, None and lists are JSON's, a fraction always with a point or an exponent; a tuple, dict,
// struct, tensor, function, text of bytes, number that is not finite, or state of an object is an object whose key says
// so.
const checkpointKey = "fucina.checkpoint"

// savedRun is the JSON under checkpointKey.
type savedRun struct {
	Version int            `json:"version"`
	Random  [2]string      `json:"random"` // seed and stream, of 64 bits each
	Objects map[string]any `json:"objects"`

	// Blocks is what the file's tensors of bytes are that are the blocks of quantized tensors, by name.
	Blocks map[string]savedBlocks `json:"blocks,omitempty"`
}

// savedBlocks describes a quantized tensor whose blocks are saved as bytes.
type savedBlocks struct {
	DType string `json:"dtype"`
	Axes  string `json:"axes"`
	Sizes []int  `json:"sizes"`
}

const checkpointVersion = 1

// maxObjectDepth is how deep objects may be nested.
const maxObjectDepth = 200

// errTrial ends what is saved for a trial.
var errTrial = errors.New("this is a trial")

// saveCheckpoint is save_checkpoint(path, keep=0, trial=False, **objects): what it takes to go on later, as one
// safetensors file, for which a file of that name makes room at the end, so that there is the old one or the new one,
// never half of one: save_checkpoint("run.safetensors", model=m, optimizer=o, step=step). The objects are tensors,
// numbers, texts, lists, dicts and structs of these, and whatever has a state: optimizers, averages, batches;
// quantized tensors are kept as their bytes. Functions inside, schedules among them, are left out. Where the random
// numbers stand is saved too. With keep=2 the file that was there becomes run.1.safetensors and that one
// run.2.safetensors. With trial=True nothing is saved: it fails if it could not be.
func saveCheckpoint(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	var keep int
	var trial bool
	objects, own := splitKeywords(kwargs, "path", "keep", "trial")
	if err := star.UnpackArgs(b.Name(), args, own, "path", &path, "keep?", &keep, "trial?", &trial); err != nil {
		return nil, err
	}
	it := interpOf(t)
	if len(objects) == 0 {
		return nil, &core.Error{Op: b.Name(), Msg: "got nothing to save",
			Hint: fmt.Sprintf("name the objects: save_checkpoint(%q, model=m)", path)}
	}
	if keep < 0 || keep > 0 && it.cfg.rotate == nil {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("cannot keep %d files here", keep),
			Hint: "this program saves files in its own way, one of each name"}
	}
	s := saver{it: it, op: b.Name(), names: map[*core.Tensor]string{}, taken: map[string]bool{}}
	c := savedRun{Version: checkpointVersion, Objects: map[string]any{}}
	for _, object := range objects {
		name := string(object[0].(star.String))
		if c.Objects[name], err = s.node(name, object[1], 0); err != nil {
			return nil, err
		}
	}
	if trial {
		err := it.Save(b.Name(), path, func(io.Writer) error { return errTrial })
		if errors.Is(err, errTrial) {
			err = nil
		}
		return star.None, err
	}
	seed, stream := it.env.RandomState()
	for i := range s.list {
		if t := &s.list[i]; t.x.DType().Quantized() {
			if c.Blocks == nil {
				c.Blocks = map[string]savedBlocks{}
			}
			c.Blocks[t.name] = savedBlocks{t.x.DType().String(), t.x.Axes().String(), t.x.Sizes()}
			t.blocks = true
		}
	}
	c.Random = [2]string{strconv.FormatUint(seed, 10), strconv.FormatUint(stream, 10)}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return star.None, it.saveTensors(b.Name(), path, s.list, map[string]string{checkpointKey: string(text)}, keep)
}

// splitKeywords takes the keywords of a builtin's own out of those that name objects.
func splitKeywords(kwargs []star.Tuple, names ...string) (objects, own []star.Tuple) {
	for _, kw := range kwargs {
		if slices.Contains(names, string(kw[0].(star.String))) {
			own = append(own, kw)
		} else {
			objects = append(objects, kw)
		}
	}
	return objects, own
}

// saver collects the tensors of objects.
type saver struct {
	it    *Interp
	op    string
	list  []namedTensor
	names map[*core.Tensor]string // a tensor that is met twice is saved once
	taken map[string]bool
}

// node is v, which is found at path, as JSON.
func (s *saver) node(path string, v star.Value, depth int) (any, error) {
	if depth > maxObjectDepth {
		return nil, &core.Error{Op: s.op, Msg: fmt.Sprintf("%.60s… is nested more than %d deep", path, maxObjectDepth),
			Hint: "does it hold itself?"}
	}
	if err := s.it.spend(1); err != nil { // what is held twice is saved twice, and so on inside
		return nil, err
	}
	switch v := v.(type) {
	case star.NoneType:
		return nil, nil
	case star.Bool:
		return bool(v), nil
	case star.Int:
		return json.Number(v.String()), nil
	case star.Float:
		return floatNode(float64(v)), nil
	case star.String:
		if !utf8.ValidString(string(v)) {
			return nil, &core.Error{Op: s.op, Msg: path + " is a text that is no UTF-8", Hint: "bytes(x) keeps it"}
		}
		return string(v), nil
	case star.Bytes:
		return map[string]any{"bytes": base64.StdEncoding.EncodeToString([]byte(v))}, nil
	case Tensor:
		return map[string]any{"tensor": s.tensor(path, v.Tensor)}, nil
	case grad.Stateful:
		return s.state(path, v)
	case *star.List:
		return s.elements(path, v, depth)
	case star.Tuple:
		items, err := s.elements(path, v, depth)
		return map[string]any{"tuple": items}, err
	case *star.Dict:
		return s.dict(path, v, depth)
	case *starlarkstruct.Struct:
		fields := map[string]any{}
		for _, name := range v.AttrNames() {
			field, err := v.Attr(name)
			if err != nil {
				return nil, err
			}
			if _, isCode := field.(star.Callable); isCode {
				continue
			}
			if fields[name], err = s.node(path+"."+name, field, depth+1); err != nil {
				return nil, err
			}
		}
		return map[string]any{"struct": fields}, nil
	case star.Callable:
		if depth > 0 { // it keeps its place in a list of modules
			return map[string]any{"code": v.Name()}, nil
		}
	}
	return nil, &core.Error{Op: s.op, Msg: fmt.Sprintf("%s is a %s, which cannot be saved", path, v.Type()),
		Hint: "want tensors, numbers, texts, lists, dicts and structs of them, and objects with a state"}
}

// floatNode is a fraction as JSON.
func floatNode(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return map[string]any{"float": strconv.FormatFloat(f, 'g', -1, 64)}
	}
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return json.Number(text)
}

// tensor notes a tensor to be saved and returns its name in the file.
func (s *saver) tensor(path string, x *core.Tensor) string {
	if name, ok := s.names[x]; ok {
		return name
	}
	name := path
	for i := 2; s.taken[name]; i++ {
		name = fmt.Sprintf("%s#%d", path, i)
	}
	s.taken[name], s.names[x] = true, name
	s.list = append(s.list, namedTensor{name: name, x: x})
	return name
}

func (s *saver) elements(path string, list star.Iterable, depth int) (any, error) {
	items := []any{}
	for item := range star.Elements(list) {
		node, err := s.node(fmt.Sprintf("%s.%d", path, len(items)), item, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, node)
	}
	return items, nil
}

func (s *saver) dict(path string, d *star.Dict, depth int) (any, error) {
	items := []any{}
	for _, item := range d.Items() {
		key, err := s.node(path, item[0], depth+1)
		if err != nil {
			return nil, err
		}
		value, err := s.node(path+"."+text(item[0]), item[1], depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, []any{key, value})
	}
	return map[string]any{"dict": items}, nil
}

func (s *saver) state(path string, object grad.Stateful) (any, error) {
	state := object.State()
	values, tensors := map[string]any{}, map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(state.Values)) {
		var err error
		if values[name], err = s.plain(path+"."+name, state.Values[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(state.Tensors)) {
		tensors[name] = s.tensor(path+"."+name, state.Tensors[name])
	}
	return map[string]any{"state": values, "tensors": tensors}, nil
}

// plain is one of the values of a grad.State as JSON.
func (s *saver) plain(path string, v any) (any, error) {
	switch v := v.(type) {
	case bool, string:
		return v, nil
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), nil
	case float64:
		return floatNode(v), nil
	case []any:
		items := make([]any, len(v))
		for i := range v {
			var err error
			if items[i], err = s.plain(path, v[i]); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
	return nil, fmt.Errorf("%s: %s is a %T, which a state cannot have", s.op, path, v)
}
