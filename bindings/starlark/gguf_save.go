package starlark

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/gguf"
)

// saveGGUF is save_gguf(path, tensors=None, metadata=None, like=None, split=None, axes=True): a dict of tensors and one
// of metadata as a GGUF file, for which a file of that name makes room at the end. Of like, an open GGUF file, all that
// the dicts do not name is taken as it is, byte for byte and in order; None in them removes what has that name. An int
// becomes a u32, or what holds it, in lists an i32, a float an f32; but a key that like has keeps its kind, and {"u64":
// 5} names one. A function in the place of a tensor is called when its turn comes to be written, so that not all have
// to be there at once: {"w": lambda: f["w"].cast("f16")}. With split, a number of bytes, the file is written in parts
// of about that size, called path-00001-of-00002.gguf and so on. The axis names are kept under the key fucina.axes,
// unless axes is False.
//
// It returns the names of the files.
func saveGGUF(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	var tensors, metadata mapping
	var like, split star.Value = star.None, star.None
	axes := true
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path, "tensors??", &tensors, "metadata??", &metadata,
		"like??", &like, "split??", &split, "axes?", &axes); err != nil {
		return nil, err
	}
	it := interpOf(t)
	s := &ggufSaver{op: b.Name(), it: it, thread: t, draft: &gguf.Draft{}, axes: map[string]string{}}
	if f, ok := like.(*ggufFile); ok {
		s.like, s.draft = f, f.file.Draft()
		s.axes = f.keptAxes()
	} else if like != star.None {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("like: got a %s, want an open GGUF file", like.Type()),
			Hint: `as in: like=open_gguf("a.gguf")`}
	}
	if err := s.setTensors(tensors.IterableMapping); err != nil {
		return nil, err
	}
	if axes && s.renamed {
		text, err := json.Marshal(s.axes) // sorts the keys
		if err != nil {
			return nil, err
		}
		s.draft.Set(ggufAxesKey, gguf.Text(string(text)))
	}
	if err := s.setMetadata(metadata.IterableMapping); err != nil {
		return nil, err
	}
	names, err := s.write(path, split)
	runtime.KeepAlive(like)
	if err != nil {
		return nil, err
	}
	return star.NewList(names), nil
}

// ggufSaver makes a draft of what a script gives.
type ggufSaver struct {
	op      string // that the script called
	it      *Interp
	thread  *star.Thread
	draft   *gguf.Draft
	like    *ggufFile         // nil for none
	axes    map[string]string // to be kept
	renamed bool              // they are no longer those of like
}

// keptAxes is a copy of the axis names in a file.
func (f *ggufFile) keptAxes() map[string]string {
	kept := map[string]string{}
	for name, text := range f.axes {
		kept[name] = text
	}
	return kept
}

// setTensors replaces tensors of the draft, adds and removes some.
func (s *ggufSaver) setTensors(tensors star.IterableMapping) error {
	if tensors == nil {
		return nil
	}
	at := map[string]int{}
	for i, t := range s.draft.Tensors {
		at[t.Name] = i
	}
	removed := map[string]bool{}
	for _, item := range tensors.Items() {
		name, ok := star.AsString(item[0])
		x, isTensor := item[1].(Tensor)
		fn, isLater := item[1].(star.Callable)
		i, had := at[name]
		switch {
		case ok && item[1] == star.None && had:
			removed[name] = true
			s.renamed = s.renamed || s.axes[name] != ""
			delete(s.axes, name)
			continue
		case ok && item[1] == star.None && s.like != nil:
			return s.like.missing(s.op, name)
		case !ok || !isTensor && !isLater:
			return &core.Error{Op: s.op, Msg: fmt.Sprintf("tensors: got %s: %s", item[0], item[1].Type()),
				Hint: `want tensors by name, as in: {"w": zeros(row=2)}`}
		case isLater:
			var err error
			if x, err = s.shapeOf(name, fn); err != nil {
				return err
			}
		}
		t, err := draftTensor(s.op, name, x.Tensor)
		if err != nil {
			return err
		}
		if isLater {
			t.Write = func(w io.Writer) error { return s.writeLater(w, name, fn, x.Shape()) }
		}
		if had {
			s.draft.Tensors[i] = t
		} else {
			s.draft.Tensors = append(s.draft.Tensors, t)
		}
		if names, kept := s.axes[name]; !kept || names != x.Axes().String() {
			names = x.Axes().String()
			s.axes[name], s.renamed = names, true
		}
	}
	s.draft.Tensors = slices.DeleteFunc(s.draft.Tensors, func(t gguf.DraftTensor) bool { return removed[t.Name] })
	return nil
}

// shapeOf is what a function that makes a tensor would return, without data.
func (s *ggufSaver) shapeOf(name string, fn star.Callable) (x Tensor, err error) {
	v, err := checkShapes(s.thread, star.NewBuiltin(s.op, saveGGUF), star.Tuple{fn}, nil)
	if err != nil {
		return x, err
	}
	x, ok := v.(Tensor)
	if !ok {
		return x, &core.Error{Op: s.op, Msg: fmt.Sprintf("tensors: %s: the function returned a %s", name,
			v.Type()), Hint: `want a tensor, as in: {"w": lambda: zeros(row=2)}`}
	}
	return x, nil
}

