package starlark

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math"
	"runtime"
	"time"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/gguf"
	"github.com/fucina-go/fucina/models"
)

// newModel is new_model(tensors, metadata): the language model that load_model would make of the file that
// save_gguf(path, tensors, metadata) would write; m.trainable() makes variables of its weights. create.model of
// @stdlib//create.star makes both from a configuration.
func newModel(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var tensors, metadata mapping
	if err := star.UnpackArgs(b.Name(), args, kwargs, "tensors", &tensors, "metadata", &metadata); err != nil {
		return nil, err
	}
	it := interpOf(t)
	s := &ggufSaver{op: b.Name(), it: it, thread: t, draft: &gguf.Draft{}, axes: map[string]string{}}
	if err := s.setTensors(tensors.IterableMapping); err != nil {
		return nil, err
	}
	if err := s.setMetadata(metadata.IterableMapping); err != nil {
		return nil, err
	}
	size, err := s.draft.Bytes()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	it.env.Reserve(int(size))
	var image bytes.Buffer
	image.Grow(int(size))
	if err := s.draft.Write(&watchedWriter{&image, it}); err != nil {
		return nil, err
	}
	const name = "a new model"
	w, err := models.Open(it.env, name, func(string) (fs.File, error) { return &memoryFile{Reader: &image}, nil })
	if err != nil {
		return nil, err
	}
	return it.buildModel(name, w, "", nil)
}

// memoryFile is a file that was never on a disk. It can be read once.
type memoryFile struct{ io.Reader }

func (*memoryFile) Close() error                 { return nil }
func (f *memoryFile) Stat() (fs.FileInfo, error) { return f, nil }
func (*memoryFile) Name() string                 { return "" }
func (*memoryFile) Size() int64                  { return 0 }
func (*memoryFile) Mode() fs.FileMode            { return 0o444 }
func (*memoryFile) ModTime() time.Time           { return time.Time{} }
func (*memoryFile) IsDir() bool                  { return false }
func (*memoryFile) Sys() any                     { return nil }

// modelSave is m.save(path): the model as a GGUF file: that from which it came, with the weights as they are now, of
// the types that they have there. It is an error if the family keeps weights that it made of those, or if a weight is
// out of the range of its type. quantize_model makes other types of it.
func modelSave(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path); err != nil {
		return nil, err
	}
	it, m := interpOf(t), b.Receiver().(*Model)
	variables := map[string]*core.Tensor{}
	for x, name := range m.names {
		if name == "" {
			return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("the family made a weight, %s, of what is in %s, "+
				"and what is to be saved does not follow from it", x.Shape(), m.name),
				Hint: "let load_weights return tensors as g.tensor gives them, and compute with them in layer"}
		}
		variables[name] = x
	}
	draft := m.file.Draft()
	for i := range draft.Tensors {
		at := &draft.Tensors[i]
		if x := variables[at.Name]; x != nil {
			at.Write = func(w io.Writer) error { return m.writeAs(it, w, at.Name, x, at.Type) }
		}
	}
	err = it.Save("save", path, draft.Write)
	runtime.KeepAlive(m)
	return star.None, err
}

// writeAs writes the elements of x, which the file calls name, as a file's type. It is an error if one is out of the
// type's range.
func (m *Model) writeAs(it *Interp, w io.Writer, name string, x *core.Tensor, as gguf.Type) error {
	if dt, _ := as.DType(); dt != x.DType() {
		narrow := it.env.Cast(x, dt)
		defer narrow.Free()
		if err := m.fits(it, name, x, narrow); err != nil {
			return err
		}
		x = narrow
	}
	return x.WriteElements(w)
}

// fits is an error if a number became infinite in narrow.
func (m *Model) fits(it *Interp, name string, x, narrow *core.Tensor) error {
	const some = 1 << 18 // elements between two looks at whether to stop
	was, is := x.Float32s(), narrow.Float32s()
	lost, worst := 0, float32(0)
	for i, v := range is {
		if i%some == 0 {
			if why := it.stopped.Load(); why != nil {
				return why
			}
		}
		if before := was[i]; math.IsInf(float64(v), 0) && !math.IsInf(float64(before), 0) {
			lost++
			if math.Abs(float64(before)) > math.Abs(float64(worst)) {
				worst = before
			}
		}
	}
	if lost == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d of %d weights are out of the range of %s, in which the file has them, such as %.4g; "+
		"go on with a copy in f32: quantize_model(%q, %q, %q)", name, lost, len(is), narrow.DType(), worst, m.name,
		"f32.gguf", "f32")
}

// nameOf is what the file calls a weight; "" for any other tensor.
func (m *Model) nameOf(x *core.Tensor) string {
	if name, ok := m.names[x]; ok {
		return name
	}
	return m.file.NameOf(x)
}