// writeLater calls the function that makes a tensor, and writes what it returns; nothing that it made is kept.
func (s *ggufSaver) writeLater(w io.Writer, name string, fn star.Callable, shape string) error {
	made := s.it.env.Open()
	defer made.Close()
	v, err := s.it.call(s.thread, fn, nil, nil)
	if err != nil {
		return err
	}
	x, ok := v.(Tensor)
	if !ok || x.Shape() != shape {
		return &core.Error{Op: s.op, Msg: fmt.Sprintf("tensors: %s: the function returned %s, but %s before",
			name, brief(v), shape)}
	}
	return x.WriteBlocks(w)
}

// draftTensor is a tensor to be written under a name.
func draftTensor(op, name string, x *core.Tensor) (t gguf.DraftTensor, err error) {
	if x.Closed() {
		return t, &core.Error{Op: op, Msg: fmt.Sprintf("%s: %s", name, x)}
	}
	id, ok := gguf.TypeNamed(x.DType().String())
	if !ok {
		return t, &core.Error{Op: op, Msg: fmt.Sprintf("%s: the format has no %s", name, x.DType()),
			Hint: fmt.Sprintf("save x.cast(%q)", "i32")}
	}
	dims := x.Sizes()
	slices.Reverse(dims)
	const most = 4
	if len(dims) > most {
		return t, &core.Error{Op: op, Msg: fmt.Sprintf("%s: the format has at most %d axes, got %s", name,
			most, x.Shape()), Hint: `merge some: x.merge(embed=("head", "head_dim"))`}
	}
	if block, _ := id.Block(); len(dims) > 0 && dims[0]%block != 0 {
		return t, &core.Error{Op: op, Msg: fmt.Sprintf("%s: blocks of %d elements run over the end of axis "+
			"%q of %s", name, block, x.Axes().At(x.Rank()-1), x.Shape()),
			Hint: "save it as the matrix that was quantized"}
	}
	if len(dims) == 0 {
		dims = []int{1} // not every reader takes a tensor without axes; its axis names tell that it is one
	}
	return gguf.DraftTensor{Name: name, Type: id, Dims: dims, Write: x.WriteBlocks}, nil
}

// setMetadata sets what a script gives: None removes a key. A key that was there keeps its kind, and one whose value is
// what it was its bytes. That like is a model in parts is no longer so.
func (s *ggufSaver) setMetadata(metadata star.IterableMapping) error {
	if metadata == nil {
		return nil
	}
	for _, item := range metadata.Items() {
		key, ok := star.AsString(item[0])
		if !ok {
			return &core.Error{Op: s.op, Msg: fmt.Sprintf("metadata: got the key %s, want a text", brief(item[0])),
				Hint: `as in: metadata={"general.name": "mine"}`}
		}
		old, had := s.draft.Value(key)
		switch {
		case !had && gguf.IsSplitKey(key):
			continue
		case item[1] == star.None:
			s.draft.Delete(key)
			continue
		}
		v, err := s.it.toGGUF(item[1], old, had)
		if err != nil {
			return fmt.Errorf("%s: metadata: %s: %w", s.op, key, err)
		}
		s.draft.Set(key, v)
	}
	return nil
}

// write writes the draft, in parts if split says so, and returns the names of the files. Each part is opened before
// the one before it gets its name, so that a disk that becomes full leaves all files as they were.
func (s *ggufSaver) write(path string, split star.Value) ([]star.Value, error) {
	parts, names := []*gguf.Draft{s.draft}, []string{path}
	if split != star.None {
		n, isInt := split.(star.Int)
		most, fits := int64(0), false
		if isInt {
			most, fits = n.Int64()
		}
		if !fits || most < 1 || !strings.HasSuffix(path, ".gguf") {
			return nil, &core.Error{Op: "save_gguf", Msg: fmt.Sprintf("got %q with split=%s, want a name that ends in "+
				".gguf and a number of bytes", path, brief(split)),
				Hint: `as in: save_gguf("a.gguf", like=f, split=2 << 30)`}
		}
		var err error
		if parts, names, err = s.draft.Split(path, most); err != nil {
			return nil, fmt.Errorf("save_gguf: %w", err)
		}
	}
	var write func(i int) error
	write = func(i int) error {
		var later error // of a part behind this one, which says whose it is
		err := s.it.Save("save_gguf", names[i], func(w io.Writer) error {
			if err := parts[i].Write(w); err != nil || i+1 == len(parts) {
				return err
			}
			later = write(i + 1)
			return later
		})
		return cmp.Or(later, err)
	}
	if err := write(0); err != nil {
		return nil, err
	}
	var list []star.Value
	for _, name := range names {
		list = append(list, star.String(name))
	}
	return list, nil
}
